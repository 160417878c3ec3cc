"""Each way to send a message that the settings allow has its channel, and no other is declared."""

from __future__ import annotations

from typing import get_args, get_type_hints

from cleared.service.notify.channels import CHANNELS
from cleared.workspace.settings.model import Notifications


def test_the_channels_are_the_methods_of_the_settings() -> None:
    literal, _ = get_args(get_type_hints(Notifications)["method"])
    assert set(get_args(literal)) == {"none", *CHANNELS}
