"""A machine that has keys or these very books of its own: nothing is overwritten, and the way is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from asking import asks
from backups import all_files, back_up, other_machine, restore
from harness import Workspace, chase, here, refused, remove_tree
from program_client import webhook_agent

pytestmark = pytest.mark.slow

MARCH = chase(("03/03/2025", "GITHUB *PRO", "-4.00", "2442.40"))


@pytest.fixture
def file(posted: Workspace) -> Path:
    webhook_agent(posted)
    return back_up(posted)


def test_another_approval_key_is_named_and_kept_on_demand(file: Path, posted: Workspace, tmp_path: Path) -> None:
    question = asks(posted)["id"]
    file = back_up(posted, "second.cleared")
    with other_machine(tmp_path / "machine") as home:
        assert here("init", str(tmp_path / "tried")).code == 0
        before = all_files(home)
        refused(restore(file, tmp_path / "new"), 3, "has an approval key of its own", "--keep-key", "CLEARED_HOME")
        assert all_files(home) == before and not (tmp_path / "new").exists()
        done = restore(file, tmp_path / "new", "--keep-key")
        assert done.code == 0, done
        assert "left as this machine has it: approval-key" in done.err
        assert all(all_files(home)[path] == data for path, data in before.items())
        ws = Workspace(tmp_path / "new")
        assert ws.json("check") == {"ok": True, "violations": []}
        assert all(who["trusted"] for who in ws.json("trust", "--list"))
        ws.drop("march.csv", MARCH)
        assert ws.run("ingest")["status"] == "succeeded" and ws.run("asker")["status"] == "waiting"
        ws.ok("queue", "answer", question, "yes")
        ws.ok("queue", "approve", "2025-01-002")
        ws.ok("config", "set", "thresholds.auto_confirm", "0.97")
        assert ws.json("check") == {"ok": True, "violations": []}
        assert len(ws.json("webhook", "list")) == 1


def test_the_same_books_on_this_machine_stay(file: Path, posted: Workspace, tmp_path: Path) -> None:
    """Restored in their place once they are gone; beside them only as a clone of its own."""
    refused(
        restore(file, tmp_path / "new"), 3, "these very books are on this machine already", str(posted.root), "--beside"
    )
    assert not (tmp_path / "new").exists()
    done = restore(file, tmp_path / "new", "--beside")
    assert done.code == 0 and "clone of its own" in done.err, done
    second = Workspace(tmp_path / "new")
    for name in ("cleared-clone", "cleared-origin"):
        mine, other = (ws.root / ".git" / name for ws in (posted, second))
        assert not other.exists() or other.read_text() != mine.read_text()
    assert not (second.root / ".cleared/runs.db").exists() and second.json("webhook", "list") == []
    for ws in (posted, second):
        assert ws.json("check") == {"ok": True, "violations": []}
    second.ok("queue", "approve", "2025-01-002")
    remove_tree(posted.root)
    done = restore(file, posted.root)
    assert done.code == 0, done
    assert posted.json("check") == {"ok": True, "violations": []} and posted.json("webhook", "list")


def test_beside_on_another_machine_the_person_is_the_same_and_the_machine_another(file: Path, tmp_path: Path) -> None:
    from cleared.workspace.location import cleared_home

    old = {name: (cleared_home() / name).read_bytes() for name in ("approval-key", "run-key")}
    with other_machine(tmp_path / "machine") as home:
        assert restore(file, tmp_path / "new", "--beside").code == 0
        ws = Workspace(tmp_path / "new")
        ws.ok("queue", "approve", "2025-01-002")
        assert ws.json("check") == {"ok": True, "violations": []}
        assert (home / "approval-key").read_bytes() == old["approval-key"]
        assert (home / "run-key").read_bytes() != old["run-key"]
        assert all(who["trusted"] for who in ws.json("trust", "--list"))


def test_nobody_is_trusted_by_it_in_books_that_are_known(
    file: Path, posted: Workspace, tmp_path: Path, plain_environment: None
) -> None:
    """A file from outside does not say whose approvals count in books that this machine has already."""
    (known,) = (tmp_path / "home/cleared/workspaces").glob("*.json")
    before = known.read_bytes()
    from test_damaged_backups import rebuild

    mark = "7" * 32

    def change(members: list[Any]) -> None:
        info, data = members[0]
        fields = json.loads(data)
        fields["approval_key"] = fields["run_key"] = "ed25519:" + "A" * 43 + "="
        fields["mark"] = mark
        members[0] = (info, json.dumps(fields).encode())
        members[:] = [
            (i, f"{mark}\n".encode() if i.name == "git/cleared-clone" else c)
            for i, c in members
            if not i.name.startswith("home/c")
        ]

    rebuild(file, change)
    done = restore(file, tmp_path / "new", "--keep-key")
    assert done.code == 0, done
    assert known.read_bytes() == before
    remove_tree(tmp_path / "new")
    rebuild(file, lambda members: members.remove(next(m for m in members if m[0].name == "git/cleared-clone")))
    refused(restore(file, tmp_path / "other"), 4, "another clone than it says")


def test_where_keys_would_lie_in_it_nothing_is_restored(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "new/keys"))
    refused(restore(file, tmp_path / "new"), 4, "inside the workspace")
    monkeypatch.delenv("CLEARED_HOME")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("mine")
    refused(restore(file, tmp_path / "full"), 3, "the folder is not empty")
    refused(restore(file, tmp_path / "full/mine"), 3, "the folder is not empty")
    refused(restore(file, tmp_path / "none/new"), 4, "mkdir -p")
    refused(here("restore", str(file)), 2, "--check")
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]


def test_a_key_with_a_passphrase_goes_along_as_it_is(ws: Workspace, tmp_path: Path) -> None:
    from terminals import run_on_terminal

    words = "words of the key itself"
    code, shown = run_on_terminal(ws.root, ["key", "protect"], [("New passphrase: ", words), ("again: ", words)])
    assert code == 0, shown
    ws.put("agents/probe.py", '"""\nname: probe\ntrigger: on_demand\n"""\n1\n')
    file = back_up(ws)
    with other_machine(tmp_path / "machine"):
        assert restore(file, tmp_path / "new").code == 0
        new = Workspace(tmp_path / "new")
        assert here("key", "status", "--json").json["passphrase"]
        new.ok("agent", "propose", "probe")
        typed = [("[y/N]: ", "y"), ("Type P1", "P1"), ("approval key: ", words)]
        code, shown = run_on_terminal(new.root, ["agent", "approve", "P1"], typed)
        assert code == 0, shown
        assert new.run("probe")["status"] == "succeeded"
