"""Rows A1–A3, A5–A8, A11–A18, B11, B13–B15, I3: an agent script, from its header to its commit."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from harness import (
    ATTESTED,
    CLOCK,
    LOG,
    QUEUE,
    Workspace,
    chase,
    command,
    fails,
    here,
    journal_rows,
    no_traceback,
    refused,
    unchanged,
)
from patience import PATIENCE

from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now
from cleared.git.refs import HeadMoved

POST = 'journal_add_double("2025-01-03", "GITHUB", 5020, 1010, "4.00")'
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


# -- headers, results, lint -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "said", "line"),
    [
        ("trigger: on_demand", "name", 1),
        ("name: x\ntrigger: sometimes", "sometimes", 3),
        ("name: x\ntrigger: schedule\nschedule: 0 6 * *", "schedule", 4),
        ("name: x\ntrigger: schedule\nschedule: 99 6 * * *", "schedule", 4),
        ("name: x\ntriger: on_demand", "triger", 3),
        ("name: x\ntrigger: schedule", "schedule", 3),
        ("name: x\ntrigger: [on_demand", "trigger", 3),
        ("name: x\nwatch: ../elsewhere", "watch", 3),
    ],
)
def test_a1_a_header_that_is_wrong(ws: Workspace, header: str, said: str, line: int) -> None:
    """A1: missing name, unknown trigger, bad cron, unknown key: the refusal names the field and line."""
    path = ws.put("agents/bad.py", f'"""\n{header}\n"""\n1 + 1\n')
    ws.commit("agents/bad.py", *ws.approve("agents/bad.py"))
    with unchanged(ws):
        refused(ws("agent", "run", "bad"), 3, f"agents/{path.name}", said, "not run")
        refused(ws("agent", "run", "bad", "--dry-run"), 3, said)
    [agent] = [a for a in ws.json("agent", "list") if a["name"] == "bad"]
    assert any(said in f["message"] + f["place"] for f in agent["findings"])
    assert any(f["place"].startswith(f"agents/bad.py:{line}") for f in agent["findings"]), agent["findings"]


def test_a1_no_header_at_all(ws: Workspace) -> None:
    """A1: a script without a header is refused."""
    ws.put("agents/bare.py", "1 + 1\n")
    ws.commit("agents/bare.py")
    with unchanged(ws):
        refused(ws("agent", "run", "bare"), 3, "agents/bare.py")


def test_a2_document_003_on_an_empty_folder_and_on_a_file(ws: Workspace) -> None:
    """A2: the last expression of the branches of the final if is the result; then the real counts."""
    assert ws.run("ingest")["result"] == {"imported": 0, "confirmed": 0, "review": 0}
    ws.drop("january.csv")
    assert ws.run("ingest")["result"] == {"imported": 4, "confirmed": 2, "review": 2}


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("if 1 > 2:\n    1\nelif 2 > 1:\n    if True:\n        'nested'\n    else:\n        3\nelse:\n    4", "nested"),
        ("x = 5", None),
        ("for i in range(3):\n    i", None),
        ("if False:\n    1", None),
        ("(1, [2.5, None, True], {'a': 'b'})", [1, [2.5, None, True], {"a": "b"}]),
        ("def f():\n    return 7\nf()", 7),
    ],
)
def test_a2_results(ws: Workspace, body: str, result: object) -> None:
    """A2: nested branches; nothing where the script ends otherwise."""
    assert ws.script(body)["result"] == result


@pytest.mark.parametrize("body", ["range(5)", "f = 1\ndef g():\n    return 1\ng", "{1, 2}", "{1: 2}", "float('inf')"])
def test_a2_results_that_are_no_data_are_refused(ws: Workspace, body: str) -> None:
    """Sandbox: nothing is silently turned into a string."""
    found = fails(ws, POST + "\n" + body)
    assert "result" in found["error"]["message"].lower() or "finite" in found["error"]["message"]


def test_a2_lines_of_a_traceback_are_the_files(ws: Workspace) -> None:
    """A2: original line numbers, also after comments and over several functions."""
    found = fails(
        ws, "# a\n\ndef inner(x):\n    return 1 // x\n\ndef outer(x):\n    return inner(x)\nouter(0)", "probe.py:8"
    )
    assert found["error"]["type"] == "ZeroDivisionError"
    text = ws("agent", "run", "probe").err
    for where in ("line 12", "line 11", "line 8"):
        assert f'"agents/probe.py", {where}' in text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import os", "import"),
        ("from os import path", "import"),
        ("class A:\n    pass", "class"),
        ("try:\n    1\nexcept ValueError:\n    2", "try"),
        ("with x:\n    1", "with"),
        ("@f\ndef g():\n    1", "decorator"),
        ("compile('1', '', 'exec')", "compile"),
        ("def f():\n    yield 1", "yield"),
        ("async def f():\n    1", "async"),
        ("x = 1\ndel x", "del"),
        ("open('/etc/passwd')", "open"),
        ("eval('1')", "eval"),
        ("exec('1')", "exec"),
        ("__import__('os')", "__import__"),
        ("().__class__", "__class__"),
        ("x = = 1", "agents/probe.py:5"),
    ],
)
def test_a3_constructs_that_are_refused(ws: Workspace, body: str, said: str) -> None:
    """A3: each with line, column and why, before anything runs; exit 3."""
    ws.agent("probe", body)
    with unchanged(ws):
        done = ws("agent", "run", "probe")
        refused(done, 3, said)
    assert re.search(r"agents/probe\.py:\d+:\d+", done.err), done.err


def test_a3_what_only_looks_forbidden_passes(ws: Workspace) -> None:
    """A3: "open(" in a string, f-strings, names that begin like forbidden ones."""
    assert ws.script('opened = 1\nf"open( {opened} import os" + "eval(x)"')["result"] == "open( 1 import oseval(x)"


# -- isolation and limits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "open('/etc/passwd')",
        "import os\nos.environ['HOME']",
        "import socket\nsocket.socket()",
        "import subprocess\n1",
        "import pathlib\npathlib.Path('/etc/passwd').read_text()",
        "import os\nos.kill(1, 0)",
        "input()",
    ],
)
def test_a5_isolation_with_the_lint_off(ws: Workspace, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A5: the sandbox itself has no files, environment, network, processes."""
    from cleared.sandbox import construct_lint

    monkeypatch.setattr(construct_lint, "lint_script", lambda *a, **k: [])
    found = fails(ws, POST + "\n" + body)
    assert "root:" not in json.dumps(found)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while True:\n    pass", "within 1 s"),
        ("x = []\nwhile True:\n    x.append('x' * 100000)", "memory"),
        ("x = 'x' * (1 << 40)", "memory"),
        ("x = 10 ** 10 ** 10", ""),
        ("def f():\n    return f()\nf()", "recursion"),
        ("for i in range(100000):\n    print('x' * 1000)", "print"),
    ],
)
def test_a6_limits(ws: Workspace, body: str, said: str) -> None:
    """A6: failed, by its limit and no other, nothing posted; the next run works."""
    found = fails(ws, POST + "\n" + body, header="timeout: 1\nmemory_mb: 64\n")
    error = found["error"]
    assert said in f"{error['type']} {error['message']} {error['remedy']}".lower(), error
    assert ws.script("1 + 1")["result"] == 2


def test_a6_the_deadline_covers_the_hosts_time(ws: Workspace) -> None:
    """A6: a script that spends its time in primitives is stopped too."""
    body = "while True:\n    accounts_list()"
    error = fails(ws, body, "within 1 s", "`timeout:` in the script's header", header="timeout: 1\n")["error"]
    assert (error["type"], error["line"]) == ("TimeoutError", 7)  # fault 25: the last call's


def test_a6_limits_in_the_config(ws: Workspace) -> None:
    """A6: sandbox.timeout and sandbox.max_calls of the workspace."""
    ws.config("sandbox.timeout=1", "sandbox.max_calls=5")
    fails(ws, "while True:\n    pass", "within 1 s", "cleared config set sandbox.timeout 2", "config approve")
    fails(ws, "for i in range(6):\n    ctx_today()", "5")
    assert ws.script("for i in range(5):\n    ctx_today()\n1")["result"] == 1


def test_a7_fifty_thousand_calls(ws: Workspace) -> None:
    """A7: the cap is ours, not the interpreter's default."""
    assert ws.script("n = 0\nfor i in range(50000):\n    n = n + len(ctx_today())\nn")["result"] == 500_000


def test_a8_a_killed_worker(ws: Workspace) -> None:
    """A8: the sandbox worker is killed in the middle: that run fails cleanly, the next passes."""
    ws.agent("probe", POST + "\nctx_log('now')\nwhile True:\n    pass")
    before = ws.state()
    process = ws.start("agent", "run", "probe")
    assert process.stderr is not None
    assert b"now" in process.stderr.readline()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert children, "the interpreter is a process of its own"
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, err
    assert b"Traceback" not in err or b'File "agents/' in err
    assert ws.state().changed_since(before) <= {ATTESTED, LOG, QUEUE} and ws.entries() == []
    assert ws.script("1 + 1")["result"] == 2


def test_a18_the_worker_is_confined(ws: Workspace) -> None:
    """A18: the level reached is reported by ``cleared doctor``."""
    said = ws("doctor", "--json").out.lower()
    assert "landlock" in said or "seccomp" in said or "confine" in said


# -- failures and the log ---------------------------------------------------------------------------------------------


def test_a11_a_failing_primitive(ws: Workspace) -> None:
    """A11: exit ≠ 0, names primitive, script line and remedy; no commit but the log's."""
    found = fails(ws, POST + "\n\naccounts_get(5021)", "accounts_get", "probe.py:7", "5020")
    assert found["error"]["primitive"] == "accounts_get" and found["error"]["line"] == 7 and found["error"]["remedy"]
    text = ws("agent", "run", "probe")
    assert text.code == 1 and text.out == "" and "agents/probe.py:7" in text.err and "accounts_get" in text.err


def test_a11_failures_latch(ws: Workspace) -> None:
    """A11: whatever a script does with it, a refused call is the end: the draft is discarded."""
    fails(ws, f"{POST}\nx = [accounts_get(1) for i in range(2)]\n{POST}", "accounts_get")


def test_a12_a_run_is_atomic(ws: Workspace) -> None:
    """A12: an error after three entries, a card, an event and a file leaves every file but log and queue as it was."""
    ws.drop("a.csv")
    body = (
        f'{POST}\n{POST}\n{POST}\nqueue_add_review("pending", "x")\nctx_emit("x.y")\n'
        'for t in importer_parse("a.csv"):\n    importer_ignore(t["reference"], "x")\n'
        'importer_mark_processed("a.csv")\ngit_commit("import: all")\n1 // 0'
    )
    found = fails(ws, body, "probe.py:14")
    assert found["error"]["type"] == "ZeroDivisionError"
    [card] = ws.cards()
    assert card["kind"] == "failed_run" and "3 entries were staged and discarded" in card["details"]["not_done"]
    assert not (ws.root / "logs/events-2025-02.jsonl").exists() and (ws.root / "import/a.csv").exists()


def test_a12_the_same_failure_is_one_card(ws: Workspace) -> None:
    """A12: a scheduled agent that fails every night asks once."""
    ws.agent("probe", "1 // 0")
    for _ in range(3):
        assert ws("agent", "run", "probe").code == 1
    assert len(ws.cards()) == 1
    assert ws.read(LOG).count("failed: ") == 3


def test_a13_the_log(ws: Workspace) -> None:
    """A13: every run leaves its rows, failed ones too; they are part of the run's commit; those of a run without a
    commit wait for the next one."""
    ws.script('ctx_log("quiet")')
    assert not (ws.root / LOG).exists() or "quiet" not in ws.read(LOG)
    ws.script(f'ctx_log("loud")\nprint("printed")\n{POST}', name="second")
    header, *rows = journal_rows(ws.read(LOG))
    assert header == ["timestamp", "agent", "action", "details", "entry_id", "commit_hash"]
    said = [(r[1], r[2], r[3]) for r in rows]
    assert ("probe", "log", "quiet") in said and ("second", "log", "loud") in said
    assert ("second", "print", "printed") in said and ("second", "run", "succeeded: 1 entry, 1 card") in said
    assert ("second", "journal_add", "2025-01-03 4.00 GITHUB") in said
    assert LOG in ws.git("show", "--name-only", "--format=", "HEAD")
    fails(ws, 'ctx_log("before")\n1 // 0', name="third")
    rows = journal_rows(ws.read(LOG))
    assert ["log", "before"] in [r[2:4] for r in rows] and rows[-1][3].startswith("failed: ")
    assert all(r[5].startswith("run:2025") for r in rows[1:])
    ws.in_order()


def test_i3_timestamps(posted: Workspace) -> None:
    """I3: UTC ISO 8601, in the log, the queue, the events, the commits, the traces."""
    posted.script(f'ctx_emit("x.y")\n{POST}')
    posted.script("1 // 0", code=1, name="broken")
    posted.script(
        'for e in journal_query():\n    journal_update_status(e["entry_id"], "auto-confirmed")', name="confirm"
    )
    posted.ok("period", "close", "2025-01", "--with-pending", "--despite", "the script's entry is there twice")
    stamps = [r[0] for r in journal_rows(posted.read(LOG))[1:]]
    stamps += [json.loads(x)["created_at"] for x in posted.read(QUEUE).splitlines() if '"open"' in x]
    stamps += [json.loads(x)["at"] for x in posted.read("logs/events-2025-02.jsonl").splitlines()]
    stamps += [c["created_at"] for c in posted.cards("--status", "all")]
    stamps += [r["started_at"] for r in posted.json("run", "list")]
    stamps += [p["at"] for p in posted.json("period", "list")]
    stamps += [posted.trailers()["Clock"]]
    stamps += [r[10] for r in journal_rows(posted.read("books/bank/imports-2025-02.csv"))[1:]]
    assert len(stamps) > 20 and all(UTC.fullmatch(s) for s in stamps), stamps
    assert set(stamps) == {CLOCK}
    assert posted.git("log", "-1", "--format=%aI").strip() in ("2025-02-10T06:00:00+00:00", "2025-02-10T06:00:00Z")


def test_today_and_now(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Config: business.timezone governs ctx_today; times stay UTC; the clock stands still in a run."""
    ws.config("business.timezone=Pacific/Auckland")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T23:30:00+09:00")
    assert ws.script("[ctx_today(), ctx_now(), ctx_now()]")["result"] == [
        "2025-02-11",
        "2025-02-10T14:30:00Z",
        "2025-02-10T14:30:00Z",
    ]
    monkeypatch.setenv("CLEARED_CLOCK", "yesterday")
    with unchanged(ws):
        refused(ws("agent", "run", "probe"), 2, "CLEARED_CLOCK", "2025-02-01T06:00:00Z")


# -- running an agent -------------------------------------------------------------------------------------------------


def test_a14_results_on_stdout_the_rest_on_stderr(ws: Workspace) -> None:
    """A14: the result as JSON, log lines on stderr; as a process, as users run it."""
    ws.drop("january.csv")
    done = ws.process("agent", "run", "ingest")
    assert done.code == 0
    assert json.loads(done.out) == {"imported": 4, "confirmed": 2, "review": 2} and done.out.count("\n") == 1
    assert (
        "ingest: Parsed 4 transactions from january.csv" in done.err
        and "import: 4 transactions from 1 file" in done.err
    )


def test_a14_the_json_object(ws: Workspace) -> None:
    """A14: --json prints one object with exactly the documented keys."""
    ws.drop("january.csv")
    found = ws.run("ingest")
    assert list(found) == [
        "run_id",
        "agent",
        "status",
        "result",
        "commits",
        "entries",
        "rows",
        "kept_values",
        "cards",
        "messages",
        "duration_ms",
        "error",
        "edited",
        "warnings",
    ]
    assert found["agent"] == "ingest" and found["status"] == "succeeded" and found["error"] is None
    assert found["commits"] == [ws.head()] and len(found["entries"]) == 4 and len(found["cards"]) == 2
    failed = ws.script("1 // 0", code=1)
    assert list(failed["error"])[:2] == ["type", "message"]
    assert {"type", "message", "line", "primitive", "remedy"} <= set(failed["error"])


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/b",
        "/etc/passwd",
        "",
        ".",
        "..",
        ".hidden",
        "a\\b",
        "x\0y",
        "x\ny",
        "ingest.py ",
        "~root",
        "C:x",
        "con",
        "\u202ex",
        "x" * 300,
    ],
)
def test_a14_names_that_are_no_names(ws: Workspace, name: str) -> None:
    """A14: ``..``, slashes, absolute and odd names are refused, by every command that takes one."""
    with unchanged(ws):
        for argv in (
            ["agent", "run", "--", name],
            ["agent", "show", "--", name],
            ["agent", "run", "--dry-run", "--", name],
        ):
            split = argv.index("--")
            done = here(*argv[:split], "-C", str(ws.root), *argv[split:])
            assert done.code == 2, done
            no_traceback(done)
    if name.isprintable():
        fails(ws, f"script_run({name!r})", "script")


def test_a14_an_agent_that_is_not_there(ws: Workspace) -> None:
    """A14: unknown agents: the known ones are named."""
    with unchanged(ws):
        refused(ws("agent", "run", "ingst"), 2, "ingst", "ingest")
        refused(ws("agent", "show", "ingst"), 2, "ingest")


def test_a14_the_script_as_committed(ws: Workspace) -> None:
    """A14, D17, fault 15: beside an edit or without a working copy the approved version runs, which a line says;
    --dry-run runs the edit; what is not committed is refused (3)."""
    ws.agent("probe", "1")
    ws.agent("probe", "2", commit=False)
    with unchanged(ws):
        assert ws.run("probe", "--dry-run")["result"] == 2
    done = ws("agent", "run", "probe", "--json")
    assert done.code == 0 and done.json["result"] == 1 and done.json["edited"] == ["agents/probe.py"]
    assert [line for line in done.err.splitlines() if "not what ran" in line] == [
        "cleared: agents/probe.py: the working copy differs from the approved script, and is not what ran. "
        "To try it: cleared agent run probe --dry-run"
    ]
    (ws.root / "agents/probe.py").unlink()
    assert ws.run("probe")["result"] == 1
    (ws.root / "agents/probe.py").mkdir()
    assert ws.run("probe")["result"] == 1
    (ws.root / "agents/probe.py").rmdir()
    (ws.root / "agents/probe.py").symlink_to("/dev/zero")
    assert ws.run("probe")["result"] == 1
    ws.commit("agents/probe.py")
    refused(ws("agent", "run", "probe"), 4, "symbolic link")
    ws.agent("new", "3", commit=False)
    with unchanged(ws):
        refused(ws("agent", "run", "new"), 3, "never approved", "cleared agent propose new")
        assert ws.run("new", "--dry-run")["result"] == 3
    ws.git("add", "agents/new.py")
    with unchanged(ws):
        refused(ws("agent", "run", "new"), 3, "never approved")
    (ws.root / "agents/link.py").symlink_to("new.py")
    with unchanged(ws):
        refused(ws("agent", "run", "link", "--dry-run"), 4, "symbolic link")


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ('accounts_get("x")', "type:invalid-argument-type"),
        ("accounts_get()", "type:missing-argument"),
        ("accounts_get(accont_id=1010)", "type:unknown-argument"),
        ("acounts_get(1010)", "type:unresolved-reference"),
        ("accounts_get(4711)", "unknown-account"),
        ('journal_query(status="done")', "unknown-status"),
    ],
)
def test_a4_a_dry_run_checks_the_types_before_the_first_primitive(ws: Workspace, body: str, rule: str) -> None:
    """A4, fault 18: of the working copy and of the shared scripts it runs; nothing of it has been run."""
    ws.agent("probe", f'ctx_log("it ran")\n{body}', commit=False)
    done = ws("agent", "run", "probe", "--dry-run")
    refused(done, 3, f"[{rule}]", "agents/probe.py:", "it was not run")
    assert "it ran" not in done.err
    ws.put("scripts/inner.py", f'"""\nname: inner\n"""\n{body}\n')
    ws.agent("probe", 'ctx_log("it ran")\nscript_run("inner")', commit=False)
    done = ws("agent", "run", "probe", "--dry-run")
    refused(done, 3, f"[{rule}]", "scripts/inner.py:4")
    assert "it ran" not in done.err


@pytest.mark.parametrize(("data", "code"), [(b"\xff\xfe\x00", 3), (b"", 3), (b"#" * 300_000, 3), (b"x = '\0'", 3)])
def test_a14_scripts_that_are_no_text(ws: Workspace, data: bytes, code: int) -> None:
    """Bad input: binary, empty and huge scripts."""
    ws.put("agents/odd.py", data)
    ws.commit("agents/odd.py")
    with unchanged(ws):
        refused(ws("agent", "run", "odd"), code, "agents/odd.py")
        no_traceback(ws("agent", "list"))
        no_traceback(ws("agent", "show", "odd"))


# -- init -------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plain_environment")
class TestInit:
    """A15"""

    TREE = (
        "agents",
        "scripts",
        "import",
        "import/processed",
        "accounts",
        "books",
        "logs",
        "queue",
        "rules",
        "templates",
        "tests/cases",
    )

    def test_a15_the_tree_and_one_commit(self, tmp_path: Path) -> None:
        """A15: documented tree, one commit, no git identity needed, a clean working tree."""
        done = command("init", str(tmp_path / "b"), "--name", "Acme LLC")
        assert done.code == 0, done
        ws = Workspace(tmp_path / "b")
        for folder in self.TREE:
            assert (ws.root / folder).is_dir(), folder
        for name in ("single_agent_control_room.sh", "single_agent_tmux.sh"):  # fault 26
            assert (
                os.access(ws.root / "scripts" / name, os.X_OK)
                and ws.git("ls-files", "-s", f"scripts/{name}")[:6] == "100755"
            )
        assert (ws.root / "config.yaml").is_file() and (ws.root / ".gitignore").is_file()
        assert (ws.root / ".gitattributes").is_file()
        assert ws.git("rev-list", "--count", "HEAD").strip() == "1"
        assert ws.git("log", "--format=%s").strip() == "init: Acme LLC"
        assert "name: Acme LLC" in ws.read("config.yaml")
        ws.in_order()
        assert ws.git("fsck", "--strict") == ""

    def test_a15_a_second_init_is_refused(self, tmp_path: Path) -> None:
        """A15: a workspace, or a directory with files in the way, is left alone."""
        here("init", str(tmp_path / "b"))
        ws = Workspace(tmp_path / "b")
        with unchanged(ws):
            refused(here("init", str(tmp_path / "b")), 4, "workspace already")
        (tmp_path / "c").mkdir()
        (tmp_path / "c/notes.txt").write_text("mine")
        refused(here("init", str(tmp_path / "c")), 4, "notes.txt")
        assert [p.name for p in (tmp_path / "c").iterdir()] == ["notes.txt"]
        refused(here("init", str(tmp_path / "c/notes.txt")), 4, "not a directory")
        (tmp_path / "d").mkdir()
        assert here("init", str(tmp_path / "d")).code == 0, "an empty directory is fine"

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--entity", "gmbh"], "gmbh"),
            (["--currency", "DOLLAR"], "DOLLAR"),
            (["--currency", "usd"], "usd"),
            (["--currency", ""], "currency"),
            (["--name", "a\nb"], "name"),
        ],
    )
    def test_a15_values_that_are_refused(self, tmp_path: Path, options: list[str], said: str) -> None:
        """A15: unknown entity or currency: exit 2, nothing made."""
        done = here("init", str(tmp_path / "b"), *options)
        assert done.code in (2, 4), done
        assert said in done.err
        no_traceback(done)
        assert not (tmp_path / "b").exists()

    @pytest.mark.parametrize("entity", ["llc_single_member", "s_corp", "sole_proprietor", "generic"])
    def test_a15_entities(self, tmp_path: Path, entity: str) -> None:
        """A15: a chart of 30 to 45 accounts for each; the documents' accounts keep their meaning."""
        assert here("init", str(tmp_path / "b"), "--entity", entity, "--currency", "EUR").code == 0
        ws = Workspace(tmp_path / "b")
        chart = {a["account_id"]: a for a in ws.json("accounts", "list")}
        assert 30 <= len(chart) <= 45
        assert chart[1010]["account_type"] == "asset" and chart[2010]["account_type"] == "liability"
        assert chart[4010]["account_type"] == "revenue" and chart[5030]["tax_line"] in ("", None)
        ws.drop("a.csv")
        assert ws.run("ingest")["result"]["imported"] == 4
        ws.in_order()

    def test_a15_a_name_from_the_directory_and_odd_names(self, tmp_path: Path) -> None:
        """A15: names with quotes, colons and other scripts survive in config.yaml."""
        name = 'Bäcker: "Söhne" # 1'
        assert here("init", str(tmp_path / "b"), "--name", name).code == 0
        ws = Workspace(tmp_path / "b")
        assert ws.script('config_get("business.name")')["result"] == name

    def test_every_command_finds_the_workspace_upwards(self, tmp_path: Path) -> None:
        """Workspace: like git; -C before or after; elsewhere exit 4."""
        here("init", str(tmp_path / "b"))
        done = command("accounts", "list", "--json", cwd=tmp_path / "b/import/processed")
        assert done.code == 0 and len(done.json) >= 30
        assert here("-C", str(tmp_path / "b"), "accounts", "list", "--json").code == 0
        refused(here("accounts", "list", "-C", str(tmp_path)), 4, "not in a workspace", "cleared init")
        refused(here("accounts", "list", "-C", str(tmp_path / "nowhere")), 4, "nowhere")


def test_paths_books_dot_is_the_published_layout(ws: Workspace) -> None:
    """Workspace: paths.books: . puts the journal at YYYY/MM/journal.csv."""
    ws.config("paths.books=.")
    ws.drop("a.csv")
    assert ws.run("ingest")["result"]["imported"] == 4
    assert (ws.root / "2025/01/journal.csv").is_file()
    assert len(ws.entries()) == 4
    ws.in_order()
    ws.put("2025/01/journal.csv", ws.read("2025/01/journal.csv").replace("4.50", "4.60"))
    assert ws("check").code == 1
    refused(ws("agent", "run", "ingest"), 4, "2025/01/journal.csv")


# -- shared scripts ---------------------------------------------------------------------------------------------------


def test_a16_shared_scripts(ws: Workspace) -> None:
    """A16: arguments and result cross, the draft is one, the calls are in the trace, one level deeper."""
    ws.shared(
        "post",
        '"""\nname: post\nargs: [day, amount]\n"""\n'
        'journal_add_double(day, "shared", 5020, 1010, amount)["entry_id"]\n',
    )
    found = ws.script('a = script_run("post", day="2025-01-03", amount=4.5)\n[a, len(journal_query())]')
    assert found["result"] == ["2025-01-001", 1]
    shown = ws.json("run", "show", found["run_id"])
    assert [(c["name"], c["depth"], c["file"]) for c in shown["calls"]] == [
        ("script_run", 0, "agents/probe.py"),
        ("journal_add_double", 1, "scripts/post.py"),
        ("journal_query", 0, "agents/probe.py"),
    ]
    ws.in_order()


def test_a16_recursion_is_bounded(ws: Workspace) -> None:
    """A16: a script that calls itself is stopped at eight deep."""
    ws.shared("loop", '"""\nname: loop\n"""\nscript_run("loop")\n')
    fails(ws, f'{POST}\nscript_run("loop")', "8 deep")


def test_a16_lint_and_limits_apply(ws: Workspace) -> None:
    """A16: the same checks as an agent's; limits are the run's."""
    ws.shared("bad", '"""\nname: bad\n"""\nimport os\n')
    fails(ws, f'{POST}\nscript_run("bad")', "scripts/bad.py", "import")
    ws.shared("slow", '"""\nname: slow\n"""\nwhile True:\n    pass\n')
    fails(ws, f'{POST}\nscript_run("slow")', "within 1 s", header="timeout: 1\n")
    ws.shared("wrong", '"""\nname: wrong\n"""\n\naccounts_get(1)\n')
    found = fails(ws, f'{POST}\nscript_run("wrong")', "account 1 does not exist")
    assert found["error"]["file"] == "scripts/wrong.py" and found["error"]["line"] == 5
    assert found["error"]["primitive"] == "accounts_get"
    assert "called from agents/probe.py:6" in found["error"]["message"]
    ws.shared("zero", '"""\nname: zero\n"""\n\ndef f():\n    return 1 // 0\nf()\n')
    found = fails(ws, f'{POST}\nscript_run("zero")', "script_run", "probe.py:6", "scripts/zero.py:6")
    assert found["error"]["type"] == "ZeroDivisionError"
    assert 'File "scripts/zero.py", line 6' in ws("agent", "run", "probe").err
    fails(ws, 'script_run("nothing")', "scripts/nothing.py")
    fails(ws, 'script_run("wrong", ctx_log=1)', "ctx_log")
    ws.shared("ok", '"""\nname: ok\nargs: [x]\n"""\nx\n')
    assert ws.script('script_run("ok", x=[1, {"a": None}])')["result"] == [1, {"a": None}]


def test_a16_a_shared_script_as_committed(ws: Workspace) -> None:
    """A16, fault 15: shared scripts run as committed, too, which is said; a dry run takes the working copy."""
    ws.shared("ok", '"""\nname: ok\n"""\n1\n')
    ws.put("scripts/ok.py", '"""\nname: ok\n"""\n2\n')
    ws.agent("probe", 'script_run("ok")')
    assert ws.run("probe", "--dry-run")["result"] == 2
    done = ws("agent", "run", "probe", "--json")
    assert (
        done.json["result"] == 1 and done.json["edited"] == ["scripts/ok.py"] and "scripts/ok.py: the work" in done.err
    )


def test_a17_grants(ws: Workspace) -> None:
    """A17: a primitive the header does not grant is refused by the host."""
    fails(ws, f"ctx_today()\n{POST}", "not granted", "journal.write", header="grants: [ctx.read]\n")


# -- the context ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("max_entries: 1\n", "2 entries is beyond the script's budget (max_entries: 1)"),
        ("max_total: 7.99\n", "a total of 8.00 is beyond the script's budget (max_total: 7.99)"),
        ("accounts: [5020, 1020]\n", "account 1010 is beyond the script's budget (accounts: 5020, 1020)"),
    ],
)
def test_n6_a_budget_of_the_header_stops_the_run(ws: Workspace, header: str, said: str) -> None:
    """N6: one cent over: stopped, nothing committed; at the bound it goes through."""
    fails(ws, f"{POST}\n{POST}", said, header=header)
    assert ws.entries() == []
    for enough in ("max_entries: 2\n", "max_total: 8\n", "accounts: [5020, 1010]\n"):
        if enough.split(":")[0] == header.split(":")[0]:
            assert len(ws.script(f"{POST}\n{POST}", header=enough)["entries"]) == 2


def test_b11_config_get(ws: Workspace) -> None:
    """B11: dotted keys; a missing one is refused, or gives the default passed."""
    found = ws.script(
        '[config_get("thresholds.auto_confirm"), config_get("business.name"), config_get("no.such", None),\n'
        ' config_get("no.such", 5), config_get("bank_accounts")[0]["id"], config_get("git")["auto_commit"]]'
    )
    assert found["result"] == [0.95, "Acme", None, 5, "checking", True]
    fails(ws, 'config_get("thresholds.auto_confrm")', "auto_confrm", "thresholds.auto_confirm")
    fails(ws, 'config_get("")', "config_get")
    for key in ("llm.api_key", "llm.API_KEY", "git.password", "a.token.b"):
        fails(ws, f'config_get("{key}", "x")', "secret")
    assert "api_key" not in ws.script('config_get("llm", {})')["result"]


def test_b13_git_commit(ws: Workspace) -> None:
    """B13: author and message; nothing to commit gives None; a second call appends; messages are one line."""
    assert ws.script('git_commit("import: nothing")')["result"] == {"success": True, "commit_hash": None}
    head = ws.head()
    found = ws.script(f'{POST}\na = git_commit("import: one")\n{POST}\ngit_commit("confirm: two")\na')
    assert found["result"]["commit_hash"] == f"run:{found['run_id']}"
    assert ws.git("rev-parse", "HEAD~2").strip() == head, "one commit for the script, one for the run"
    assert (
        ws.git("log", "-1", "--format=%s|%an|%ae|%cn").strip()
        == "import: one; confirm: two|cleared|cleared@localhost|cleared"
    )
    trailers = ws.trailers()
    assert trailers["Run"] == found["run_id"] and trailers["Agent"] == "probe" and trailers["Clock"] == CLOCK
    assert trailers["Event"].startswith("on_demand ") and trailers["Seed"] == found["run_id"]
    blob = ws.git("rev-parse", "HEAD:agents/probe.py").strip()
    assert trailers["Script"] == f"agents/probe.py@{blob}"
    fails(ws, f'{POST}\ngit_commit("x\\nRun: fake")', "one line")
    ws.config("git.author_name=Ann Lee", "git.author_email=ann@example.com")
    ws.script(f"{POST}")
    assert ws.git("log", "-1", "--format=%an <%ae>").strip() == "Ann Lee <ann@example.com>"


def test_git_log(ws: Workspace) -> None:
    """git_log: the newest commits first."""
    found = ws.script("git_log(2)")["result"]
    assert [c["message"] for c in found] == ["agent: probe", "init: Acme"] and found[0]["commit_hash"] == ws.head()


def test_b14_log_emit_dry_run(ws: Workspace) -> None:
    """B14: each is observable: the log file, logs/events-2025-02.jsonl, and ``run show``."""
    found = ws.script('ctx_log("hello")\nctx_emit("transactions.imported", {"n": 3})\nctx_emit("x")\nctx_dry_run()')
    assert found["result"] is False and len(found["commits"]) == 1, "an event alone makes a commit"
    events = [json.loads(x) for x in ws.read("logs/events-2025-02.jsonl").splitlines()]
    assert [(e["name"], e["payload"], e["run"], e["agent"]) for e in events] == [
        ("transactions.imported", {"n": 3}, found["run_id"], "probe"),
        ("x", None, found["run_id"], "probe"),
    ]
    assert [e["id"] for e in events] == [f"{found['run_id']}/0", f"{found['run_id']}/1"]
    assert "logs/events-2025-02.jsonl" in ws.git("show", "--name-only", "--format=", "HEAD")
    shown = ws.json("run", "show", found["run_id"])
    assert ["log", "hello", ""] in shown["log"]
    assert [c["name"] for c in shown["calls"]] == ["ctx_log", "ctx_emit", "ctx_emit", "ctx_dry_run"]
    assert [c["line"] for c in shown["calls"]] == [5, 6, 7, 8]
    text = ws.ok("run", "show", found["run_id"]).out
    assert "agents/probe.py:6" in text and "transactions.imported" in text
    assert ws.run("probe", "--dry-run")["result"] is True
    fails(ws, 'ctx_emit("big", "x" * 9000 * 8)', "ctx_emit")
    fails(ws, 'for i in range(1001):\n    ctx_emit("x")', "1000 events")


def test_ctx_event(ws: Workspace) -> None:
    """ctx_event: why the run happens."""
    found = ws.script("ctx_event()")
    assert found["result"] == {
        "id": f"on_demand:{found['run_id']}",
        "kind": "on_demand",
        "name": "",
        "payload": None,
    }


def test_b15_a_true_dry_run(posted: Workspace) -> None:
    """B15: tree, HEAD, queue, events identical; it prints the entries it would post."""
    posted.drop("more.csv", chase(("02/03/2025", "GITHUB", "-4.00"), ("02/04/2025", "TEA", "-3.00")))
    cards = posted.cards()
    with unchanged(posted):
        found = posted.run("ingest", "--dry-run")
        assert found["status"] == "dry_run" and found["commits"] == []
        assert found["result"] == {"imported": 2, "confirmed": 1, "review": 1}
        assert [e["entry_id"] for e in found["entries"]] == ["2025-02-001", "2025-02-002"] and len(found["cards"]) == 1
        text = posted("agent", "run", "ingest", "--dry-run")
        assert text.code == 0 and "2025-02-001" in text.err and "nothing was changed" in text.err
        assert json.loads(text.out) == found["result"]
        assert posted.cards() == cards
    assert posted.run("ingest")["result"]["imported"] == 2
    posted.in_order()


def test_b15_a_dry_run_that_fails(ws: Workspace) -> None:
    """B15: exit 1, the reason, nothing changed; unbalanced files are found as in a real run."""
    ws.drop("a.csv")
    ws.agent("probe", f'{POST}\nctx_emit("x")\naccounts_get(1)')
    ws.agent("skips", 'importer_parse("a.csv")\nimporter_mark_processed("a.csv")')
    with unchanged(ws):
        found = ws.run("probe", "--dry-run", code=1)
        assert found["status"] == "failed" and found["commits"] == [] and found["error"]["primitive"] == "accounts_get"
        assert "lines_accounted" in ws.run("skips", "--dry-run", code=1)["error"]["message"]


def test_auto_commit_off(ws: Workspace) -> None:
    """git.auto_commit: false discards what a script staged without git_commit, with a warning; with it, it commits."""
    ws.config("git.auto_commit=false")
    ws.agent("probe", POST)
    with unchanged(ws):
        done = ws("agent", "run", "probe")
        assert done.code == 0 and "1 entry was discarded" in done.err and "git_commit" in done.err
    found = ws.run("probe")
    assert found["status"] == "succeeded" and found["entries"] == [] and found["commits"] == []
    assert ws.script(f'{POST}\ngit_commit("import: x")')["commits"] == [ws.head()]
    ws.in_order()


def test_runs_are_listed_and_shown(posted: Workspace) -> None:
    """``run list`` and ``run show``: newest first; each call, its line, its result, its time; ids may be shortened."""
    posted.script("1 // 0", code=1)
    found = posted.json("run", "list")
    assert {r["agent"] for r in found} == {"probe", "ingest"}
    ingest = next(r for r in found if r["agent"] == "ingest")
    shown = posted.json("run", "show", ingest["run_id"])
    assert shown["run_id"] == ingest["run_id"] and shown["status"] == "succeeded" and len(shown["entries"]) == 4
    assert posted.json("run", "show", ingest["run_id"][-6:])["run_id"] == ingest["run_id"]
    call = next(c for c in shown["calls"] if c["name"] == "journal_add_double")
    assert call["file"] == "agents/ingest.py" and call["line"] > 30 and call["duration_ms"] >= 0
    assert "2025-01-001" in call["result"] and "GITHUB" in call["arguments"]
    assert [r["agent"] for r in posted.json("run", "list", "--agent", "probe")] == ["probe"]
    assert len(posted.json("run", "list", "--limit", "1")) == 1
    for wrong in ("nothing", "%", "_", "", "2025", "'"):
        refused(posted("run", "show", "--json", wrong), 2)


def test_the_starters_run(posted: Workspace) -> None:
    """Workspace: the two small starters need no model and no argument."""
    summary = posted.run("monthly_summary")["result"]
    assert summary["month"] == "2025-01" and summary["net"] == "1446.40" and summary["waiting_for_review"] == 2
    assert posted.run("review_reminder")["status"] == "succeeded"


def test_primitives_are_described(plain_environment: None) -> None:
    """``cleared primitives``: a table, stubs, JSON, markdown: the same names."""
    names = [p["name"] for p in here("primitives", "--json").json]
    assert {"journal_add_double", "importer_scan", "ctx_emit", "script_run", "money_allocate"} <= set(names)
    for form in ([], ["--stubs"], ["--markdown"]):
        done = here("primitives", *form)
        assert done.code == 0 and all(n in done.out for n in names)
    compile(here("primitives", "--stubs").out, "stubs.pyi", "exec")


def test_version_and_completion() -> None:
    """Command line: --version, --help with the exit codes, shell completion."""
    assert here("--version").out.startswith("cleared ")
    assert "5 busy" in here("--help").out
    assert "--show-completion" in here("--help").out
    refused(here("jurnal"), 2, "jurnal")
    refused(here("journal", "list", "--mnth", "x"), 2)


def test_b13_a_run_whose_branch_moves_is_run_once_more(ws: Workspace) -> None:
    """B13: on the new commit; where it moves again, the run is refused and nothing of it stays."""
    ws.agent("probe", f'{POST}\ngit_commit("agent: probe")')
    left, said = 1, list[str]()

    def commit_beside(step: str) -> None:
        nonlocal left
        if step == "ran" and left:
            left -= 1
            ws.put("note.txt", f"{len(said)} {left}")
            ws.commit("note.txt")

    host = open_workspace(ws.root, on_step=commit_beside, say=said.append)
    assert run_now(host, "probe").status == "succeeded"
    assert left == 0 and sum("the branch moved" in line for line in said) == 1 and len(ws.entries()) == 1
    left = 2
    with pytest.raises(HeadMoved):
        run_now(host, "probe")
    assert left == 0 and sum("the branch moved" in line for line in said) == 2 and len(ws.entries()) == 1
    assert ws.json("check") == {"ok": True, "violations": []}
