"""A session's tools over a real workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from harness import Workspace
from tool_session import Session


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Callable[[Workspace], Session]]:
    with ExitStack() as stack:

        def start_session(ws: Workspace) -> Session:
            session = Session(ws)
            stack.callback(session.tools.close)
            return session

        yield start_session


@pytest.fixture
def session(ws: Workspace, start: Callable[[Workspace], Session]) -> Session:
    return start(ws)
