from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Workspace
from modelled import open_host

from cleared.domains import installed_domains
from cleared.gate import static_checks
from cleared.jobs import job_types
from cleared.runs.execution import run_agent
from cleared.service.operations import table

_SCRIPT = """
note_ask(note_put("buy milk"))
note_ask(note_put("buy bread"))
"""


@pytest.fixture
def noted(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace of a program that has the domain ``notes``, too. What is put together once in a process, of the books
    alone, stays."""
    assert static_checks and job_types and table
    monkeypatch.setattr(installed_domains, "BUILT_IN", (*installed_domains.BUILT_IN, "notes_domain:NOTES"))
    installed_domains.forget_domains()
    yield ws
    monkeypatch.undo()
    installed_domains.forget_domains()


@pytest.fixture
def asked(noted: Workspace) -> Workspace:
    """Two notes that a run made, each with a card."""
    noted.agent("probe", _SCRIPT, "grants: [notes.write]\n")
    assert run_agent(open_host(noted.root), "probe").error is None
    return noted
