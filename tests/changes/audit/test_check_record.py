"""SWIFT: a check that has nothing new to judge says what a whole check would say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Workspace, chase, no_traceback, unpack_objects

from cleared.git import Snapshot, known_files, known_objects
from cleared.workspace.location import cleared_home


@pytest.fixture
def right(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Books that were checked, and found right; twice, so that it is known what was read."""
    monkeypatch.setattr(known_files, "_SETTLED_SECONDS", 0)
    assert [posted("check").code for _ in range(2)] == [0, 0]
    return posted


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was judged again."""
    from cleared.books.audit.book_audit import BookAudit
    from cleared.changes.audit import record_violations

    calls: list[str] = []
    for module, name in ((BookAudit, "check_records"), (record_violations, "find_unknown_origins")):
        original: Callable[..., object] = getattr(module, name)

        def record(
            *args: object, name: str = name, original: Callable[..., object] = original, **more: object
        ) -> object:
            calls.append(name)
            return original(*args, **more)

        monkeypatch.setattr(module, name, record)
    return calls


def test_books_that_were_right_are_not_judged_again(right: Workspace, judged: list[str]) -> None:
    done = right("check")
    assert (done.code, judged) == (0, [])
    assert done.out == "All is in order: 4 entries, every invariant holds.\n"
    right.put("notes.txt", "no book")
    assert right("check").code == 0
    assert not judged
    right.commit("notes.txt")
    assert right("check").code == 0
    assert judged == ["check_records", "find_unknown_origins"]  # another commit may have another history


def test_books_with_a_fault_are_judged_each_time(posted: Workspace, judged: list[str]) -> None:
    posted.put("books/2025/01/journal.csv", posted.read("books/2025/01/journal.csv").replace("1500.00", "1600.00", 1))
    posted.git("commit", "-qam", "by hand")
    first = posted("check", "--json")
    assert (first.code, posted("check", "--json").out) == (1, first.out)
    # Then which version of the file is right: that of the last commit is not, the one before it is.
    assert judged == ["check_records", "find_unknown_origins", "check_records", "check_records"] * 2


JOURNAL = "books/2025/01/journal.csv"


def edit_file(ws: Workspace) -> None:
    ws.put(JOURNAL, ws.read(JOURNAL).replace("COFFEE", "COCOA"))


def edit_and_restore_times(ws: Workspace) -> None:
    import os

    before = (ws.root / JOURNAL).stat()
    ws.put(JOURNAL, ws.read(JOURNAL).replace("COFFEE", "CAVIAR"))
    os.utime(ws.root / JOURNAL, ns=(before.st_atime_ns, before.st_mtime_ns))


def amend_history(ws: Workspace) -> None:
    edit_file(ws)
    ws.git("commit", "-qa", "--amend", "--no-edit")


def forge_signature(ws: Workspace) -> None:
    for path in (ws.root / "logs").glob("attestations-*"):
        path.write_text(path.read_text().replace('"signature":"', '"signature":"AA'))
    ws.git("commit", "-qa", "--amend", "--no-edit")


def lose_rows(ws: Workspace) -> None:
    ws.git("reset", "-q", "--hard", "HEAD~1")


def change_run_key(ws: Workspace) -> None:
    (cleared_home() / "run-key").unlink()


def change_currency(ws: Workspace) -> None:
    config = ws.root / "config.yaml"
    config.write_text(config.read_text().replace("currency: USD", "currency: JPY"))


def add_untracked_journal(ws: Workspace) -> None:
    ws.put("books/2025/02/journal.csv", ws.read(JOURNAL))


def unpack_journal(ws: Workspace) -> Path:
    """The loose file of the journal, which was read from it."""
    unpack_objects(ws.root)
    assert [ws("check").code for _ in range(2)] == [0, 0]
    oid = ws.git("rev-parse", f"HEAD:{JOURNAL}").strip()
    return ws.root / ".git/objects" / oid[:2] / oid[2:]


def damage_object(ws: Workspace) -> None:
    file = unpack_journal(ws)
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:40])


def lose_object(ws: Workspace) -> None:
    unpack_journal(ws).unlink()


def damage_pack(ws: Workspace) -> None:
    ws.git("gc", "-q")
    assert [ws("check").code for _ in range(2)] == [0, 0]
    (pack,) = (ws.root / ".git/objects/pack").glob("*.pack")
    rot(pack, pack.stat().st_size // 2)


def lose_pack(ws: Workspace) -> None:
    for file in (ws.root / ".git/objects/pack").iterdir():
        file.unlink()


def rot(file: Path, at: int) -> None:
    """Change some bytes in place."""
    file.chmod(0o644)
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(b"ROTTEN")


def forget_pin(ws: Workspace) -> None:
    shutil.rmtree(cleared_home() / "clones")


def plant_record(ws: Workspace) -> None:
    """A record of this very state, by somebody without the key; in books with a fault."""
    record = ws.root / ".cleared/books/checked"
    amend_history(ws)
    content = record.read_bytes()[32:]
    record.write_bytes(b"x" * 32 + content.replace(b"commit", ws.head().encode()))


@pytest.mark.parametrize(
    "change",
    [
        edit_file,
        edit_and_restore_times,
        amend_history,
        forge_signature,
        lose_rows,
        change_run_key,
        change_currency,
        add_untracked_journal,
        damage_object,
        damage_pack,
        lose_object,
        lose_pack,
        forget_pin,
        plant_record,
    ],
)
def test_whatever_changes_is_found_as_by_a_whole_check(right: Workspace, change: Callable[[Workspace], None]) -> None:
    change(right)
    known = right("check", "--json")
    for kept in [
        path for name in ("checked", "judged", "*.judged") for path in right.root.glob(f".cleared/books/{name}")
    ]:
        kept.unlink()
    whole = right("check", "--json")
    assert (known.code, known.out) == (whole.code, whole.out)
    if change not in (change_run_key, forget_pin, change_currency):
        assert whole.code != 0


@pytest.mark.parametrize("where", ["tree", "store"])
def test_what_rots_without_a_time_of_change_is_found_in_turn(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Each check reads some again, and ``doctor`` all."""
    monkeypatch.setattr(known_files, "_SETTLED_SECONDS", 0)
    for module in (known_files, known_objects):
        monkeypatch.setattr(module, "describe_state", lambda status: (status.st_ino, status.st_size))
    journal = unpack_journal(posted)
    rot(posted.root / JOURNAL if where == "tree" else journal, 20)
    rows = posted("doctor", "--json").json["checks"]
    failed = [row["name"] for row in rows if row["status"] == "fail"]
    assert {"tree": "managed files", "store": "history"}[where] in failed
    found = [posted("check").code for _ in range(known_files._TURNS)]
    assert found == sorted(found)  # once found, it stays so
    assert found[-1] == 1


def test_an_unchanged_check_reads_an_eighth_of_old_books(right: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = Snapshot.read_blobs
    monkeypatch.setattr(Snapshot, "read_blobs", lambda self, oids: read.extend(oids) or original(self, oids))
    right("check")
    first = set(read)
    read.clear()
    right("check")
    assert first
    assert not first & set(read)
    assert len(read) <= len(right.git("ls-files", "books", "accounts", "queue", "logs", "agents").split()) / 8 + 1


def test_a_file_whose_name_is_no_text_stops_no_check(right: Workspace) -> None:
    """Whoever pushes it: the commit is named each time."""
    name = os.fsencode(right.root / "books/bank") + b"/note-\xff.txt"
    with open(name, "wb") as file:
        file.write(b"x")
    right.git("add", "-A")
    right.git("commit", "-qm", "by hand")
    found = [right("check", "--json") for _ in range(3)]
    assert [(each.code, each.json["violations"][0]["check"]) for each in found] == [(1, "provenance")] * 3
    no_traceback(right("agent", "run", "ingest"))


def test_what_was_seen_and_is_gone_is_lost_though_the_rest_was_right(right: Workspace) -> None:
    """The commit by hand was the last that this machine saw."""
    edit_file(right)
    right.git("commit", "-qam", "by hand")
    assert right("check").code == 1
    right.git("reset", "-q", "--hard", "HEAD~1")
    for _ in range(2):
        found = right("check", "--json").json["violations"]
        assert [each["check"] for each in found] == ["lost"]


def test_a_commit_that_git_has_forgotten_stops_no_check(right: Workspace) -> None:
    """It was the last that was judged."""
    right.put("note.txt", "a note")
    right.commit("note.txt")
    right.ok("check")
    right.git("commit", "-q", "--amend", "-m", "a better note")
    right.git("reflog", "expire", "--expire=now", "--all")
    right.git("gc", "-q", "--prune=now")
    right.ok("check")
    right.drop("more.csv", chase(("02/04/2025", "GITHUB *PRO", "-5.00")))
    right.run("ingest")
    right.in_order()


@pytest.mark.parametrize("kept", ["queue", "logs/attestations-2025-02.jsonl"])
def test_a_file_that_git_cannot_read_any_more_is_not_in_order(right: Workspace, kept: str) -> None:
    unpack_objects(right.root)
    assert [right("check").code for _ in range(2)] == [0, 0]
    path = right.git("ls-files", kept).split()[-1]
    oid = right.git("rev-parse", f"HEAD:{path}").strip()
    (right.root / ".git/objects" / oid[:2] / oid[2:]).unlink()
    for _ in range(2):
        done = right("check")
        assert done.code != 0, done
        no_traceback(done)


def test_a_year_that_is_gone_from_the_top_is_told(ws: Workspace) -> None:
    ws.ok("config", "set", "paths.books", ".")
    ws.drop("january.csv")
    ws.run("ingest")
    ws.ok("check")
    shutil.rmtree(ws.root / "2025")
    found = ws("check", "--json").json["violations"]
    assert "2025/01/journal.csv" in {each["place"] for each in found if each["check"] == "unchanged"}


@pytest.mark.parametrize("how", ["edited", "taken away"])
def test_what_a_check_says_of_a_file_that_differs_brings_it_back(posted: Workspace, how: str) -> None:
    """Fault: where the edit was staged, git brought back just that."""
    path = "books/bank/checking/2025-01.csv"
    text = posted.read(path)
    posted.put(path, text.replace("COFFEE", "TEA"))
    posted.git("add", path) if how == "edited" else posted.git("rm", "-qf", path)
    remedies = [each["remedy"] for each in posted("check", "--json").json["violations"] if each["place"] == path]
    ways = [way for each in remedies for way in re.findall(r"git checkout HEAD -- \S+(?=\.)", each)]
    assert ways, remedies
    subprocess.run(ways[0], shell=True, cwd=posted.root, check=True, capture_output=True)
    assert posted.read(path) == text
    posted.in_order()


DAMAGED = ["books/bank/checking/2025-01.csv", "books/2025/01/journal.csv", "accounts/chart-of-accounts.csv", "queue"]


@pytest.mark.parametrize("path", DAMAGED)
@pytest.mark.parametrize("where", ["here", "committed", "committed before"])
def test_what_a_check_says_of_a_damaged_file_brings_its_newest_right_version_back(
    posted: Workspace, path: str, where: str
) -> None:
    """Fault: it went back to before the last commit of the file, though that was right, or was no older than the
    damage."""
    if path == "queue":
        (path,) = (name for name in posted.git("ls-files", "queue").split() if name.endswith(".jsonl"))
    right = posted.read(path)
    for number in range({"here": 1, "committed": 1, "committed before": 2}[where]):
        posted.put(path, f"{posted.read(path)}{number},torn\n")
        if where != "here":
            posted.commit(path)
    found = posted("check").out
    (said,) = {way for way in re.findall(r"git checkout \S+ -- [^\s.,;)]+\.\w+", found) if path in way}
    assert ("HEAD" in said) is (where == "here") and "was committed so" not in found, found
    if path == "books/2025/01/journal.csv":  # one of several is named there
        assert said in posted("doctor").out
    subprocess.run(said, shell=True, cwd=posted.root, check=True, capture_output=True)
    assert posted.read(path) == right
