"""Who can push puts rows elsewhere in the commit of a run or decision: of some files the last row is what counts."""

from __future__ import annotations

import pytest
from harness import IDENTITY, LOG, QUEUE, Workspace, take_ok
from pushing import check

from cleared.changes import attestation, attestation_lines, change_digests
from cleared.changes.audit import commit_origins

PERIODS = "books/periods.csv"


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
    take_ok(closed, "period", "reopen", "2025-01", "--reason", "another")
    closed.ok("period", "close", "2025-01", "--with-pending")
    reorder(closed, PERIODS, [0, 1, 2, 4, 3])
    closed.git("commit", "-qa", "--amend", "--no-edit")
    closed.in_order()
    assert is_open(closed)


def test_what_an_earlier_build_has_signed_moves_none_either(closed: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It named the rows without their order. A rebase keeps it; a row that stands elsewhere is named all the same."""
    monkeypatch.setattr(attestation, "digest_lines", lambda *what: f"rows {change_digests.digest_rows(*what)}")
    made = attestation_lines._signed_payload

    def sign_as_before(statement: dict[str, object]) -> bytes:
        changes = statement["changes"]
        assert isinstance(changes, dict)
        if changes.get("lines", "").startswith("rows "):
            changes["rows"] = changes.pop("lines").removeprefix("rows ")
        return made(statement)

    monkeypatch.setattr(attestation_lines, "_signed_payload", sign_as_before)
    take_ok(closed, "period", "reopen", "2025-01", "--reason", "another")
    closed.ok("period", "close", "2025-01", "--with-pending")
    first = closed.git("rev-parse", "HEAD~1").strip()
    closed.git("checkout", "-q", "--detach", first)
    closed.put("notes.txt", "x\n")
    closed.commit("notes.txt")
    closed.git("cherry-pick", "@{-1}")
    closed.git("checkout", "-qb", "later")
    assert check(closed) == []
    reorder(closed, PERIODS, [0, 1, 2, 4, 3])
    closed.git("commit", "-qa", "--amend", "--no-edit")
    (found,) = check(closed)
    assert "no machine attests it" in found


@pytest.mark.parametrize("path", [QUEUE, LOG])
def test_a_commit_that_only_calls_itself_a_decision_moves_no_line(posted: Workspace, path: str) -> None:
    lines = posted.read(path).splitlines(keepends=True)
    posted.put(path, "".join([*lines[:-2], lines[-1], lines[-2]]))
    posted.git("commit", "-qam", "queue: x\n\nDecision: 20250210T060000Z-abcdef")
    (found,) = check(posted)
    assert "removed or changed what was committed" in found
