"""The HTTP API: what ``cleared rpc`` offers, for programs that show a token. Rows C10, I4."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace, here
from program_client import Program, sign, webhook_agent
from web_client import Server, inner_server

from cleared.api.rpc.methods import COMMANDS
from cleared.service.operations.table import OPERATIONS
from cleared.web.client_file import FOLDER
from cleared.web.http_api import needed_scope
from cleared.workspace.location import cleared_home


@pytest.fixture
def server(posted: Workspace) -> Iterator[Server]:
    with inner_server(posted.root) as server:
        yield server


def token(ws: Workspace, name: str, scope: str = "read") -> str:
    return str(ws.json("token", "add", name, "--scope", scope)["token"])


def test_c10_a_method_gives_what_rpc_and_the_command_give(
    server: Server, posted: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    """Row C10: one path, one record; the token is in none."""
    program = Program(server, token(posted, "runner", "run"))
    assert program.call("journal.balance") == (200, {"result": posted.json("journal", "balance")})
    assert program.call("accounts_list")[1]["result"][0]["account_id"], "a primitive that reads"
    posted.agent("probe", 'ctx_emit("probe.done")\nctx_event()["payload"]')
    status, answer = program.call("agent.run", name="probe", data={"n": 1})
    assert status == 200 and answer["result"]["status"] == "succeeded" and answer["result"]["result"] == {"n": 1}
    assert posted.json("run", "list")[0]["run_id"] == answer["result"]["run_id"]
    for method, params, expected in (
        ("journal.lst", {}, 404),
        ("journal.list", {"month": 5}, 400),
        ("run.show", {"id": "nothing"}, 400),
        ("journal_add_double", {}, 403),
        ("script_run", {}, 403),
        ("queue.confirm", {}, 404),
        ("agent.approve", {}, 404),
        ("agent.propose", {}, 404),
    ):
        status, answer = program.call(method, **params)
        assert status == expected and answer["error"]["message"], (method, status, answer)
    texts = [path.read_bytes() for path in (posted.root / ".cleared").rglob("*") if path.is_file()]
    assert not [text for text in [capfd.readouterr().err.encode(), *texts] if program.token.encode() in text]


def test_i4_without_a_token_that_counts_nothing_is_answered(server: Server, posted: Workspace) -> None:
    """Row I4: no cookie helps, no token decides, and one that reads does not run."""
    reader, head = token(posted, "reader"), posted.head()
    for shown in ("", "Bearer", "Bearer x", f"Basic {reader}", f"Bearer {reader[:-1]}", f"Bearer {reader}x"):
        page = Program(server).send("POST", "/api/accounts.list", Authorization=shown or None)
        assert page.status == 401 and page.headers["www-authenticate"] == "Bearer", shown
    server.sign_in(server.code)
    assert server.send("POST", "/api/accounts.list", headers={"Origin": server.url}).status == 401, "a session is none"
    program = Program(server, reader)
    assert program.send("POST", "/api/accounts.list", Origin="http://evil.example").status == 403
    assert program.send("POST", "/api/accounts.list", Host="evil.example").status == 400
    assert program.call("agent.run", name="ingest")[0] == 403
    assert program.send("POST", "/queue", b"card=1").status == 403, "nor is a token a session"
    assert program.send("POST", "/api/accounts.list", b"x" * (1 << 20 | 1)).status == 413
    assert program.send("GET", "/api/accounts.list").status == 405 and program.send("GET", "/api/none").status == 405
    for body in (b"{", b"3", b"\xff", b"[" * 300 + b"]" * 300):
        assert program.send("POST", "/api/accounts.list", body).status == 400
    posted.ok("token", "remove", "reader")
    assert program.call("accounts.list")[0] == 401, "at once"
    assert posted.head() == head


def test_no_method_decides() -> None:
    assert {o.effect for o in COMMANDS.values()} == {"read", "run"}
    assert {name for name in OPERATIONS if needed_scope(name) == "run"} == {"agent.run"}


def test_an_unknown_method_is_answered_with_one_that_there_is(server: Server, posted: Workspace) -> None:
    program = Program(server, token(posted, "reader"))
    document = json.loads(program.send("GET", "/api/openapi.json").body)
    offered = {path.removeprefix("/api/") for path in document["paths"]}
    hints = {name: program.call(name)[1]["error"]["data"]["remedy"] for name in ("journal.lst", "queue.ask", "ctx.log")}
    assert hints["journal.lst"] == "Did you mean journal.list?"
    named = {found for hint in hints.values() for found in re.findall(r"Did you mean (.*)\?", hint)}
    assert named <= offered, hints


def test_the_openapi_document_has_every_method_and_leads_nowhere_else(server: Server, posted: Workspace) -> None:
    program = Program(server, token(posted, "reader"))
    page = program.send("GET", "/api/openapi.json")
    document = json.loads(page.body)
    assert document["openapi"].startswith("3.") and Program(server).send("GET", "/api/openapi.json").status == 401
    names = {path.removeprefix("/api/") for path in document["paths"]}
    assert names >= set(COMMANDS) and "accounts_get" in names and "journal_add_double" not in names
    for ref in re.findall(r'"\$ref": ?"([^"]*)"', page.body):
        assert ref.split("/")[-1] in document["components"]["schemas"] and ref.startswith("#/components/schemas/")
    shape = document["paths"]["/api/journal.list"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert shape["properties"]["month"]["type"] == ["string", "null"]


def test_a_token_is_stored_as_a_digest_outside_of_git(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    made = token(posted, "monitor")
    assert made.startswith("cleared_") and posted.json("token", "list")[0]["name"] == "monitor"
    [path] = (cleared_home() / FOLDER).iterdir()
    assert made not in path.read_text() and path.stat().st_mode & 0o077 == 0
    assert made not in posted.git("log", "-p", "--all") and posted.git("status", "--porcelain") == ""
    assert posted("token", "add", "monitor").code == 2 and posted("token", "add", "../x").code == 2
    assert posted("token", "add", "m2", "--scope", "decide").code == 2 and posted("token", "remove", "nobody").code == 2
    path.chmod(0o644)
    assert posted("token", "list").code == 4, "others could have read it"
    path.chmod(0o600)
    path.write_text("{")
    assert posted("token", "list").code == 4
    path.unlink()
    monkeypatch.setenv("CLEARED_JOB", "job_1")
    assert posted("token", "add", "m3").code == 3, "a job makes no token"


def test_metrics_are_for_a_token_and_health_for_anybody(server: Server, posted: Workspace) -> None:
    program = Program(server, token(posted, "monitor"))
    assert Program(server).send("GET", "/metrics").status == 401
    page = program.send("GET", "/metrics")
    assert page.status == 200 and page.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = dict(line.rsplit(" ", 1) for line in page.body.splitlines() if not line.startswith("#"))
    assert values["cleared_service_up"] == "0" and values["cleared_cards_open"] == "2"
    assert values['cleared_deliveries{state="waiting"}'] == "0" and 'cleared_agents{state="starter"}' in values
    assert 'cleared_last_run_failed{agent="ingest"}' in values
    assert Program(server).send("GET", "/healthz").body == '{"ok":true}'


def test_each_of_several_workspaces_has_its_own_tokens(posted: Workspace, tmp_path: Path) -> None:
    other = Workspace(tmp_path / "club")
    assert here("init", str(other.root), "--name", "Club").code == 0
    mine, theirs, secret = token(posted, "a"), token(other, "a"), webhook_agent(other)
    with inner_server(posted.root, other.root) as server:
        for name, shown, status in (
            ("books", mine, 200),
            ("club", theirs, 200),
            ("books", theirs, 401),
            ("club", mine, 401),
        ):
            assert Program(server, shown).send("POST", f"/w/{name}/api/accounts.list").status == status
        body = b'{"order": 1}'
        hooks = [
            Program(server).send("POST", f"/w/{name}/hooks/orders", body, **sign(secret, body, "m1"))
            for name in ("club", "books")
        ]
        assert [page.status for page in hooks] == [202, 401]
        assert Program(server, mine).send("POST", "/w/none/api/accounts.list").status == 404
        assert Program(server, mine).send("POST", "/api/accounts.list").status in (303, 404)
