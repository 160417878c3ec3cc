"""Colours and layout of the screen, as Textual reads them."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

CALM: Final = Theme(
    name="calm",
    primary="#8fb3d9",
    secondary="#9aa7b5",
    accent="#e0b870",
    background="#14181d",
    surface="#14181d",
    panel="#1c2229",
    foreground="#dde3ea",
    dark=True,
)

CSS: Final = """
Screen { layout: vertical; background: $background; }
#head { height: 1; padding: 0 1; background: $panel; color: $foreground; }
#body { height: 1fr; layout: vertical; }
#card { height: 1fr; border: round $secondary; border-title-color: $primary; border-title-style: bold;
        border-subtitle-color: $accent; padding: 0 1; scrollbar-size-vertical: 1; }
#card:focus { border: round $secondary; }
#list { height: 7; border: round $panel; border-title-color: $secondary; padding: 0 1; }
.-wide #body { layout: horizontal; }
.-wide #card { width: 1fr; }
.-wide #list { width: 52; height: 1fr; }
#message { height: 1; padding: 0 2; color: $accent; }
#keys { height: 1; padding: 0 1; background: $panel; }
Dialog { align: center middle; background: $background 60%; }
Dialog .frame { width: 76; max-width: 96%; height: auto; max-height: 92%; border: round $primary;
                border-title-color: $primary; border-title-style: bold; background: $background; padding: 0 1; }
Dialog .hint { color: $secondary; height: 1; margin-top: 1; }
Dialog Input { border: none; height: 1; background: $panel; padding: 0 1; margin-top: 1; }
Dialog Input:focus { border: none; }
Dialog .covered { height: auto; max-height: 10; margin-bottom: 1; }
AskAccount #found { height: 9; margin-top: 1; }
ViewText .frame { width: 96%; height: 92%; }
ViewText .wide { width: auto; }
ViewText .pane { overflow-x: auto; scrollbar-size-horizontal: 1; height: 1fr; scrollbar-size-vertical: 1; }
"""
