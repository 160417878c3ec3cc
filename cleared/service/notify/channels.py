"""Handing one message over: to a mail server, or to a command of the user's.

What a message says comes from outside (bank texts, names of agents): it is made harmless before it leaves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from cleared.base import terminal
from cleared.base.clock import Clock
from cleared.base.short_text import shorten_text
from cleared.processes.outside_command import CommandFailed, run_outside_command
from cleared.workspace.settings.model import Notifications

if TYPE_CHECKING:
    import smtplib
    from email.message import EmailMessage


NETWORK_SECONDS: Final = 10.0
COMMAND_SECONDS: Final = 30.0
_SMTP_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}
_MAX_LINE_LENGTH: Final = 400


class Undelivered(Exception):
    """The message was not taken; the text says why, in one line."""


class Message(Struct, frozen=True):
    """A message, the same for every channel. ``key`` is its own: whoever gets a message twice can tell by it."""

    key: str
    kind: str
    """digest | failure."""
    subject: str
    lines: tuple[str, ...]
    at: str
    """When it was written; UTC, ISO 8601."""
    data: Mapping[str, Any] = {}
    """The same as plain data, for a command."""


class Channel(Protocol):
    """One way to hand a message over."""

    def __call__(self, message: Message, settings: Notifications, root: Path, clock: Clock) -> None:
        """Hand it over. ``root`` is the workspace's. Raises ``Undelivered``."""


def escape_text(text: object, limit: int = _MAX_LINE_LENGTH) -> str:
    """The text on one line and not too long: control, direction and other unseen characters as escapes."""
    return terminal.escape_text(shorten_text(str(text), limit))


def send_message(message: Message, settings: Notifications, root: Path, clock: Clock) -> None:
    """Hand it over as ``notifications.method`` says. Raises ``Undelivered``."""
    channel = CHANNELS.get(settings.method or "none")
    if channel is None:
        raise Undelivered("notifications.method is none")
    channel(message, settings, root, clock)


# --- mail -------------------------------------------------------------------------------------------------------------


def build_mail(message: Message, settings: Notifications) -> EmailMessage:
    """The message as a mail; whatever its texts hold, no header is made of it."""
    from email.headerregistry import Address
    from email.message import EmailMessage
    from email.policy import SMTP
    from email.utils import format_datetime

    to = settings.address or ""
    sender = settings.sender or to
    mail = EmailMessage(policy=SMTP)
    mail["From"] = Address("cleared", addr_spec=sender)
    mail["To"] = Address(addr_spec=to)
    mail["Subject"] = escape_text(message.subject)
    mail["Date"] = format_datetime(datetime.fromisoformat(message.at))
    mail["Message-ID"] = f"<{escape_text(message.key)}@{sender.rpartition('@')[2]}>"
    mail["X-Cleared-Key"] = escape_text(message.key)
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content("".join(f"{escape_text(line)}\n" for line in message.lines), cte="quoted-printable")
    return mail


def find_missing(settings: Notifications) -> str | None:
    """What has to be set before a message can be sent, and by which command; None where nothing is missing."""
    if settings.method in ("smtp", "email") and not settings.smtp_host:
        return "no mail server is set: cleared config set notifications.smtp_host HOST"
    return None


def _send_mail(message: Message, settings: Notifications, root: Path, clock: Clock) -> None:
    import smtplib
    import ssl
    from email.errors import MessageError

    if (missing := find_missing(settings)) is not None:
        raise Undelivered(missing)
    host, kind = settings.smtp_host or "", settings.smtp_security
    port = settings.smtp_port or _SMTP_PORTS[kind]
    if settings.smtp_user and not settings.smtp_password:
        raise Undelivered("notifications.smtp_user is set, but no notifications.smtp_password")
    try:
        mail = build_mail(message, settings)
        # The name for the greeting is given, as looking this machine's name up may take longer than all the rest.
        options: dict[str, Any] = {"timeout": NETWORK_SECONDS, "local_hostname": "[127.0.0.1]"}
        if kind == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, context=ssl.create_default_context(), **options)
        else:
            server = smtplib.SMTP(host, port, **options)
        try:
            if kind == "starttls":
                server.starttls(context=ssl.create_default_context())
            if settings.smtp_user:
                server.login(settings.smtp_user, settings.smtp_password or "")
            server.send_message(mail)
            with suppress(OSError, smtplib.SMTPException):  # the message is accepted, however the connection ends
                server.quit()
        finally:
            server.close()
    except (OSError, smtplib.SMTPException, MessageError, ValueError) as error:
        raise Undelivered(escape_text(f"{host}:{port}: {_error_text(error)}")) from None


def _error_text(error: Exception) -> str:
    """The server's or the system's error as text."""
    import smtplib

    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "; ".join(
            f"{address} was refused: {_reply_text(code, reply)}" for address, (code, reply) in error.recipients.items()
        )
    if isinstance(error, smtplib.SMTPResponseException):
        return _reply_text(error.smtp_code, error.smtp_error)
    if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        return f"no answer within {NETWORK_SECONDS:g} seconds"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _reply_text(code: int, reply: bytes | str) -> str:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return " ".join(f"{code} {text}".split())


# --- a command --------------------------------------------------------------------------------------------------------


def _run_command(message: Message, settings: Notifications, root: Path, clock: Clock) -> None:
    text = json.dumps(message_payload(message), ensure_ascii=True) + "\n"
    try:
        run_outside_command(settings.command, text.encode("ascii"), root=root, clock=clock, seconds=COMMAND_SECONDS)
    except CommandFailed as error:
        raise Undelivered(escape_text(error)) from None


def message_payload(message: Message) -> dict[str, Any]:
    """What a command gets on its standard input."""
    return {
        "key": message.key,
        "kind": message.kind,
        "at": message.at,
        "subject": message.subject,
        "text": "\n".join(message.lines),
        **message.data,
    }


CHANNELS: Final[Mapping[str, Channel]] = {"smtp": _send_mail, "email": _send_mail, "exec": _run_command}
"""``notifications.method`` → the channel. To add one, write its function, add it here, and name it, with the settings
it needs, in ``workspace.settings.model.Notifications``."""
