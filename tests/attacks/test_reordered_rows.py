"""Who can push puts rows elsewhere in the commit of a run or decision: of some files the last row is what counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import IDENTITY, LOG, QUEUE, Workspace, chase, refused, take_ok
from pushing import check, ignore_states

from cleared.changes import attestation, change_digests, lost_rows
from cleared.changes.audit import commit_origins

PERIODS = "books/periods.csv"
OUTCOMES = "books/bank/outcomes-2025-01.csv"


@pytest.fixture
def closed(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """January was closed, reopened and closed again."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    posted.ok("period", "close", "2025-01", "--with-pending")
    take_ok(posted, "period", "reopen", "2025-01", "--reason", "a bill came")
    posted.ok("period", "close", "2025-01", "--with-pending")
    posted.in_order()
    return posted


def reorder(ws: Workspace, path: str, order: list[int]) -> None:
    """Put the rows below the header, or all lines, of a file into this order."""
    header, *rows = ws.read(path).splitlines(keepends=True)
    lines = [header, *(rows[at] for at in order), *rows[len(order) :]]
    ws.put(path, "".join(lines))


def is_open(ws: Workspace) -> bool:
    return ws("journal", "add", "2025-01-31", "late", "5020=1.00", "1010=-1.00").code == 0


@pytest.mark.parametrize("order", [[0, 2, 1], [1, 2, 0], [2, 0, 1]])
def test_a_decision_that_was_amended_moves_no_row(closed: Workspace, order: list[int]) -> None:
    reorder(closed, PERIODS, order)
    closed.git("commit", "-qa", "--amend", "--no-edit")
    (found,) = check(closed)
    assert "calls itself a decision, but no machine attests it" in found and closed.head()[:10] in found


def test_it_would_if_the_order_were_not_bound(closed: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(before: object, after: dict[str, bytes | None], changes: object) -> str:
        rows = [(path, sorted((data or b"").decode().splitlines())) for path, data in sorted(after.items())]
        return change_digests._digest([row for row in rows if not change_digests.is_attestation(row[0])])

    for module in (attestation, commit_origins):
        monkeypatch.setattr(module, "digest_lines", digest)
    monkeypatch.setattr(lost_rows, "find_moved_rows", lambda *_: [])
    ignore_states(monkeypatch)
    take_ok(closed, "period", "reopen", "2025-01", "--reason", "another")
    closed.ok("period", "close", "2025-01", "--with-pending")
    reorder(closed, PERIODS, [0, 1, 2, 4, 3])
    closed.git("commit", "-qa", "--amend", "--no-edit")
    closed.in_order()
    assert is_open(closed)


@pytest.mark.parametrize("path", [QUEUE, LOG])
def test_a_commit_that_only_calls_itself_a_decision_moves_no_line(posted: Workspace, path: str) -> None:
    lines = posted.read(path).splitlines(keepends=True)
    posted.put(path, "".join([*lines[:-2], lines[-1], lines[-2]]))
    posted.git("commit", "-qam", "queue: x\n\nDecision: 20250210T060000Z-abcdef")
    (found,) = check(posted)
    assert "removed or changed what was committed" in found


def swap_last_two(ws: Workspace) -> None:
    """The history with the reopening after the closing that came after it; what each commit attests stays the same."""
    closing, reopening, first = ws.git("rev-parse", "HEAD", "HEAD~1", "HEAD~2").split()
    ws.git("reset", "-q", "--hard", first)
    for commit in (closing, reopening):
        *rows, opened, closed = ws.git("show", f"{closing}:{PERIODS}").splitlines(keepends=True)
        ws.put(PERIODS, "".join([*rows, closed, *([opened] if commit == reopening else [])]))
        for path in ws.git("diff", "--name-only", f"{commit}~1", commit).splitlines():
            if path != PERIODS:
                added = ws.git("show", f"{commit}:{path}").removeprefix(ws.git("show", f"{commit}~1:{path}"))
                ws.put(path, ws.read(path) + added)
        ws.git("commit", "-qa", "-C", commit)


@pytest.mark.parametrize("wall", [True, False])
def test_whole_commits_are_not_moved_either(closed: Workspace, monkeypatch: pytest.MonkeyPatch, wall: bool) -> None:
    if not wall:
        forget_what_stood_before(closed, monkeypatch)
        monkeypatch.setattr(lost_rows, "find_moved_rows", lambda *_: [])
    swap_last_two(closed)
    if wall:
        assert any("calls itself a decision, but no machine attests it" in found for found in check(closed))
    else:
        closed.in_order()
        assert is_open(closed)


@pytest.mark.parametrize("wall", [True, False])
def test_a_clone_that_has_seen_another_order_says_so(
    closed: Workspace, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Also where none of the commits says what stood before."""
    forget_what_stood_before(closed, monkeypatch)
    if not wall:
        monkeypatch.setattr(lost_rows, "find_moved_rows", lambda *_: [])
    swap_last_two(closed)
    assert check(closed) == []
    assert is_open(closed) is not wall
    if wall:
        told = "books/periods.csv has its rows in another order than at"
        refused(closed("journal", "void", "2025-01-001", "--reason", "x"), 4, told, "cleared recover --forget")
        refused(closed("recover"), 1, told)
        take_ok(closed, "recover", "--forget")
        assert is_open(closed)


def forget_what_stood_before(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_digests, "list_rows_before", lambda *_: [])
    ignore_states(monkeypatch)
    take_ok(ws, "period", "reopen", "2025-01", "--reason", "another")
    ws.ok("period", "close", "2025-01", "--with-pending")


def hold_lines(ws: Workspace) -> list[str]:
    """The cards of two bank lines of January that wait for a person."""
    ws.drop("more.csv", chase(("01/30/2025", "AWS EMEA", "-42.10"), ("01/31/2025", "TEA", "-3.00")))
    ws.script(
        'for t in importer_parse("more.csv"):\n'
        '    queue_add_review(t["reference"], "what was this?")\n'
        'importer_mark_processed("more.csv")["new"]'
    )
    return [card["id"] for card in ws.cards() if card["kind"] == "line"]


def test_what_became_of_a_line_is_moved_in_the_file_of_no_month(posted: Workspace) -> None:
    first, _ = hold_lines(posted)
    posted.ok("queue", "answer", first, "ignore")
    assert [row.split(",")[1] for row in posted.read(OUTCOMES).splitlines()[1:]] == ["held", "held", "ignored"]
    reorder(posted, OUTCOMES, [2, 0, 1])
    posted.git("commit", "-qa", "--amend", "--no-edit")
    found = " ".join(each["message"] for each in posted("check", "--json").json["violations"])
    assert "calls itself a decision, but no machine attests it" in found
    assert f"{OUTCOMES} has its rows in another order" in found


@pytest.mark.parametrize("how", ["rebase", "merge"])
def test_decisions_about_other_things_are_joined_in_any_order(
    posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Two clones leave out a bank line each: git puts the rows of both into one file."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    cards = hold_lines(posted)
    posted.git("clone", "-q", ".", str(tmp_path / "other"))
    other = Workspace(tmp_path / "other")
    take_ok(other, "trust", "--yes")
    for ws, card in zip((posted, other), cards, strict=True):
        ws.ok("queue", "answer", card, "ignore")
        assert OUTCOMES in ws.git("show", "--name-only", "--format=")
    other.git("pull", "-q", *(["--rebase"] if how == "rebase" else ["--no-rebase", "--no-edit"]))
    other.in_order()


def test_what_is_brought_back_stands_where_it_stood(closed: Workspace) -> None:
    before = closed.read(PERIODS)
    header, first, _, last = before.splitlines(keepends=True)
    closed.put(PERIODS, "".join([header, first, last]))
    closed.commit(PERIODS)
    assert "Brought back 1 closing" in closed.ok("recover").out
    assert closed.read(PERIODS) == before and not is_open(closed)
