"""Fault 3 (D17): what is in force is asked in one way by every process that lives long, and again under the lock."""

from __future__ import annotations

import re
from typing import Any

import pytest
from harness import Workspace, refused, take_ok, trust_books
from world import World

from cleared.api.rpc.workspace_server import CurrentHandler
from cleared.changes.host_cache import HostCache
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now
from cleared.review.card_actions import ActionExecutor
from cleared.sandbox.bridge.jsonrpc import Request
from cleared.trust.approval_record import WORKSPACE

POSTS = (
    'journal_add_double("2025-02-03", "rent", 5020, 1010, "100.00", status="pending-review")\n'
    'git_commit("agent: posts")'
)


@pytest.fixture
def posts(ws: Workspace) -> Workspace:
    """An agent that posts 100.00, and settings by hand that would not let it: they wait for approval, and nothing of
    the file changes when that comes."""
    ws.agent("posts", POSTS)
    by_hand(ws)
    return ws


def by_hand(ws: Workspace) -> None:
    text = ws.read("config.yaml")
    ws.put("config.yaml", re.sub(r"max_amount: \d+", "max_amount: 50", text))
    assert ws.read("config.yaml") != text


def call(current: CurrentHandler, method: str, *params: Any) -> Any:
    return current.handle_request(Request(method, list(params), 1))


def test_rpc_goes_on_under_what_is_approved_meanwhile(posts: Workspace) -> None:
    current = CurrentHandler(lambda: open_workspace(posts.root))
    assert call(current, "agent.run", "posts")["status"] == "succeeded"
    take_ok(posts, "config", "approve")
    found = call(current, "agent.run", "posts")
    assert found["status"] == "failed" and "50" in found["error"]["message"]
    assert posts.run("posts", code=1)["error"]["message"] == found["error"]["message"]


def test_a_run_that_waited_for_the_lock_goes_on_under_what_is_in_force_then(posts: Workspace) -> None:
    """The class of it: whoever had the lock may have changed what holds."""
    host = open_workspace(posts.root)
    take_ok(posts, "config", "approve")
    assert run_now(host, "posts").status == "failed"
    assert host.config.limits.max_amount == 50


def test_the_service_does(posts: Workspace) -> None:
    posts.put("agents/pings.py", f'"""\nname: pings\ntrigger: event\nevent: ping\n"""\n{POSTS}\n')
    posts.commit("agents/pings.py", *posts.approve("agents/pings.py"))
    posts.git("checkout", "-q", "--", "config.yaml")
    world = World(posts)
    by_hand(posts)
    with world:
        posts.ok("event", "emit", "ping")
        world.settle()
        assert len(posts.entries()) == 1
        take_ok(posts, "config", "approve")
        posts.ok("event", "emit", "ping")
        world.settle()
        assert len(posts.entries()) == 1
    assert [c["agent"] for c in posts.cards() if c["kind"] == "failed_run"] == ["pings"]


def test_review_and_all_else_that_keeps_a_workspace_open(posts: Workspace) -> None:
    """``up``, ``loop`` and ``review`` keep it in one way."""
    kept = HostCache(lambda: open_workspace(posts.root))
    acts = ActionExecutor(kept)
    first = acts.open()
    assert acts.open() is first
    take_ok(posts, "config", "approve")
    assert acts.open().config.limits.max_amount == 50
    kept.close()


@pytest.mark.parametrize("what", ["pin", "workspace", "trust", "record", "settings", "key"])
def test_whatever_decides_it_is_noticed(posts: Workspace, what: str) -> None:
    take_ok(posts, "config", "approve")
    posts.config("limits.max_amount=150")
    kept = HostCache(lambda: open_workspace(posts.root))
    before = kept()
    assert kept() is before
    if what == "pin":
        trust_books(posts.root)
    elif what == "workspace":
        posts.put(WORKSPACE, "f" * 32 + "\n")
    elif what == "trust":
        from cleared.trust import trust_store

        trust_store.trust_reviewers(posts.read(WORKSPACE).strip(), {"ed25519:x": "somebody"})
    elif what == "record":
        (posts.root / "agents/approvals/config.json").write_text("{}")
    elif what == "settings":
        posts.put("config.yaml", posts.read("config.yaml") + "\n")
    else:
        from cleared.trust.keys import KEY, cleared_home

        (cleared_home() / KEY).unlink()
    after = kept()
    assert after is not before
    problem = after.policy.problem if after.policy is not None else None
    assert (problem is not None) == (what in ("workspace", "record", "key"))
    if problem is not None:
        refused(posts("agent", "run", "posts"), 3, "nothing is run")
    kept.close()
