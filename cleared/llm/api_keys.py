"""Which model is asked, where, and with which key: what the approved settings say of it, and the keys of providers.

Keys come from the environment, or from the system's keyring, never from a file of the workspace.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, UsageError, WorkspaceError
from cleared.workspace.settings.model import Llm
from cleared.workspace.settings.secrets import MIN_LENGTH

if TYPE_CHECKING:
    from urllib.parse import SplitResult


_T = TypeVar("_T")
_SERVICE: Final = "cleared"
_KEYRING_PATIENCE: Final = 20.0
"""Seconds: a keyring that is locked asks its user first."""


class ApiKey(Struct, frozen=True):
    """A key, and in words where it is from; not to be seen where it is shown."""

    text: str
    source: str

    def __repr__(self) -> str:
        return f"ApiKey(source={self.source!r})"


def list_environment_keys(llm: Llm, environ: Mapping[str, str]) -> list[str]:
    """The keys that the environment holds, used or not: what must not get into anything that is written."""
    names = {*KEY_VARIABLES.values(), *([llm.api_key_env] if llm.api_key_env else [])}
    values = (environ.get(name, "").strip() for name in names)
    return [value for value in values if len(value) >= MIN_LENGTH]


def find_api_key(choice: ModelChoice, environ: Mapping[str, str]) -> ApiKey | None:
    """The key for the server of ``choice``; None where there is none.

    Raises ``WorkspaceError`` for what cannot be a key, ``PolicyError`` where it would cross a network unencrypted.
    """
    key = _read_variable(choice, environ) or _read_keyring(choice)
    if key is None:
        return None
    if len(key.text) < MIN_LENGTH or not key.text.isascii() or not key.text.isprintable() or " " in key.text:
        raise WorkspaceError(f"what stands in {key.source} cannot be a key", remedy="Copy it once more, in one line.")
    if choice.is_readable_on_the_way:
        raise PolicyError(
            f"the key in {key.source} would go to {choice.server} over plain http, for all to read on the way",
            remedy="Use an https address as llm.base_url, or take the key away where the server needs none.",
        )
    return key


def require_api_key(choice: ModelChoice, environ: Mapping[str, str]) -> ApiKey | None:
    """The same; raises ``WorkspaceError`` where the server needs a key and there is none."""
    key = find_api_key(choice, environ)
    if key is None and choice.needs_key:
        raise WorkspaceError(
            f"there is no key for {choice.provider}",
            remedy=f"Put it into the environment (export {choice.key_variable}=…), or into the system's keyring: "
            "cleared llm key.",
        )
    return key


def store_api_key(choice: ModelChoice, key: str) -> None:
    """Put a key for this server into the system's keyring. Raises ``UsageError`` where there is no keyring."""
    keyring = _import_keyring()
    if keyring is None:
        raise UsageError(
            "the keyring needs one more package", remedy="In the checkout: pip install keyring. Or use the environment."
        )
    _ask_keyring(lambda: keyring.set_password(_SERVICE, choice.server, key))


def remove_api_key(choice: ModelChoice) -> bool:
    """Take the key for this server out of the keyring; whether there was one."""
    keyring = _import_keyring()
    if keyring is None or _read_keyring(choice) is None:
        return False
    _ask_keyring(lambda: keyring.delete_password(_SERVICE, choice.server))
    return True


def _read_variable(choice: ModelChoice, environ: Mapping[str, str]) -> ApiKey | None:
    name = choice.key_variable
    text = environ.get(name, "").strip() if name else ""
    return ApiKey(text, f"the variable {name}") if text else None


def _read_keyring(choice: ModelChoice) -> ApiKey | None:
    keyring = _import_keyring()
    if keyring is None:
        return None
    try:
        text = _ask_keyring(lambda: keyring.get_password(_SERVICE, choice.server))
    except UsageError:
        return None  # no keyring runs here, as on a server
    return ApiKey(text.strip(), "the system's keyring") if text and text.strip() else None


def _import_keyring() -> Any:
    try:
        import keyring
    except ImportError:
        return None
    return keyring


def _ask_keyring(ask: Callable[[], _T]) -> _T:
    """What the keyring answers; one that hangs is given up. Raises ``UsageError``."""
    answers: list[_T] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # noqa: BLE001  # a back end is a plug-in, and may raise anything
            problems.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_KEYRING_PATIENCE)
    if not answers:
        why = f" ({type(problems[0]).__name__})" if problems else " in time"
        raise UsageError(
            f"the system's keyring did not answer{why}", remedy="Unlock it, or put the key into the environment."
        )
    return answers[0]


PROVIDER_URLS: Final = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
"""Where the providers' own servers are."""
KEY_VARIABLES: Final = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
"""The variables of the environment that hold their keys."""


class ModelChoice(Struct, frozen=True):
    """``base_url``: None for the provider's own server. ``key_variable``: None where no variable is read."""

    provider: str
    model: str
    base_url: str | None = None
    key_variable: str | None = None

    @property
    def url(self) -> str:
        """Where the calls go."""
        return self.base_url or PROVIDER_URLS[self.provider]

    @property
    def server(self) -> str:
        """``host:port``: whose server it is. A key in the keyring belongs to one of these."""
        parts = self._split_url()
        return f"{(parts.hostname or '').lower()}:{parts.port or (443 if parts.scheme == 'https' else 80)}"

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        import ipaddress  # no command but those that ask a model needs it

        host = self._split_url().hostname or ""
        if host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def is_readable_on_the_way(self) -> bool:
        """Whether what is sent crosses a network unencrypted."""
        return self._split_url().scheme == "http" and not self.is_local

    def _split_url(self) -> SplitResult:
        from urllib.parse import urlsplit

        return urlsplit(self.url)

    @property
    def needs_key(self) -> bool:
        """Whether the server refuses a call without a key, as far as that is known."""
        return self.base_url is None


def read_model_choice(llm: Llm) -> ModelChoice:
    """The model that the settings name. A variable of the environment that is meant for the provider's own server is
    not read for another one: its key would be sent there. Raises ``WorkspaceError`` where none is named."""
    for key in ("provider", "model"):
        if getattr(llm, key) is None:
            first = "cleared config set llm.provider anthropic, then " if llm.provider is None else ""
            raise WorkspaceError(
                "no language model is set up",
                place=Place("config.yaml", field=f"llm.{key}"),
                remedy=f"Name one: {first}cleared config set llm.model NAME.",
            )
    assert llm.provider is not None and llm.model is not None
    variable = llm.api_key_env or (KEY_VARIABLES[llm.provider] if llm.base_url is None else None)
    return ModelChoice(llm.provider, llm.model, llm.base_url, variable)
