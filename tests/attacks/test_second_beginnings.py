"""Who can push, and has no key: history that begins a second time, or elsewhere, vouches for nothing.

Each attack ends in one file that books 7,777.00 against Member draws. ``check`` names the commit that brings
it, on the machine that pulls, and in a fresh clone whose owner trusts all that the books show.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, take_ok
from pushing import JOURNAL, MARKS, Attack, begin, check, clone_afresh, first_run, ignore_states, join, put_draws

from cleared.books.ledger.entry import HEADER_LINE
from cleared.changes.audit.commit_origins import CommitOrigins


def branch_off_below_the_first_run(ws: Workspace, mark: str) -> list[str]:
    """Hand-made entries after ``init``, then the first run's own commit once more."""
    ws.git("checkout", "-q", "-b", "side", begin(ws))
    made = put_draws(ws, mark)
    ws.git("cherry-pick", first_run(ws))
    join(ws, "side")
    return [made]


def answer_for_it(ws: Workspace, mark: str) -> list[str]:
    """The same, and a further commit that says that somebody accepted the first, and alters what is committed."""
    ws.git("checkout", "-q", "-b", "side", begin(ws))
    made = put_draws(ws, mark)
    ws.put(JOURNAL, ws.read(JOURNAL).replace("7777.00", "8888.00"))
    ws.git("commit", "-q", "-a", "-m", f"x\n\nDecision: 20241231T060000Z-fedcba\nAccepts: {made}")
    answer = ws.head()
    ws.git("cherry-pick", first_run(ws))
    join(ws, "side")
    return [made, answer]


def merge_with_many_parents(ws: Workspace, mark: str) -> list[str]:
    ws.git("checkout", "-q", "-b", "side", begin(ws))
    made = put_draws(ws, mark)
    for name in ("other", "third"):
        ws.git("checkout", "-q", "-b", name, begin(ws))
        ws.put(f"{name}.txt", "x\n")
        ws.commit(f"{name}.txt")
    join(ws, "side", "other", "third")
    return [made]


def graft_a_root(ws: Workspace, mark: str) -> list[str]:
    """A history of its own, without any commit of the books, that is joined."""
    ws.git("checkout", "-q", "--orphan", "side")
    ws.git("rm", "-rfq", ".")
    made = put_draws(ws, mark)
    join(ws, "side")
    return [made]


def graft_a_root_that_calls_itself_init(ws: Workspace, mark: str) -> list[str]:
    """It has all files that ``init`` made, its attestation too."""
    ws.git("checkout", "-q", "--orphan", "side", begin(ws))
    header = ws.git("show", "main:books/2025/01/journal.csv").splitlines()[0]
    ws.put(JOURNAL, f"{header}\n")
    ws.git("add", "-A", "books")
    ws.git("commit", "-q", "-C", begin(ws))
    root = ws.head()
    made = put_draws(ws, mark)
    join(ws, "side")
    return [root, made]


def replay_attestations(ws: Workspace, mark: str) -> list[str]:
    """With the message and the attestations of a run that was made on another branch, and more than it did."""
    ws.git("checkout", "-q", "-b", "side", "main")
    ws.git("checkout", "-q", "origin/elsewhere", "--", "logs")
    ws.put("notes", "")
    made = put_draws(ws, mark)
    ws.git("commit", "-q", "--amend", "-C", "origin/elsewhere")
    made = ws.head()
    join(ws, "side")
    return [made]


def give_it_another_parent(ws: Workspace, mark: str) -> list[str]:
    """A run's own tree and message on a parent without all that was before: it then says that the run did that."""
    ws.git("checkout", "-q", "-b", "side", begin(ws))
    put_draws(ws, mark)
    ws.git("checkout", "-q", "-b", "moved", begin(ws))
    ws.git("read-tree", "-m", "-u", "side")
    ws.git("cherry-pick", "--no-commit", first_run(ws))
    ws.git("commit", "-q", "-C", first_run(ws))
    made = ws.head()
    join(ws, "moved")
    return [made]


ATTACKS = (
    branch_off_below_the_first_run,
    answer_for_it,
    merge_with_many_parents,
    graft_a_root,
    graft_a_root_that_calls_itself_init,
    replay_attestations,
    give_it_another_parent,
)


def attack(remote: Path, tmp_path: Path, how: Attack, mark: str) -> list[str]:
    posted = Workspace(tmp_path / "books")
    posted.git("clone", "-q", str(remote), str(tmp_path / "mallory"))
    mallory = Workspace(tmp_path / "mallory")
    commits = how(mallory, mark)
    assert "7777.00" in mallory.read(JOURNAL) or "8888.00" in mallory.read(JOURNAL)
    mallory.git("push", "-q", "origin", "main")
    return commits


@pytest.mark.parametrize("mark", MARKS, ids=["run", "decision"])
@pytest.mark.parametrize("how", ATTACKS, ids=lambda how: how.__name__)
def test_a_second_beginning_vouches_for_nothing(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Attack, mark: str
) -> None:
    posted.in_order()
    commits = attack(remote, tmp_path, how, mark)
    posted.git("pull", "-q", "--no-rebase", "origin", "main")
    with clone_afresh(remote, tmp_path, monkeypatch) as fresh:
        take_ok(fresh, "trust", "--yes")
        in_fresh = check(fresh)
    for found in (check(posted), in_fresh):
        for commit in commits:
            assert any(commit[:10] in each for each in found), (commit[:10], found)


def test_it_would_if_whoever_says_so_were_a_run(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommitOrigins, "find_origin", lambda self, commit: "ours")
    ignore_states(monkeypatch)
    attack(remote, tmp_path, branch_off_below_the_first_run, MARKS[0])
    posted.git("pull", "-q", "--no-rebase", "origin", "main")
    assert check(posted) == []


def test_from_the_first_commit_on_there_are_attestations(ws: Workspace) -> None:
    """Row D24."""
    (path,) = [name for name in ws.git("ls-tree", "-r", "--name-only", "HEAD").splitlines() if "attestations" in name]
    assert ws.git("rev-list", "--count", "HEAD").strip() == "1" and ws.read(path).count("\n") == 1
    ws.in_order()
    ws.put("accounts/chart-of-accounts.csv", ws.read("accounts/chart-of-accounts.csv").replace("Coffee", "Tea"))
    ws.put("books/2025/02/journal.csv", HEADER_LINE)
    ws.git("add", "-A")
    ws.git("commit", "-q", "--amend", "--no-edit")
    assert any(ws.head()[:10] in each for each in check(ws)), "what was changed in it is not what was attested"
