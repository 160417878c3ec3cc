"""Keeping secrets out of everything a run writes or shows: those of the configuration, and what looks like one.

One redaction for all: what scripts pass, traces, logs, cards, commits, notifications, spans, and the output of jobs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from cleared.workspace.settings.model import Config
from cleared.workspace.settings.setting_keys import to_plain_values

REDACTED: Final = "[redacted]"
SECRET_NAMES: Final = r"api_?key|token|password|passwd|secret|private_?key|credential"
"""What the names of secrets have in them, as a pattern that knows no case."""
_SECRET: Final = re.compile(SECRET_NAMES, re.IGNORECASE)
_NO_SECRETS: Final = frozenset({"api_key_env", "max_tokens"})
"""Names that only look like a secret's."""
MIN_LENGTH: Final = 6
"""A shorter value would be found in words that have nothing to do with it."""

# A key without an end goes on while its lines are base64, or what begins an encrypted one; JSON ends them by \n.
_KEY_LINE: Final = (
    r"(?:\r?\n|(?:\\r)?\\n)[ \t]*(?:(?:Proc-Type|DEK-Info):[^\n\"\\]{0,200}|[A-Za-z0-9+/=]*+)"
    r"(?=[ \t]{0,80}(?:[\r\n\"\\]|\Z))"
)
_KEY: Final = (
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"(?:(?:[^\"-]|-(?!----)){0,16000}-----END [A-Z ]{0,40}PRIVATE KEY-----"
    rf"|(?:[ \t]{{0,80}}+{_KEY_LINE}|[ \t]+[A-Za-z0-9+/=]{{16,}}+){{0,256}})"
)
# No group is possessive or atomic: before 3.11.5 Python matches such a one wrongly (gh-106052).
# A signed token, with what its word begins with. Each word is looked through once, and the first place decides:
# a word can hold a hundred thousand places where one might begin.
_WORD: Final = "[A-Za-z0-9_-]"
_SIGNED: Final = (
    rf"(?<!{_WORD})(?:(?!(?<![A-Za-z0-9])eyJ){_WORD})*(?<![A-Za-z0-9])eyJ"
    rf"{_WORD}{{10,}}+\.{_WORD}{{10,}}+\.{_WORD}{{5,}}+"
)
# Each repeats a bounded number of times where it can begin at many places of one word: programs print what they like.
# No shape matches a quote, and none but a key a backslash: JSON that holds a secret is JSON afterwards.
_SHAPES: Final = (
    r"(?<![A-Za-z0-9])(?:sk-[A-Za-z0-9_-]{16,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,})"
    rf"|{_SIGNED}"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{12,}"
    r"|(?<=://)[^\s/@:\"\\]{1,100}:[^\s/@\"\\]{3,200}(?=@)"
    rf"|{_KEY}"
)
"""Compiled when a text may have one, as that takes as long as five modules to import."""
_PLAIN_MARKS: Final = ("sk-", "glpat-", "xox", "SG.", "AKIA", "ASIA", "AIza", "eyJ", "earer ", "://", "PRIVATE KEY")
_UNDERSCORED_MARKS: Final = (
    *("k_live_", "k_test_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "npm_", "hf_"),
    *_PLAIN_MARKS,
)
"""A text that holds none of these has none of the shapes, and to see that takes a tenth of the time."""
_ASSIGNED: Final = rf"(?i)((?:{SECRET_NAMES})[a-z0-9_]{{0,64}}+[\"']?\s*+[=:]\s*+[\"']?)([^\s\"',;]{{6,}})"


class Redactor(Struct, frozen=True):
    """Replaces the secrets it knows, and well-known shapes of keys, tokens and passwords in URLs."""

    secrets: tuple[str, ...] = ()

    def add_secrets(self, more: Iterable[str]) -> Redactor:
        """One that knows these too."""
        return redactor_of_secrets([*self.secrets, *more])

    def redact_text(self, text: str) -> str:
        """The text without them. Text may be JSON, and is JSON then."""
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, REDACTED)
        for mark in _UNDERSCORED_MARKS if "_" in text else _PLAIN_MARKS:
            if mark in text:
                return re.sub(_SHAPES, REDACTED, text)
        return text

    def redact_output(self, text: str) -> str:
        """A program's output: what is assigned to the name of a secret is taken out of it too. Bank texts and books
        are not read so: ``TOKEN: 123456`` may be all that a bank has to say."""
        return re.sub(_ASSIGNED, lambda match: match[1] + REDACTED, self.redact_text(text))

    def find_secrets(self, text: str) -> list[str]:
        """The secrets in a text."""
        return [*(s for s in self.secrets if s in text), *(m.group() for m in re.finditer(_SHAPES, text))]

    def redact_data(self, value: Any) -> Any:
        """The same for every text in plain data, dict keys too."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, Mapping):
            return {self.redact_data(k): self.redact_data(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.redact_data(v) for v in value)
        return value


@lru_cache(maxsize=4096)
def is_secret(key: str) -> bool:
    """Whether a key's value is one that nobody but its user may read: a key, token, password."""
    if _SECRET.search(key) is None:
        return False
    return any(part not in _NO_SECRETS and _SECRET.search(part) is not None for part in key.split("."))


def list_config_secrets(config: Config) -> list[str]:
    """The values of this configuration's secret keys (keys, tokens, passwords)."""
    found: list[str] = []
    pending: list[tuple[Any, bool]] = [(config.data or to_plain_values(config), False)]
    while pending:
        value, secret = pending.pop()
        if isinstance(value, Mapping):
            pending += [(inner, secret or is_secret(str(key))) for key, inner in value.items() if inner is not None]
        elif isinstance(value, list):
            pending += [(inner, secret) for inner in value]
        elif secret and isinstance(value, str) and len(value.strip()) >= MIN_LENGTH:
            found.append(value.strip())
    return found


def redactor_of_secrets(secrets: Iterable[str]) -> Redactor:
    """For these secrets, also as JSON writes them."""
    written = {form for s in secrets for form in (s, json.dumps(s)[1:-1], json.dumps(s, ensure_ascii=False)[1:-1])}
    return Redactor(tuple(sorted(written, key=len, reverse=True)))
