"""The passphrase of the approval key on the full screen."""

from __future__ import annotations

import asyncio

from textual.app import App
from textual.widgets import Input

from cleared.cli.tui.dialogs import AskPassphrase, passphrase_dialog


async def _answer(*keys: str) -> str | None:
    app: App[None] = App()
    async with app.run_test() as pilot:
        asked = asyncio.create_task(asyncio.to_thread(passphrase_dialog(app), "Passphrase of the approval key: "))
        while not (isinstance(app.screen, AskPassphrase) and app.screen.ready):
            await pilot.pause(0.01)
        assert app.screen.query_one(Input).password
        await pilot.press(*keys)
        return await asked


def test_a_passphrase_is_typed_unseen_or_not_at_all() -> None:
    assert asyncio.run(_answer(*"geheim", "enter")) == "geheim"
    assert asyncio.run(_answer("g", "escape")) is None
