"""Checks of texts that name something outside: a mail address, a server, a model, a variable of the environment.

Each returns the complaint, or None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_MAIL = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?"


def check_mail_address(value: str) -> str | None:
    return None if re.fullmatch(_MAIL, value) else f"{value[:60]!r} is not a mail address such as me@example.com"


def check_host_name(value: str) -> str | None:
    good = re.fullmatch(r"[A-Za-z0-9.:-]{1,253}", value)
    return None if good else f"{value[:60]!r} is not a server's name such as mail.example.com"


def check_push_hosts(value: Sequence[str]) -> str | None:
    wrong = [each for each in value if not re.fullmatch(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::[1-9][0-9]{0,4})?", each)]
    return f"{wrong[0][:60]!r} is not the name of a push service such as push.example.com" if wrong else None


def check_base_url(value: str) -> str | None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not re.fullmatch(r"[!-~]{1,500}", value):
        return f"{value[:60]!r} is not an address such as http://127.0.0.1:11434/v1"
    if "@" in parts.netloc:
        return "must not hold a user or password"
    return "must not have a ? or # part" if "?" in value or "#" in value else None


def check_model_name(value: str) -> str | None:
    return None if re.fullmatch(r"[!-~]{1,120}", value) else f"{value[:60]!r} is not the name of a model"


def check_variable(value: str) -> str | None:
    good = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", value, re.ASCII)
    # Who writes the key here is not told so by quoting it.
    return None if good else "must be the name of an environment variable such as ANTHROPIC_API_KEY, not the key"
