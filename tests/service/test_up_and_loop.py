"""``cleared up`` and ``cleared loop`` are told apart in the same sentence wherever one meets them."""

from __future__ import annotations

import pytest
from harness import here

import cleared.service
import cleared.work.loop
from cleared.workspace.settings.model import Loop, Triggers

SENTENCE = (
    "cleared up runs agents when their triggers fire; cleared loop runs jobs, one at a time, in the order they are "
    "asked for."
)


@pytest.mark.parametrize("owner", [cleared.work.loop, cleared.service, Loop, Triggers])
def test_the_docstrings_say_it(owner: object) -> None:
    assert SENTENCE in " ".join((owner.__doc__ or "").replace("``", "").split())


@pytest.mark.parametrize("command", ["up", "loop"])
def test_the_help_says_it(command: str) -> None:
    assert SENTENCE in " ".join(here(command, "--help").out.split())
