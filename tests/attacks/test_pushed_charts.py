"""Whoever can push can change the chart of accounts, and with it the figures of every month: a check names that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import Workspace

CHART = "accounts/chart-of-accounts.csv"


def named(ws: Workspace) -> list[str]:
    found = ws("check", "--json").json["violations"]
    return [f"{v['message']} {v['remedy']}" for v in found if v["check"] == "provenance"]


def edit_chart(ws: Workspace, pattern: str, new: str, message: str = "docs") -> str:
    text = re.sub(pattern, new, ws.read(CHART), count=1, flags=re.MULTILINE)
    assert text != ws.read(CHART)
    ws.put(CHART, text)
    ws.commit(CHART, message=message)
    return ws.head()[:10]


@pytest.mark.parametrize(
    ("pattern", "new", "said"),
    [
        (r"^5030,([^,]*),expense", r"5030,\1,asset", "5030 Uncategorised expense (type expense → asset)"),
        (r"^5020,[^,]*,", "5020,Meals,", "5020 Software and subscriptions (name Software and subscriptions → Meals)"),
        (r"^5230,.*\n", "", " is gone"),
        (r"\Z", "3299,Odds,equity,3200,,\n", "3200 Member draws is a heading now"),
    ],
)
@pytest.mark.parametrize("claim", ["", "\n\nDecision: zz"])
def test_a_changed_account_is_named(posted: Workspace, pattern: str, new: str, said: str, claim: str) -> None:
    assert named(posted) == []
    commit = edit_chart(posted, pattern, new, f"docs{claim}")
    (found,) = named(posted)
    assert commit in found and said in found and f"cleared accept {commit}" in found
    posted.ok("accept", commit, "--reason", "I know")
    assert named(posted) == []


def test_accounts_that_are_added_by_hand_and_what_is_decided_is_in_order(posted: Workspace) -> None:
    edit_chart(posted, r"\Z", "5999,Odds and ends,expense,,,\n")
    posted.ok("accounts", "add", "5998", "Ends", "--type", "expense")
    posted.ok("accounts", "rename", "5998", "Other ends")
    posted.ok("accounts", "close", "5998")
    assert named(posted) == []


def test_what_is_altered_behind_a_broken_chart_is_named(posted: Workspace) -> None:
    """One commit breaks the chart, the next one mends it, and says something else of an account."""
    good = posted.read(CHART)
    posted.put(CHART, good + "x,y\n")
    posted.commit(CHART, message="docs")
    posted.put(CHART, good.replace("5030,Uncategorised expense,expense", "5030,Uncategorised expense,asset"))
    posted.commit(CHART, message="docs")
    assert sum("cannot be read" in found for found in named(posted)) == 2


def test_another_clone_names_it_too(posted: Workspace, tmp_path: Path) -> None:
    posted.git("clone", "-q", ".", str(tmp_path / "mallory"))
    mallory = Workspace(tmp_path / "mallory")
    commit = edit_chart(mallory, r"^5030,([^,]*),expense", r"5030,\1,asset")
    posted.git("pull", "-q", "--ff-only", str(mallory.root), "HEAD")
    assert any(commit in found for found in named(posted))


def test_a_merge_that_changes_accounts_is_named(posted: Workspace) -> None:
    posted.git("checkout", "-q", "-b", "side")
    posted.ok("accounts", "add", "5998", "Ends", "--type", "expense")
    posted.git("checkout", "-q", "-")
    posted.ok("accounts", "add", "5997", "Odds", "--type", "expense")
    posted.git("merge", "-q", "-s", "ours", "--no-commit", "side", check=False)
    posted.put(
        CHART, posted.read(CHART).replace("5030,Uncategorised expense,expense", "5030,Uncategorised expense,asset")
    )
    posted.git("add", "-A")
    posted.git("commit", "-q", "--no-edit")
    assert any("merged two clones" in found for found in named(posted))
