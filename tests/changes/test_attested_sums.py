"""What the attestations come to is kept of months that are over, and is what their lines say."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
from harness import Workspace

from cleared.changes.attestation_lines import render_attestation
from cleared.changes.attested_sums import Attested, AttestedSums, MonthLines
from cleared.changes.host import Host
from cleared.changes.line_worth import LineWorth
from cleared.changes.workspace_opening import open_workspace
from cleared.git import Snapshot
from cleared.trust.keys import _key_of, new_secret


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The months whose lines were read."""
    months: list[str] = []
    original = AttestedSums._read_month

    def note(sums: AttestedSums, month: str, lines: list[bytes]) -> MonthLines:
        months.append(month)
        return original(sums, month, lines)

    monkeypatch.setattr(AttestedSums, "_read_month", note)
    return months


def describe(found: Attested, gone: list[str]) -> list[object]:
    standing = found.list_standing()
    counted = [(each.commit, each.total) for each in standing][:1]
    return [dict(found.months), standing, found.total(()), found.total(gone), found.total(gone, counted)]


def compare(host: Host, empty: Path, gone: list[str]) -> list[str]:
    """What is kept against what is read where nothing is; some digests of lines that count."""
    with host.open_for_reading() as repo:
        for commit in (repo.read_head(), repo.read_head()):
            snapshot = Snapshot(repo, commit)
            worth = LineWorth(host, snapshot)
            kept = AttestedSums(worth, host.layout.state_dir).read(snapshot)
            fresh = AttestedSums(worth, empty).read(snapshot)
            assert describe(kept, gone) == describe(fresh, gone)
        return [month.counting[:32] for month in fresh.months.values()]


@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_is_what_the_lines_say(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[str], seed: int
) -> None:
    chance, gone, path = random.Random(seed), list[str](), "accounts/chart-of-accounts.csv"
    for month in range(3, 8):
        monkeypatch.setenv("CLEARED_CLOCK", f"2025-{month:02d}-28T20:00:00Z")
        for day in (1, 2):
            ws.ok("journal", "add", f"2025-{month:02d}-{day:02d}", "by hand", "5020=7.00", "1010=-7.00")
        match chance.choice(("edit", "revert", "none")):
            case "edit":
                ws.put(path, ws.read(path).replace("Meals", f"Meals {month}"))
                ws.commit(path)
                ws.ok("accept", "HEAD", "--reason", "meant so")
            case "revert":
                ws.git("revert", "--no-edit", "HEAD")
                ws.ok("accept", "HEAD", "--reason", "meant so")
        gone += compare(open_workspace(ws.root), tmp_path / f"{month}", chance.sample(gone, len(gone) // 2))[-1:]
    read.clear()
    host = open_workspace(ws.root)
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        AttestedSums(LineWorth(host, snapshot), host.layout.state_dir).read(snapshot)
    assert read == ["logs/attestations-2025-07.jsonl"]


def test_what_others_sign_is_read_anew(posted: Workspace, read: list[str]) -> None:
    """What it is worth may follow from a line of another month: one that takes it over."""
    line = posted.read("logs/attestations-2025-02.jsonl").splitlines(keepends=True)[0]
    posted.put("logs/attestations-2025-03.jsonl", line)
    posted.commit("logs")
    host = open_workspace(posted.root)
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        worth = LineWorth(host, snapshot)
        for is_own, times in ((True, 0), (False, 1)):
            worth.is_own = lambda _, own=is_own: own  # type: ignore[method-assign,misc]
            shutil.rmtree(host.layout.state_dir / "books")
            for _ in range(2):
                read.clear()
                AttestedSums(worth, host.layout.state_dir).read(snapshot)
            assert read.count("logs/attestations-2025-02.jsonl") == times


def accept_copy(ws: Workspace, line: str, month: int) -> dict[str, object]:
    """Somebody puts a line into the file of a month, and a person answers for it: what is attested of that."""
    path = f"logs/attestations-2025-{month:02d}.jsonl"
    ws.put(path, line)
    ws.ok("accept", ws.commit(path), "--reason", "a copy")
    added = [each[1:] for each in ws.git("show", "HEAD", "--", "logs").splitlines() if each.startswith('+{"key')]
    said: dict[str, object] = json.loads(added[-1])["says"].get("accepts", {})
    return said


def test_an_answer_covers_no_line_that_was_there_or_counts(posted: Workspace) -> None:
    """Fault: the original of a line that was copied counted no more, and what it attests was refused."""
    line = posted.read("logs/attestations-2025-02.jsonl").splitlines(keepends=True)[-1]
    assert "covers" not in accept_copy(posted, line, 3)
    assert posted("check").code == 0
    stranger = render_attestation(json.loads(line)["says"], _key_of(new_secret())).decode()
    assert "covers" in accept_copy(posted, stranger, 4)
    assert "covers" not in accept_copy(posted, stranger, 5)
    assert posted("check").code == 0


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_other_ends_of_lines_lose_nothing(posted: Workspace, end: str) -> None:
    path = "logs/attestations-2025-02.jsonl"
    head = posted.head()
    (posted.root / path).write_bytes(posted.read(path).replace("\n", end).encode())
    posted.commit(path)
    assert "has lost" not in posted("check").out
    posted.git("reset", "-q", "--hard", head)
    assert posted("check").code == 0
