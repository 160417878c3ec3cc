"""Real PostgreSQL, in a folder of the tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleets import FleetOfOne, new_database, running_cluster, skip_without_postgres
from harness import Workspace

from cleared.service.fleet.local_postgres import LocalPostgres

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """A PostgreSQL that is up."""
    skip_without_postgres()
    base = tmp_path_factory.getbasetemp()
    with running_cluster(f"{base.parent.name}-{base.parent.stat().st_ino}", base.name) as made:
        yield made


@pytest.fixture
def database(cluster: LocalPostgres) -> Iterator[str]:
    """The URL of an empty database."""
    with new_database(cluster, f"fleet{next(_NUMBERS)}") as url:
        yield url


@pytest.fixture
def fleet(ws: Workspace, database: str, tmp_path: Path) -> Iterator[FleetOfOne]:
    """A fleet with one workspace."""
    made = FleetOfOne(ws, database, tmp_path)
    made.add()
    yield made
    made.end_all()
