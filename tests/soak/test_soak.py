"""A short soak; a long one is ``python -m tests.soak --files 2000``."""

from __future__ import annotations

from pathlib import Path

import pytest
from soak_campaign import campaign


@pytest.mark.usefixtures("plain_environment")
def test_c8_files_dropped_while_the_service_is_killed_give_the_books_of_an_undisturbed_run(tmp_path: Path) -> None:
    """Row C8: SIGKILL and restart, nothing lost, nothing twice."""
    told = campaign(tmp_path, 60, 7)
    assert told.kills >= 3 and told.terms >= 1
