"""Fault 2 (D17): approvals and policy of one workspace, carried into another by whoever can commit there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, here, refused, take_ok, take_shown, unchanged

from cleared.trust import verification, workspace_pin
from cleared.trust.approval_record import CONFIG, FOLDER, WORKSPACE

PROBE = "agents/probe.py"


@pytest.fixture
def other(tmp_path: Path, ws: Workspace) -> Workspace:
    """Books B of the same person, on the same machine, with an agent and a limit of their own."""
    assert here("init", str(tmp_path / "b"), "--name", "Other").code == 0
    found = Workspace(tmp_path / "b")
    found.put(PROBE, '"""\nname: probe\ntrigger: on_demand\n"""\n1\n')
    take_ok(found, "agent", "approve", str(found.json("agent", "propose", "probe")["id"]))
    found.config("limits.max_amount=7")
    return found


def carry(source: Workspace, to: Workspace) -> None:
    """The attack: B's records, the file that says whose they are, and B's script, in one plain commit in A."""
    shutil.rmtree(to.root / FOLDER)
    shutil.copytree(source.root / FOLDER, to.root / FOLDER)
    shutil.copy(source.root / PROBE, to.root / PROBE)
    shutil.copy(source.root / "config.yaml", to.root / "config.yaml")
    to.git("add", "-A")
    to.git("commit", "-qm", "my notes")


def believe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall switched off: the id is what the tracked file says, as it was before there were pins."""

    def claimed(root: Path, claim: bytes | None) -> workspace_pin.WorkspaceIdentity:
        found = (claim or b"").decode().strip()
        return workspace_pin.WorkspaceIdentity(found, True, found)

    for module in (workspace_pin, verification):
        monkeypatch.setattr(module, "identify_workspace", claimed)


def test_records_of_other_books_count_for_nothing(ws: Workspace, other: Workspace) -> None:
    carry(other, ws)
    with unchanged(ws):
        for agent in ("probe", "ingest"):
            done = ws("agent", "run", agent)
            refused(done, 3, WORKSPACE, "so nothing is run", "Bring the file back as it was: echo ")
        refused(ws("config", "set", "thresholds.auto_confirm", "0.5"), 3, WORKSPACE)
    assert ws.json("config", "get", "limits.max_amount") == "1000000000000"
    listed = {agent["remedy"] for agent in ws.json("agent", "list")}
    typed = done.err.split("as it was: ", 1)[1].split(". Only if")[0]
    assert all(typed in remedy for remedy in listed)
    subprocess.run(["sh", "-c", typed], cwd=ws.root, check=True, capture_output=True, env=os.environ | IDENTITY)
    refused(ws("agent", "run", "ingest"), 3, CONFIG, "for another workspace")  # the rest of what was carried here
    ws.git("revert", "--no-edit", "HEAD~2..")
    assert ws.run("ingest")["status"] == "succeeded"


def test_they_would_without_the_pin(ws: Workspace, other: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    believe(monkeypatch)
    carry(other, ws)
    assert ws.run("probe")["result"] == 1
    assert ws.json("config", "get", "limits.max_amount") == "7"


def test_nor_in_a_fresh_clone_of_them(ws: Workspace, other: Workspace, tmp_path: Path) -> None:
    """Without a pin, one's own key is not enough; and the pins that there are say what is wrong."""
    carry(other, ws)
    ws.git("clone", "-q", str(ws.root), str(tmp_path / "clone"))
    clone = Workspace(tmp_path / "clone")
    refused(clone("agent", "run", "probe"), 3, "not")
    refused(
        take_shown(clone, "trust", "--yes"), 3, "no commit in common", str(other.root), "--same-books", "--new-books"
    )
    refused(clone("agent", "run", "probe"), 3)


def test_a_withdrawal_is_looked_up_by_the_pinned_id(ws: Workspace, other: Workspace) -> None:
    """What was rolled back here does not come back under the id of other books."""
    body = '"""\nname: probe\ntrigger: on_demand\n"""\n'
    for n in (5, 6):
        ws.put(PROBE, f"{body}{n}\n")
        take_ok(ws, "agent", "approve", str(ws.json("agent", "propose", "probe")["id"]))
    before = ws.head()
    ws.ok("agent", "rollback", "probe")
    ws.git("checkout", "-q", before, "--", ".")
    shutil.copy(other.root / WORKSPACE, ws.root / WORKSPACE)
    ws.git("commit", "-qam", "as it was")
    refused(ws("agent", "run", "probe"), 3, "so nothing is run")
    ws.git("checkout", "-q", before, "--", WORKSPACE)
    ws.git("commit", "-qm", "as it was")
    take_ok(ws, "recover", "--forget")  # its attestation is gone as well
    refused(ws("agent", "run", "probe"), 3, "rolled back")


def test_the_settings_in_the_working_tree_are_looked_at_as_well(ws: Workspace, other: Workspace) -> None:
    """Nothing has to be committed to swap what the policy is read from."""
    for path in (WORKSPACE, CONFIG):
        shutil.copy(other.root / path, ws.root / path)
    refused(ws("agent", "run", "ingest"), 3, WORKSPACE)
    assert ws.json("config", "get", "limits.max_amount") == "1000000000000"
