"""Handing one message over to the push service of a phone's browser: encrypted for the phone (RFC 8291), signed with
this user's key (RFC 8292).

Where it goes is what a browser said, so it is outside input: only push services that are known, or that the approved
settings name, are asked, over TLS, and no answer of theirs leads anywhere else.
"""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct

from cleared.base.clock import Clock
from cleared.base.errors import UsageError
from cleared.service.notify.channels import NETWORK_SECONDS, Undelivered, escape_text
from cleared.service.notify.push_key import read_push_key
from cleared.workspace.settings.model import Notifications

if TYPE_CHECKING:
    import socket

PUSH_HOSTS: Final = ("fcm.googleapis.com", ".push.services.mozilla.com", ".push.apple.com", ".notify.windows.com")
"""Those of browsers: Chromium, Firefox, Safari, Edge. With a dot before it: any name below that."""
KEEP_SECONDS: Final = 12 * 3600
"""How long a push service keeps a message for a phone that is off; an older one is not true any more."""
_TOKEN_SECONDS: Final = 12 * 3600
_PACKAGES: Final = ("py_vapid", "http_ece")
_ADDRESS: Final = re.compile(r"https://[!-~]{1,1500}")
_MAX_ANSWER: Final = 300


class PhoneGone(Exception):
    """The push service says that the phone takes no messages of this subscription any more."""


class PushAddress(Struct, frozen=True):
    """Where messages to one phone go. ``is_named``: whether the settings name the host, wherever it is then."""

    host: str
    port: int
    path: str
    is_named: bool

    @property
    def origin(self) -> str:
        """What a signature is for."""
        return f"https://{self.host}" + ("" if self.port == 443 else f":{self.port}")


def find_push_obstacle(settings: Notifications) -> str | None:
    """Why no message goes to any phone, and what to do; None where nothing is in the way."""
    if not settings.push:
        return "messages to phones are off: cleared config set notifications.push true"
    if any(find_spec(name) is None for name in _PACKAGES):
        return "messages to phones need more packages; in the checkout: pip install '.[web]'"
    if settings.daily_digest_time is None:
        return "no time is set for them: cleared config set notifications.daily_digest_time 08:00"
    return None


def read_push_address(endpoint: str, settings: Notifications) -> PushAddress:
    """The address in a subscription. Raises ``UsageError`` for any that is not of a push service."""
    try:
        parts = urlsplit(endpoint)
        host, port = (parts.hostname or "").lower(), parts.port or 443
    except ValueError:
        parts, host, port = urlsplit(""), "", 0
    named = {name if ":" in name else f"{name}:443" for name in settings.push_hosts}
    is_named = f"{host}:{port}" in named
    is_known = port == 443 and any(host == each or (each[0] == "." and host.endswith(each)) for each in PUSH_HOSTS)
    if not _ADDRESS.fullmatch(endpoint) or "@" in parts.netloc or not (is_named or is_known):
        raise UsageError(
            f"messages are not sent to {escape_text(host or endpoint, 60)}: it is no push service that is known here",
            remedy="Where it is one that you trust: name it in notifications.push_hosts.",
        )
    path = parts.path or "/"
    return PushAddress(host, port, f"{path}?{parts.query}" if parts.query else path, is_named)


def read_phone_keys(p256dh: str, auth: str) -> tuple[bytes, bytes]:
    """The phone's public key and secret, for which messages are encrypted. Raises ``UsageError`` for others."""
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        point, shared = (base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) for text in (p256dh, auth))
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        if len(point) != 65 or len(shared) != 16:
            raise ValueError("length")
    except (ValueError, binascii.Error):
        raise UsageError("this is no subscription of a browser", remedy="Load the page again.") from None
    return point, shared


def push_message(
    endpoint: str, keys: tuple[str, str], text: bytes, contact: str, settings: Notifications, root: Path, clock: Clock
) -> None:
    """Hand ``text`` over for the phone. ``contact``: the address of the page, for whoever keeps the push service, where
    the settings name none.

    Raises ``PhoneGone``, ``Undelivered`` where it was not taken, ``UsageError`` as the functions above,
    ``WorkspaceError`` where the key cannot be read.
    """
    from http.client import HTTPException

    import http_ece
    from cryptography.hazmat.primitives.asymmetric import ec
    from py_vapid import Vapid02

    address = read_push_address(endpoint, settings)
    point, shared = read_phone_keys(*keys)
    sender = f"mailto:{settings.address}" if settings.address else f"https://{_public_host(contact)}"
    expires = int(clock.now().timestamp()) + _TOKEN_SECONDS
    signed = Vapid02(read_push_key(root)).sign({"sub": sender, "aud": address.origin, "exp": expires})
    body = http_ece.encrypt(text, private_key=ec.generate_private_key(ec.SECP256R1()), dh=point, auth_secret=shared)
    headers = {
        **signed,
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(KEEP_SECONDS),
        "Topic": "cards",  # one that the phone has not got yet is replaced
        "Urgency": "normal",
    }
    try:
        status, answer = _post(address, body, headers)
    except (OSError, HTTPException) as error:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise Undelivered(escape_text(f"{address.host}: {reason}")) from None
    if status in (404, 410):
        raise PhoneGone
    if not 200 <= status < 300:
        raise Undelivered(escape_text(f"{address.host}: {' '.join([str(status), *answer.split()])}"))


def _public_host(contact: str) -> str:
    """The page's name in a form that push services take as a contact."""
    host = urlsplit(contact).hostname or ""
    return host if re.fullmatch(r"[\w-]+(?:\.[\w-]+)+", host, re.ASCII) else "localhost"


def _post(address: PushAddress, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    """Status and beginning of the answer. Raises ``OSError``, ``HTTPException``."""
    import ssl
    from http.client import HTTPSConnection

    with closing(_connect(address)) as raw:
        tls = ssl.create_default_context().wrap_socket(raw, server_hostname=address.host)
        with closing(HTTPSConnection(address.host, address.port)) as connection:
            connection.sock = tls
            connection.request("POST", address.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(_MAX_ANSWER).decode("utf-8", "replace")


def _connect(address: PushAddress) -> socket.socket:
    """A connection to the host; where the settings do not name it, never to this machine or network. Raises
    ``OSError``."""
    import ipaddress
    import socket

    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    places = [place[4] for place in found if address.is_named or ipaddress.ip_address(str(place[4][0])).is_global]
    if not places:
        raise OSError("its name leads to this machine or network")
    for number, place in enumerate(places, 1):
        try:
            return socket.create_connection((str(place[0]), int(place[1])), timeout=NETWORK_SECONDS)
        except OSError:
            if number == len(places):
                raise
    raise OSError("it has no address")
