"""What the server does while nobody waits for an answer."""

from __future__ import annotations

import threading

import pytest
from harness import Workspace
from patience import PATIENCE
from web_client import Server

from cleared.changes.workspace_opening import open_workspace
from cleared.cli.machine_errors import as_refusal
from cleared.web.page_server import PageServer, serve_in_background

pytestmark = pytest.mark.slow


def test_the_server_tidies_up_once_it_is_ready_and_after_who_has_asked(posted: Workspace) -> None:
    tidied = threading.Semaphore(0)
    with serve_in_background(PageServer([posted.root], open_workspace, as_refusal, 0, tidy_up=tidied.release)) as place:
        server = Server.at(place["url"], place["code"])
        assert tidied.acquire(timeout=PATIENCE), "once what is read ahead is read"
        server.sign_in(server.code)
        assert server.get("/queue").status == 200
        assert tidied.acquire(timeout=PATIENCE)
