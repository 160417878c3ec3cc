"""This machine's own state that came with a commit: whoever can push planted it, and nothing believes it."""

from __future__ import annotations

from harness import Workspace, refused


def test_a_commit_with_state_in_it_stops_everything_until_it_is_removed(posted: Workspace) -> None:
    """A forged session, answers of a model, sums of money: git checks out what is tracked, ignored or not."""
    posted.put(".cleared/sessions/S20991231T000000-abcd/session.json", "{}")
    posted.git("add", "-f", ".cleared/sessions")
    posted.git("commit", "-qm", "helpful files")
    for argv in (["agent", "run", "ingest"], ["journal", "list"], ["queue", "list"], ["agent", "list"]):
        refused(posted(*argv), 4, "planted", "git rm")
    posted.git("rm", "-rqf", ".cleared")
    posted.git("commit", "-qm", "removed")
    assert posted("journal", "list").code == 0
