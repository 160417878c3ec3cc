"""Proposing files from memory: the working copies are neither read nor changed; and files that nothing runs."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from harness import Workspace, refused, take_ok, take_shown, unchanged
from proposing import edit, history, propose, text, threshold

from cleared.base.errors import UsageError
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.examination import Gate
from cleared.gate.proposals.author import Author
from cleared.gate.proposals.proposal import Proposal
from cleared.gate.proposals.submission import GateFailed, propose_changes


def propose_texts(ws: Workspace, texts: Mapping[str, str | None], *targets: str) -> Proposal:
    encoded = {path: None if content is None else content.encode() for path, content in texts.items()}
    author = Author("chat", is_human=False)
    return propose_changes(open_workspace(ws.root), targets, texts=encoded, message="less mail", author=author)[0]


def test_files_from_memory_become_a_proposal_and_no_working_copy_changes(ws: Workspace) -> None:
    """A new agent and a changed one: one proposal, one card; live after approval, and not before."""
    ingest = ws.read("agents/ingest.py").replace('config_get("thresholds.auto_confirm")', "0.97")
    made = propose_texts(ws, {"agents/hello.py": text('ctx_log("hello")', name="Hello"), "agents/ingest.py": ingest})
    assert sorted(made.paths) == ["agents/hello.py", "agents/ingest.py"]
    assert not (ws.root / "agents/hello.py").exists() and ws.git("status", "--porcelain") == ""
    assert not made.by_human and made.data["author"]["name"] == "chat"
    take_ok(ws, "agent", "approve", made.id)
    assert ws.read("agents/ingest.py") == ingest
    assert ws.run("hello")["status"] == "succeeded"


def test_an_edited_working_copy_plays_no_part(ws: Workspace) -> None:
    """Somebody edits the agent, and a shared script it runs, while a session works: what is proposed is the session's
    text beside what is approved."""
    threshold(ws, "0.5")
    ws.put("scripts/shared.py", "1 +")
    with pytest.raises(GateFailed, match="shared"):
        propose_texts(ws, {"agents/probe.py": text('script_run("shared")')})
    made = propose_texts(ws, {"agents/probe.py": text("accounts_list()")})
    assert made.paths == ["agents/probe.py"]


def test_what_is_as_approved_is_no_change(ws: Workspace) -> None:
    with unchanged(ws), pytest.raises(UsageError, match="nothing to propose"):
        propose_texts(ws, {"agents/ingest.py": ws.read("agents/ingest.py")})


def test_the_impact_is_that_of_the_given_text(ws: Workspace) -> None:
    """The gate and the comparison with past runs read the text from memory, not the working copy."""
    history(ws)
    ingest = ws.read("agents/ingest.py").replace('config_get("thresholds.auto_confirm")', "0.97").encode()
    edit(ws, "agents/ingest.py", "files = importer_scan()", "files = 1 / 0")
    with Gate(open_workspace(ws.root)) as gate:
        impact = gate.compare_with_approved("ingest", 50, texts={"agents/ingest.py": ingest})
        checks = gate.check_agent("ingest", texts={"agents/ingest.py": ingest})
        as_approved = gate.check_agent("ingest", texts={})
    assert impact.count_changes("changed") == 2
    assert {check.status for check in checks} == {"passed"} == {check.status for check in as_approved}


def test_a_removed_file_is_proposed_as_removed(ws: Workspace) -> None:
    made = propose_texts(ws, {"agents/ingest.py": None})
    assert made.texts == {"agents/ingest.py": None}
    assert (ws.root / "agents/ingest.py").exists()


@pytest.mark.parametrize("path", ["rules/coffee.md", "templates/digest2.py", "templates/meta.md"])
def test_rules_and_templates_are_texts_without_behaviour(ws: Workspace, path: str) -> None:
    """They pass the gate with no script to check, the card says that nothing runs them, and approval writes them."""
    made = propose_texts(ws, {path: "# Coffee under 20 dollars is not asked about\n"})
    assert any(f"The text {path} is new" in line for line in " ".join(made.data["card"]["different"]).splitlines())
    take_ok(ws, "agent", "approve", made.id)
    assert ws.read(path).startswith("# Coffee")
    ws.put(path, "another\n")
    changed = propose(ws, path)
    assert any("1 line added, 1 removed" in line for line in changed["card"])
    ws.ok("agent", "reject", changed["id"], "--reason", "no")


UNSEEN = ["\u202e", "\U000e0100", "\ufe0f", "\u3164", "\u115f", "\u2800", "\u00ad", "\u00a0", "\U000e0041"]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\x1b[2Jb", *(f"hidden {c} text".encode() for c in UNSEEN)])
def test_texts_that_hide_something_are_refused(ws: Workspace, content: bytes) -> None:
    with unchanged(ws), pytest.raises(GateFailed, match="text-unreadable"):
        propose_changes(open_workspace(ws.root), [], texts={"rules/x.md": content}, author=Author("chat"))


@pytest.mark.parametrize(
    "path",
    [
        "books/2025/01/journal.csv",
        ".git/config",
        "queue/x.json",
        "rules/../config.yaml",
        "rules/a/b.md",
        "agents/approvals/x.json",
        ".env",
        "/etc/passwd",
    ],
)
def test_nothing_else_can_be_proposed(ws: Workspace, path: str) -> None:
    with unchanged(ws), pytest.raises(UsageError):
        propose_texts(ws, {path: "x"})


@pytest.mark.parametrize(
    ("path", "letter", "instead"),
    [
        ("agents/inge\u0455t.py", "U+0455, cyrillic small letter dze", "inget"),
        ("scripts/\uff41mounts.py", "U+FF41, fullwidth latin small letter a", "amounts"),
        ("rules/st\u0443le.md", "U+0443, cyrillic small letter u", "stle.md"),
        ("templates/my digest.py", "U+0020, space", "my-digest.py"),
        ("tests/cases/\u00fcber.json", "U+00FC, latin small letter u with diaeresis", "uber"),
    ],
)
def test_a_name_that_looks_like_another_one_is_refused(ws: Workspace, path: str, letter: str, instead: str) -> None:
    """From memory and as a working copy, by its path and by its name."""
    with unchanged(ws), pytest.raises(UsageError) as refusal:
        propose_texts(ws, {path: text("1")})
    assert letter in str(refusal.value) and f"dots only: {instead}." in str(refusal.value)
    ws.put(path, text("1"))
    with unchanged(ws):
        refused(ws("agent", "propose", path), 2, letter, instead)
        if path.startswith("agents/"):
            refused(ws("agent", "propose", "inge\u0455t"), 2, letter)
            refused(ws("agent", "new", "d\u0456gest"), 2, "U+0456")


def test_a_shared_script_that_an_agent_runs_has_a_plain_name(ws: Workspace) -> None:
    ws.put("scripts/am\u043eunts.py", '"""\nname: amounts\n"""\n1\n')
    ws.put("agents/probe.py", text('script_run("am\u043eunts")'))
    with unchanged(ws):
        refused(ws("agent", "propose", "probe"), 2, "U+043E")


def test_a_forged_kind_of_file_is_no_proposal(ws: Workspace) -> None:
    """Whoever can push cannot call a script a text, which would become live unchecked."""
    made = propose_texts(ws, {"rules/x.md": "x\n"})
    file = ws.root / "queue/proposals" / made.folder / "proposal.json"
    data = json.loads(file.read_text())
    data["files"][0]["path"] = "agents/ingest.py"
    file.write_text(json.dumps(data))
    ws.git("commit", "-qam", "forged")
    refusal = take_shown(ws, "agent", "approve", made.id)
    assert refusal.code == 4 and "cannot be proposed as 'text'" in refusal.err
