"""Which model is asked, and where: what the approved settings say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleared.base.errors import Place, WorkspaceError
from cleared.workspace.settings.model import Llm

if TYPE_CHECKING:
    from urllib.parse import SplitResult

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


@dataclass(frozen=True, slots=True)
class ModelChoice:
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
