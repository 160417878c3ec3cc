"""Who can push names themselves a reviewer, decides, and brings the settings back as they were: a signature counts as a
reviewer's only under rules that somebody has approved whose key counts here.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Workspace, take_ok
from pushing import check
from reviewers import People

from cleared.changes.audit import provenance
from cleared.trust.keys import own_key
from cleared.trust.reviewers import KEY, SIGNATURE, commit_payload
from cleared.trust.verification import Approvals

RECORD = "agents/approvals/config.json"
BACK = "config: as before\n\nDecision: 20250210T060000Z-abcdef\nBy: mallory"


@contextlib.contextmanager
def mallory(remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """With a clone and a key of their own, and the program."""
    with monkeypatch.context() as patch:
        patch.setenv("CLEARED_HOME", str(tmp_path / "mallory-home"))
        ws = Workspace(tmp_path / "mallory")
        Workspace(tmp_path).git("clone", "-q", str(remote), str(ws.root))
        take_ok(ws, "trust", "--yes")
        yield ws
        ws.git("push", "-q", "origin", "HEAD:main")


def become_reviewer(ws: Workspace, *others: str) -> None:
    """And name whoever approved the settings that are to come back."""
    keys = [ws.json("queue", "reviewers")["key"], *others]
    people = "".join(f"  - {{name: n{at}, key: {key!r}}}\n" for at, key in enumerate(keys))
    ws.put_config(f"{ws.read('config.yaml').rstrip()}\nreviewers:\n{people}")


def book_draws(ws: Workspace) -> str:
    ws.ok("journal", "add", "2025-01-31", "draw", "3200=7777.00", "1010=-7777.00")
    return ws.head()


def settle_a_card(ws: Workspace) -> str:
    ws.ok("queue", "approve", ws.cards()[0]["id"])
    return ws.head()


def restore(ws: Workspace, before: str) -> None:
    """The settings and their record as they were, in a commit that this key signs."""
    ws.git("checkout", "-q", before, "--", "config.yaml", RECORD)
    key, workspace = own_key(ws.root), ws.read("agents/approvals/workspace").strip()
    assert key is not None
    files = {path: ws.read(path).encode() for path in ("config.yaml", RECORD)}
    trailers = {"Decision": "20250210T060000Z-abcdef", "By": "mallory", KEY: key.public}
    payload = commit_payload(workspace, ws.head(), BACK.partition("\n")[0], trailers, files)
    ws.git("commit", "-qa", "-m", f"{BACK}\n{KEY}: {key.public}\n{SIGNATURE}: {key.sign(payload)}")


def in_a_line(ws: Workspace) -> str:
    before = ws.head()
    become_reviewer(ws, json.loads(ws.read(RECORD))["key"])
    made = book_draws(ws)
    restore(ws, before)
    return made


def beside_it(ws: Workspace) -> str:
    """On a branch whose settings the merge drops: ``git log`` of the file passes it over."""
    before = ws.head()
    ws.git("checkout", "-q", "-b", "side")
    become_reviewer(ws)
    made = book_draws(ws)
    ws.git("checkout", "-q", before, "--", "config.yaml", RECORD)
    ws.git("commit", "-qm", "config: as before")
    ws.git("checkout", "-q", "main")
    ws.git("merge", "-q", "--no-ff", "--no-edit", "side")
    return made


@pytest.mark.parametrize("wall", [True, False])
@pytest.mark.parametrize("how", [in_a_line, beside_it], ids=lambda how: how.__name__)
def test_who_named_themselves_a_reviewer_is_none(
    posted: Workspace,
    remote: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[[Workspace], str],
    wall: bool,
) -> None:
    posted.ok("config", "set", "thresholds.auto_confirm", "0.9")
    posted.git("push", "-q", "origin", "main")
    posted.in_order()
    with mallory(remote, tmp_path, monkeypatch) as theirs:
        made = how(theirs)
    posted.git("pull", "-q", "--ff-only", "origin", "main")
    assert "7777.00" in posted.ok("journal", "list").out
    (signed,) = posted.json("why", "2025-01-005")["decisions"]
    assert signed["signed"] == ""
    if not wall:
        monkeypatch.setattr(Approvals, "may_have_approved", lambda self, record: True)
        if how is beside_it:  # which is looked for in side branches since
            monkeypatch.setattr(provenance, "find_unauthorized_commits", lambda *_: [])
        return posted.in_order()
    (found,) = check(posted)
    assert made[:10] in found and "no machine that is trusted here attests it" in found


def test_rules_from_before_the_rules_begin_nothing(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a branch that is joined as if it were the line itself, with dates of long ago; and a card is settled there."""
    posted.ok("config", "set", "thresholds.auto_confirm", "0.9")
    posted.git("push", "-q", "origin", "main")
    with mallory(remote, tmp_path, monkeypatch) as theirs:
        before, approver = theirs.head(), json.loads(theirs.read(RECORD))["key"]
        monkeypatch.setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
        become_reviewer(theirs, approver)
        settled = settle_a_card(theirs)
        made = book_draws(theirs)
        restore(theirs, before)
        monkeypatch.delenv("GIT_COMMITTER_DATE")
        people = People(posted, tmp_path)
        posted.git("push", "-q", "origin", "main")
        theirs.git("fetch", "-q")
        theirs.git("merge", "-q", "--no-edit", "-X", "theirs", "origin/main")
    posted.git("pull", "-q", "--ff-only", "origin", "main")
    found = [each["message"] for each in people("ana", "check", "--json").json["violations"]]
    for commit in (settled, made):
        assert any(commit[:10] in each for each in found), found
