"""Row I1: a secret of the configuration is nowhere a run writes."""

from __future__ import annotations

import pytest
from harness import Workspace, fails, here

KEY = "sk-planted-0123456789"
POST = f'journal_add_double("2025-01-03", "key {KEY}", 5020, 1010, 4, evidence="{KEY}", counterparty="{KEY}")'


@pytest.fixture
def keyed(ws: Workspace) -> Workspace:
    """A key in config.yaml, as a user sets it: in the working tree, not committed."""
    done = ws.ok("config", "set", "notifications.smtp_password", KEY)
    assert KEY not in done.out + done.err
    return ws


def nowhere(ws: Workspace, *said: str) -> None:
    """Not in what was shown, in the trace, in any file but config.yaml and the scripts, in any object of git's."""
    for text in said:
        assert KEY not in text
    for path in (ws.root / ".cleared").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
    for path, data in ws.state().files.items():
        if path != "config.yaml" and not path.startswith(("agents/", "scripts/")):
            assert KEY.encode() not in data, path
    history = ws.git("log", "-p", "--format=%B", "--", ".", ":!agents", ":!scripts")
    assert KEY not in history


def test_i1_a_check_remembers_no_key(keyed: Workspace) -> None:
    keyed.ok("check")
    assert (keyed.root / ".cleared" / "books" / "checked").is_file()
    nowhere(keyed)


def test_i1_a_key_that_a_script_writes(keyed: Workspace) -> None:
    """I1: printed, logged, posted, emitted, asked, committed: [redacted] in every one of them."""
    body = (
        f'k = "{KEY}"\nprint("a", k)\nprint(k[:5], end="")\nprint(k[5:])\nctx_log("b " + k)\n{POST}\n'
        'queue_add_review("pending", "c " + k)\nctx_emit("d", {"k": [k], k: 1})\ngit_commit("import: e " + k)\n'
        '{"f": k, "g": [k, "x" + k + "y"]}'
    )
    keyed.agent("probe", body)
    done = keyed("agent", "run", "probe")
    assert done.code == 0, done
    again = keyed("agent", "run", "probe", "--json")
    runs = keyed.json("run", "list")
    shown = [keyed.ok("run", "show", r["run_id"]).out for r in runs]
    shown += [keyed.ok("run", "show", "--json", r["run_id"]).out for r in runs]
    others = [keyed.ok(*argv).out for argv in (("queue", "list"), ("journal", "list"), ("queue", "list", "--json"))]
    nowhere(keyed, done.out, done.err, again.out, again.err, *shown, *others)
    assert again.json["result"] == {"f": "[redacted]", "g": ["[redacted]", "x[redacted]y"]}
    log = keyed.read("logs/agent-log-2025-02.csv")
    assert "b [redacted]" in log and "a [redacted]" in log
    assert "import: e [redacted]" in keyed.git("log", "-1", "--format=%s")
    assert "[redacted]" in keyed.read("logs/events-2025-02.jsonl") and "[redacted]" in keyed.read("queue/2025-02.jsonl")


@pytest.mark.parametrize(
    "body",
    [
        f'accounts_get("{KEY}")',
        f'{{}}["{KEY}"]',
        f'no_such_{"x"}("{KEY}")',
        f'config_get("a.{KEY}")',
        f'[1]["{KEY}"]',
        f'importer_parse("{KEY}.csv")',
        f'raise ValueError("{KEY}")',
        f'script_run("{KEY}")',
        f'journal_void("{KEY}", "x")',
    ],
)
def test_i1_a_key_in_an_error(keyed: Workspace, body: str) -> None:
    """I1: errors, their cards, traces and tracebacks."""
    fails(keyed, f"def f():\n    return 1\n{body}")
    done = keyed("agent", "run", "probe")
    assert done.code == 1
    shown = keyed.ok("run", "show", keyed.json("run", "list")[0]["run_id"]).out
    nowhere(keyed, done.out, done.err, shown, keyed.ok("queue", "list", "--json").out)


def test_i1_no_script_reads_a_key(keyed: Workspace) -> None:
    """I1: config_get refuses secret keys, and leaves them out of a section."""
    assert keyed.script('[config_get("notifications"), config_get("llm.model", "none")]')["result"][1] == "none"
    fails(keyed, 'config_get("notifications.smtp_password")', "secret")
    for argv in (
        ("config", "list"),
        ("config", "get", "notifications.smtp_password"),
        ("config", "get", "notifications"),
        ("doctor",),
    ):
        done = here(*argv, "-C", str(keyed.root))
        assert KEY not in done.out + done.err
    nowhere(keyed)
