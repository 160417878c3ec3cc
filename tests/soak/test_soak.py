"""A short soak; a long one is ``python -m tests.soak --files 2000``."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace
from soak_campaign import campaign
from soak_looks import look_beside_imports

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("plain_environment")
def test_c8_files_dropped_while_the_service_is_killed_give_the_books_of_an_undisturbed_run(tmp_path: Path) -> None:
    """Row C8: SIGKILL and restart, nothing lost, nothing twice."""
    told = campaign(tmp_path, 60, 39)
    assert told.kills >= 3 and told.terms >= 1


def test_a_look_beside_imports_finds_nothing_that_is_not_so(ws: Workspace) -> None:
    assert look_beside_imports(ws, 25) >= 3
    ws.in_order()
