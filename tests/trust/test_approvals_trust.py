"""Clones, forged records, the key, and what the user's own git does to approvals: they survive or fail closed."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clones import clone
from harness import Done, Workspace, no_traceback, refused, take_ok, take_shown, unchanged
from msgspec import structs

from cleared.trust import approval_record as records
from cleared.trust.approval_record import ApprovalRecord, digest_of, record_path, sign_record
from cleared.trust.keys import own_key

HEADER = '"""\nname: Probe\ntrigger: on_demand\n"""\n'
PROBE = "agents/probe.py"


def propose(ws: Workspace, *targets: str) -> str:
    return str(ws.json("agent", "propose", *targets)["id"])


def go_live(ws: Workspace, body: str, name: str = "probe") -> str:
    """Write, propose and approve a version, as a person does; its text."""
    text = HEADER.replace("Probe", name) + body + "\n"
    ws.put(f"agents/{name}.py", text)
    take_ok(ws, "agent", "approve", propose(ws, name))
    return text


def without_table(done: Done) -> Done:
    """``refused`` wants nothing on stdout; ``trust`` has shown whom it is about."""
    return dataclasses.replace(done, out="")


@contextmanager
def machine(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[None]:
    """Another machine: a key and trust of its own."""
    with monkeypatch.context() as patch:
        patch.setenv("CLEARED_HOME", str(home))
        yield


@pytest.fixture
def copied(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A clone of a workspace with an approved agent, on another machine."""
    go_live(ws, "1")
    found = clone(ws, tmp_path / "copy")
    with machine(monkeypatch, tmp_path / "other"):
        yield found


# -- trust ------------------------------------------------------------------------------------------------------------


def test_a_clone_is_read_at_once_and_runs_and_decides_after_a_yes(copied: Workspace) -> None:
    assert copied("journal", "balance").code == 0 and copied.json("config", "get", "business.name") == "Acme"
    with unchanged(copied):
        for argv in (
            ["agent", "run", "probe"],
            ["agent", "run", "ingest"],
            ["journal", "void", "2025-01-001", "--reason", "x"],
        ):
            refused(copied(*argv), 3, "not trusted on this machine yet, so nothing is run or decided", "cleared trust")
    done = copied("trust")
    assert done.code == 3 and "cleared trust --digest" in done.err
    assert "agents/probe.py" in done.err and " no " in done.err
    shown = copied("trust", "--json")
    assert shown.code == 3
    who, machine = sorted(json.loads(shown.out.splitlines()[0]), key=lambda s: s["runs"])
    (done_there,) = machine["paths"]
    assert machine["runs"] and "runs and decisions, the last: " in done_there
    assert who["trusted"] is False and "agents/probe.py" in who["paths"] and who["names"] and who["first"]
    assert copied("trust", "--list").code == 0
    refused(copied("agent", "run", "probe"), 3, "cleared trust")
    with unchanged(copied):
        said = take_ok(copied, "trust", "--yes")
    assert " yes " in said.out
    assert copied.run("probe")["result"] == 1
    assert copied.json("trust")[0]["trusted"] is True and copied("trust").code == 0


def test_whoever_made_the_books_approved_their_settings(ws: Workspace) -> None:
    who, machine = sorted(ws.json("trust"), key=lambda s: s["runs"])
    assert (who["paths"], who["trusted"]) == (["agents/approvals/config.json"], True)
    assert machine["trusted"] and machine["paths"][0].startswith("one run or decision, the last: ")


def test_ones_own_approvals_need_no_trust(ws: Workspace) -> None:
    go_live(ws, "1")
    assert {(s["runs"], s["trusted"]) for s in ws.json("trust")} == {(False, True), (True, True)}


def test_a_job_trusts_nobody(copied: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARED_JOB", "7")
    with unchanged(copied):
        refused(without_table(take_shown(copied, "trust", "--yes")), 3, "not for a job")
    monkeypatch.delenv("CLEARED_JOB")
    refused(copied("agent", "run", "probe"), 3, "cleared trust")


def test_a_key_that_was_stolen_is_forgotten_and_what_is_to_run_approved_anew(copied: Workspace) -> None:
    """docs/howto/backup.md: without a backup, where somebody may have the key."""
    take_ok(copied, "trust", "--yes")
    (old,) = (s["key"].removeprefix("ed25519:") for s in copied.json("trust") if not s["runs"])
    assert copied.run("probe")["result"] == 1
    with unchanged(copied):
        refused(copied("trust", "--forget", "nokey"), 2, "no key that is trusted here begins with")
        refused(copied("trust", "--forget", old[:9], "--list"), 2, "stands alone")
        assert copied.json("trust", "--forget", old[:9])["key"].endswith(old)
        refused(copied("trust", "--forget", old[:9]), 2, "no key that is trusted here begins with")
    refused(copied("agent", "run", "probe"), 3, "cleared trust")
    take_ok(copied, "config", "approve")
    refused(copied("agent", "run", "probe"), 3)
    take_ok(copied, "agent", "approve", copied.json("agent", "propose", "probe")["id"])
    assert copied.run("probe")["result"] == 1
    copied.in_order()


def test_a_damaged_trust_file_is_named(copied: Workspace, tmp_path: Path) -> None:
    take_ok(copied, "trust", "--yes")
    (path,) = (tmp_path / "other/workspaces").iterdir()
    assert str(tmp_path / "books") not in str(path)
    for text in ("", "[]", '{"keys": 3}', "[" * 100_000, '{"keys": {}, "withdrawn": [[]]}', "\xff"):
        path.write_bytes(text.encode("latin-1"))
        done = copied("agent", "run", "probe")
        assert done.code in (3, 4), (text[:9], done)
        no_traceback(done)
        assert "cleared trust" in done.err


# -- forged records ---------------------------------------------------------------------------------------------------


def edited(**fields: Any) -> Callable[[ApprovalRecord], bytes]:
    """A record of somebody who has no key that counts: fields changed, the signature left."""

    def make(record: ApprovalRecord) -> bytes:
        return structs.replace(record, **fields).render()

    return make


def resigned(**fields: Any) -> Callable[[ApprovalRecord], bytes]:
    """Signed anew with the user's own key: what a signature does not cure."""

    def make(record: ApprovalRecord) -> bytes:
        key = own_key(Path("/nowhere"))
        assert key is not None
        return sign_record(structs.replace(record, **fields), key).render()

    return make


def with_fields(**fields: Any) -> Callable[[ApprovalRecord], bytes]:
    def make(record: ApprovalRecord) -> bytes:
        return json.dumps({**json.loads(record.render()), **fields}).encode()

    return make


FORGED: dict[str, Callable[[ApprovalRecord], bytes]] = {
    "grants widened": edited(grants=("accounts_list", "journal_void")),
    "another signature": edited(signature="AAAA"),
    "no signature": edited(signature=""),
    "not base64": edited(signature="ä" * 10),
    "another key": edited(key="ed25519:" + "A" * 43 + "="),
    "a key of no kind": edited(key="rsa:AAAA"),
    "another author": edited(by="Somebody"),
    "another workspace": resigned(workspace="f" * 32),
    "no workspace": resigned(workspace=""),
    "another path": resigned(path="agents/ingest.py"),
    "another digest": resigned(digest="sha256:" + "0" * 64),
    "another kind": resigned(kind="config"),
    "unknown kind": resigned(kind="anything"),
    "truncated": lambda r: r.render()[:-40],
    "empty": lambda r: b"",
    "not a map": lambda r: b"[]",
    "a text": lambda r: b'"x"',
    "extra field": with_fields(more=1),
    "wrong types": with_fields(grants=3),
    "grants not texts": with_fields(grants=[1]),
    "serial": with_fields(serial="1"),
    "another version": with_fields(version=2),
    "not UTF-8": lambda r: b"\xff\xfe{",
    "deep": lambda r: b"[" * 200_000,
    "huge": lambda r: b" " * (9 << 20) + r.render(),
    "huge number": lambda r: r.render().replace(b'"serial": 1', b'"serial": ' + b"9" * 10_000),
    "huge text": edited(by="x" * 100_000),
    "control characters": edited(by="\x1b[2J\nevil"),
}


def test_forged_records_are_worth_nothing(ws: Workspace) -> None:
    """Each in place of the genuine record, committed by hand: the run is refused, and proposing again mends it."""
    text = go_live(ws, "1")
    where = record_path(PROBE, digest_of(text.encode()))
    genuine = records.parse_record((ws.root / where).read_bytes())
    for name, make in FORGED.items():
        ws.put(where, make(genuine))
        ws.commit(where)
        with unchanged(ws):
            done = ws("agent", "run", "probe")
            refused(done, 3, "cleared agent propose probe")
        assert len(done.err) < 6_000 and "\x1b" not in done.err, name
        assert ws("trust", "--list").code == 0 and ws("agent", "history", "probe").code == 0, name
        no_traceback(ws("agent", "rollback", "nobody"))
    take_ok(ws, "agent", "approve", propose(ws, "probe"))
    assert ws.run("probe")["result"] == 1


def test_a_record_for_a_forged_workspace_id_names_no_file_elsewhere(ws: Workspace, tmp_path: Path) -> None:
    """The id is a file in the workspace: what is written there must not become a path."""
    go_live(ws, "1")
    go_live(ws, "2")
    ws.put("agents/approvals/workspace", "../../../evil\n")
    ws.commit("agents/approvals/workspace")
    refused(ws("agent", "run", "probe"), 3, "nothing is run", "> agents/approvals/workspace && git commit")
    take_shown(ws, "trust", "--yes")
    ws("agent", "rollback", "probe")
    assert not list(tmp_path.rglob("evil*"))


# -- the key ----------------------------------------------------------------------------------------------------------


def test_the_key_is_made_outside_the_repository_for_its_owner_only(ws: Workspace, tmp_path: Path) -> None:
    home = Path(os.environ["XDG_CONFIG_HOME"]) / "cleared"
    (home / "approval-key").unlink()
    ws("agent", "run", "ingest")
    ws("trust")
    assert not (home / "approval-key").exists(), "looking makes none"
    take_ok(ws, "config", "approve")
    go_live(ws, "1")
    assert (home / "approval-key").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o077 == 0 and not [p for p in home.iterdir() if p.name.startswith(".")]
    secret = (home / "approval-key").read_bytes().strip()
    assert secret not in b"".join(p.read_bytes() for p in ws.root.rglob("*") if p.is_file())


def test_a_key_that_others_can_read_or_that_is_damaged_is_refused(ws: Workspace) -> None:
    key = Path(os.environ["XDG_CONFIG_HOME"]) / "cleared/approval-key"
    go_live(ws, "1")
    good = key.read_bytes()
    key.chmod(0o644)
    ws.put(PROBE, HEADER + "2\n")
    for argv in (["agent", "run", "probe"], ["config", "set", "sandbox.timeout", "9"]):
        with unchanged(ws):
            done = ws(*argv)
            assert done.code in (3, 4), (argv, done)
            no_traceback(done)
    assert "chmod 600" in done.err
    key.chmod(0o600)
    ws.git("checkout", "-q", PROBE)
    for data in (b"", b"\xff\xff", b"AAAA\n", good[:-10], b"x" * 100_000):
        key.write_bytes(data)
        with unchanged(ws):
            refused(ws("agent", "run", "probe"), 3, "damaged", "delete it and approve again")
    key.unlink()
    key.mkdir()
    refused(ws("agent", "run", "probe"), 3, "cannot be read")
    key.rmdir()
    refused(ws("agent", "run", "probe"), 3, "not trusted on this machine")
    take_ok(ws, "config", "approve")
    ws.put(PROBE, HEADER + "2\n")
    take_ok(ws, "agent", "approve", propose(ws, "probe"))
    assert ws.run("probe")["result"] == 2, "a lost key: approve again with a new one"


def test_a_key_inside_the_workspace_is_refused(ws: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also by way of a link."""
    ws.put(PROBE, HEADER + "1\n")
    number = propose(ws, "probe")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "approval-key").symlink_to(ws.root / ".cleared/key")
    folder = tmp_path / "folder"
    folder.symlink_to(ws.root)
    for home in (ws.root, ws.root / ".cleared", folder, linked):
        monkeypatch.setenv("CLEARED_HOME", str(home))
        with unchanged(ws):
            refused(take_shown(ws, "agent", "approve", number), 4, "inside the workspace", "CLEARED_HOME")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "file/below"))
    (tmp_path / "file").write_text("")
    with unchanged(ws):
        refused(take_shown(ws, "agent", "approve", number), 3, "file/below", "CLEARED_HOME")


# -- the user's own git -----------------------------------------------------------------------------------------------


def test_approvals_survive_a_squash_of_everything_into_one_commit(ws: Workspace) -> None:
    go_live(ws, "1")
    go_live(ws, "2")
    ws.put(PROBE, HEADER + "3\n")
    waiting = propose(ws, "probe")
    ws.git("checkout", "-q", "--", PROBE)
    ws.git("checkout", "-q", "--orphan", "squashed")
    ws.git("commit", "-qm", "all of it")
    assert ws.run("probe")["result"] == 2
    ws.put(PROBE, HEADER + "3\n")
    take_ok(ws, "agent", "approve", waiting)
    assert ws.run("probe")["result"] == 3
    ws.ok("agent", "rollback", "probe")
    assert ws.run("probe")["result"] == 2


def test_approvals_survive_a_rebase(ws: Workspace) -> None:
    first = ws.head()
    go_live(ws, "1")
    ws.git("checkout", "-q", "-b", "side", first)
    ws.put("notes.md", "mine")
    ws.commit("notes.md")
    main = next(b for b in ws.git("branch", "--format=%(refname:short)").split() if b != "side")
    ws.git("checkout", "-q", main)
    ws.git("rebase", "-q", "side")
    assert ws.run("probe")["result"] == 1
    assert go_live(ws, "2") and ws.run("probe")["result"] == 2


def test_approvals_survive_a_shallow_clone(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.drop("january.csv")
    ws.run("ingest")
    starter = ws.read("agents/ingest.py")
    ws.put("agents/ingest.py", starter + "# mine\n")
    waiting = propose(ws, "ingest")
    ws.git("checkout", "-q", "--", "agents/ingest.py")
    go_live(ws, "1")
    here = clone(ws, tmp_path / "shallow", "--depth", "1")
    take_ok(here, "trust", "--yes")
    assert here.run("probe")["result"] == 1, "the same user: nobody new to trust"
    done = take_shown(here, "agent", "approve", waiting)
    no_traceback(done)
    assert done.code in (0, 3), done
    if done.code == 3:  # what it was rehearsed over is not here: it was examined anew
        assert "stale" in done.err
        (again,) = [c["title"].split(":")[0] for c in here.cards() if c["kind"] == "proposal"]
        take_ok(here, "agent", "approve", again)
    assert here.read("agents/ingest.py").endswith("# mine\n")
    here.run("ingest")
    go_live(here, "2")
    here.ok("agent", "rollback", "probe")
    assert here.run("probe")["result"] == 1


def test_a_merge_of_two_approved_versions_is_one_of_them_or_refused(ws: Workspace) -> None:
    """Each branch approved its own: either may be chosen; a mixture is nobody's, and is refused until proposed."""
    go_live(ws, "0")
    ws.git("branch", "side")
    main = ws.git("branch", "--show-current").strip()
    mine = go_live(ws, "1")
    ws.git("checkout", "-q", "side")
    theirs = go_live(ws, "2")
    ws.git("checkout", "-q", main)
    ws.git("merge", "-q", "--no-edit", "side", check=False)
    clashes = ws.git("diff", "--name-only", "--diff-filter=U").split()
    assert clashes == [PROBE], "records, proposals and logs do not clash"
    before = ws.head()
    for text, result in ((mine, 1), (theirs, 2)):
        ws.put(PROBE, text)
        ws.git("add", PROBE)
        if ws.head() == before:
            ws.git("commit", "-q", "--no-edit")
            merge = ws.head()
        else:
            ws.git("commit", "-qm", "the other")
        assert ws.run("probe")["result"] == result
    ws.put(PROBE, HEADER + "3\n")
    ws.commit(PROBE)
    with unchanged(ws):
        refused(ws("agent", "run", "probe"), 3, "nobody has approved", "cleared agent propose probe")
    take_ok(ws, "agent", "approve", ws.json("agent", "propose", "probe")["id"])
    assert ws.run("probe")["result"] == 3
    ws.ok("agent", "rollback", "probe")
    assert ws.run("probe")["result"] in (1, 2)
    # The merge itself touched the queue, which only its user can answer for.
    ws.ok("accept", merge, "--reason", "two branches of mine")
    ws.in_order()


def test_an_unresolved_conflict_is_refused(ws: Workspace) -> None:
    text = go_live(ws, "1")
    ws.put(PROBE, f"<<<<<<< HEAD\n{text}=======\n{HEADER}2\n>>>>>>> side\n")
    ws.commit(PROBE)
    refused(ws("agent", "run", "probe"), 3, "nobody has approved")


# -- proposals travel -------------------------------------------------------------------------------------------------


def test_a_proposal_can_be_approved_in_a_clone_which_examines_it_again(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws.drop("january.csv")
    ws.run("ingest")
    ws.put("agents/ingest.py", ws.read("agents/ingest.py") + "# mine\n")
    number = propose(ws, "ingest")
    there = clone(ws, tmp_path / "copy")
    with machine(monkeypatch, tmp_path / "other"):
        refused(take_shown(there, "agent", "approve", number), 3, "not trusted on this machine", "cleared trust")
        take_ok(there, "trust", "--yes")
        examined = []
        from cleared.gate.examination import Gate

        inner = Gate.examine

        def examine(self: Gate, *args: Any, **options: Any) -> Any:
            examined.append(options.get("runs"))
            return inner(self, *args, **options)

        monkeypatch.setattr(Gate, "examine", examine)
        take_ok(there, "agent", "approve", number)
        assert examined == [None], "all of it, over past runs too"
        there.run("ingest")
    ws.git("checkout", "-q", "--", "agents/ingest.py")
    ws.git("pull", "-q", str(there.root), "HEAD")
    refused(ws("agent", "run", "ingest"), 3, "not trusted on this machine", "cleared trust")
    take_ok(ws, "trust", "--yes")
    ws.run("ingest")
    assert [e["event"] for e in ws.json("agent", "history", "ingest")][-2:] == ["proposed", "approved"]


def test_settings_and_cases_of_a_clone_count_when_their_approvers_do(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then nothing runs by somebody's policy, starters neither, and no change is examined without the cases."""
    ws.drop("january.csv")
    ws.ok("test", "add", ws.run("ingest")["run_id"])
    there = clone(ws, tmp_path / "cases")
    with machine(monkeypatch, tmp_path / "other"):
        there.put("agents/ingest.py", ws.read("agents/ingest.py") + "# mine\n")
        done = there("agent", "propose", "ingest", "--json")
        assert done.code == 1 and [f["rule"] for f in done.json["findings"]] == ["regression-unknown"]
        take_ok(there, "trust", "--yes")
        propose(there, "ingest")
    ws.config("thresholds.auto_confirm=0.94")
    there = clone(ws, tmp_path / "settings")
    with machine(monkeypatch, tmp_path / "third"):
        with unchanged(there):
            refused(there("agent", "run", "ingest"), 3, "so nothing is run or decided", "cleared trust")
        assert there.ok("config", "get", "thresholds.auto_confirm").out.strip() == "0.95"
        take_ok(there, "trust", "--yes")
        there.run("ingest")
        assert there.ok("config", "get", "thresholds.auto_confirm").out.strip() == "0.94"


def test_a_clone_that_trusts_nobody_yet_does_not_approve_on_top_of_their_versions(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is approved here is the base: the same proposal has another one, and is examined against that anew."""
    go_live(ws, "1")
    ws.put(PROBE, HEADER + "2\n")
    number = propose(ws, "probe")
    there = clone(ws, tmp_path / "copy")
    again = clone(ws, tmp_path / "again")
    with machine(monkeypatch, tmp_path / "other"):
        done = take_shown(there, "agent", "approve", number)
        refused(done, 3, "not trusted on this machine yet", "cleared trust")
        take_ok(again, "trust", "--yes")
        take_ok(again, "agent", "approve", number)
        assert again.run("probe")["result"] == 2


def test_one_key_is_trusted_and_another_is_not(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has pushed a decision under the name that all machines here have: what each key did last is shown."""
    go_live(ws, "1")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "mallory"))
    take_ok(ws, "trust", "--same-books", "--yes")
    ws.ok("journal", "add", "2025-01-31", "owner takes", "3200=7777.00", "2100=-7777.00")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "auditor"))
    there = Workspace(tmp_path / "there")
    ws.git("clone", "-q", f"file://{ws.root}", str(there.root))
    shown = json.loads(there("trust", "--json").out.splitlines()[0])
    theirs = next(s for s in shown if "owner takes" in s["paths"][0])
    good = [s["key"] for s in shown if s is not theirs]
    assert len(good) == 2
    refused(there("trust", "--key", "nobody"), 2, "no key that waits for trust begins with 'nobody'")
    take_ok(there, "trust", *(part for key in good for part in ("--key", key)), "--yes")
    assert {s["key"] for s in there("trust", "--json", "--list").json if s["trusted"]} == set(good)
    assert there.run("probe")["result"] == 1
    (found,) = there("check", "--json").json["violations"]
    assert "owner takes" in found["message"] and "no machine that is trusted here attests it" in found["message"]
