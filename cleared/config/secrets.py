"""Keeping the configuration's secrets out of everything a run writes or shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cleared.config.load import is_secret, plain
from cleared.config.model import Config

REDACTED: Final = "[redacted]"
MIN_LENGTH: Final = 6
"""A shorter value would be found in words that have nothing to do with it."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces secret values in texts. False where there are none: callers skip the work."""

    secrets: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.secrets)

    def text(self, text: str) -> str:
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, REDACTED)
        return text

    def data(self, value: Any) -> Any:
        """The same for every text in plain data, dict keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.data(k): self.data(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.data(v) for v in value)
        return value


def redactor(config: Config) -> Redactor:
    """For the values of this configuration's secret keys (keys, tokens, passwords)."""
    return Redactor(tuple(sorted(set(_secrets(plain(config))), key=len, reverse=True)))


def _secrets(value: Any, secret: bool = False) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _secrets(inner, secret or is_secret(str(key)))
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets(inner, secret)
    elif secret and isinstance(value, str) and len(value.strip()) >= MIN_LENGTH:
        yield value.strip()
