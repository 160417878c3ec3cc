"""A workspace whose approved settings name a model on the fake provider, and doors to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fake_provider import FakeProvider
from harness import CLOCK, Workspace, take_ok

from cleared.base.clock import clock_from
from cleared.changes.host import Host
from cleared.changes.workspace_opening import open_workspace
from cleared.llm.model_door import ModelDoor, open_model_door

MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-4.1", "openrouter": "openai/gpt-4.1"}
KEY = "planted-key-0123456789"


def use_model(ws: Workspace, provider: FakeProvider, kind: str = "anthropic", **settings: str) -> None:
    """Approve settings that lead to the fake provider. ``settings`` are those of ``llm`` besides."""
    url = provider.anthropic_url if kind == "anthropic" else provider.openai_url
    values = {"provider": kind, "model": MODELS[kind], "base_url": url, "api_key_env": "TEST_MODEL_KEY", **settings}
    path = ws.root / "config.yaml"
    lines = "".join(f"  {name}: {value}\n" for name, value in values.items())
    path.write_text(path.read_text() + f"\nllm:\n{lines}")
    take_ok(ws, "config", "approve")


def open_host(root: Path, at: str = CLOCK, messages: list[str] | None = None) -> Host:
    return open_workspace(root, clock=clock_from(at), say=messages.append if messages is not None else None)


class Pauses:
    """In place of sleeping: what was waited for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def door_of(
    host: Host, pauses: Pauses | None = None, environ: Mapping[str, str] | None = None, **how: Any
) -> ModelDoor:
    """A door as a session opens it."""
    options: dict[str, Any] = {"purpose": "test", "sleep": pauses or Pauses(), **how}
    return open_model_door(host, environ={"TEST_MODEL_KEY": KEY} if environ is None else environ, **options)
