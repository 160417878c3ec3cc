"""A genuine attestation counts once: what was taken back is not done again by whoever can push a copy of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest
from harness import ATTESTED, Workspace

from cleared.changes.audit.commit_origins import CommitOrigins

JOURNAL = "books/2025/02/journal.csv"
Spell = Callable[[str], str]


def add_member(line: str) -> str:
    return line.replace("{", '{"x":1,', 1)


def add_space(line: str) -> str:
    return line.replace(":", ": ", 1)


def turn_members(line: str) -> str:
    data = json.loads(line)
    return json.dumps(dict(reversed(data.items())), separators=(",", ":"))


def respell_signature(line: str) -> str:
    """The last character of base64 has four bits that say nothing."""
    signature = json.loads(line)["signature"]
    other = next(
        text
        for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        if (text := signature[:-3] + last + "==") != signature and base64.b64decode(text) == base64.b64decode(signature)
    )
    return line.replace(signature, other)


def verbatim(line: str) -> str:
    return line


@pytest.fixture
def taken_back(posted: Workspace) -> Workspace:
    """A draw was posted by mistake and reverted, and somebody has answered for that."""
    posted.ok("journal", "add", "2025-02-05", "draw by mistake", "3200=7777.00", "1010=-7777.00")
    posted.git("tag", "draw")
    posted.git("revert", "--no-edit", "HEAD")
    posted.ok("accept", posted.head(), "--reason", "it was a mistake")
    posted.in_order()
    return posted


def named(ws: Workspace) -> list[str]:
    return [v["message"] for v in ws("check", "--json").json["violations"] if v["check"] == "provenance"]


def has_draw(ws: Workspace) -> bool:
    return any(entry["description"] == "draw by mistake" for entry in ws.json("journal", "list"))


def do_again(ws: Workspace, spell: Spell) -> None:
    """The rows, the message and the attestation of the draw in a new commit."""
    last = ws.git("show", f"draw:{ATTESTED}").splitlines()[-1]
    ws.put(JOURNAL, ws.git("show", f"draw:{JOURNAL}"))
    ws.put(
        "logs/agent-log-2025-02.csv",
        ws.read("logs/agent-log-2025-02.csv")
        + "".join(f"{row}\n" for row in ws.git("show", "draw:logs/agent-log-2025-02.csv").splitlines()[-2:]),
    )
    ws.put(ATTESTED, ws.read(ATTESTED) + spell(last) + "\n")
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", ws.git("log", "-1", "--format=%B", "draw"))


@pytest.mark.parametrize("spell", [verbatim, add_member, add_space, turn_members, respell_signature])
def test_an_attestation_in_another_spelling_counts_no_second_time(taken_back: Workspace, spell: Spell) -> None:
    do_again(taken_back, spell)
    assert has_draw(taken_back)
    assert any(taken_back.head()[:10] in found and "no machine attests it" in found for found in named(taken_back))


def copy_to_a_branch(ws: Workspace, start: str, merge_as: str) -> None:
    ws.git("checkout", "-q", "-b", "side", start)
    ws.git("cherry-pick", "draw")
    if merge_as == "second":
        ws.git("checkout", "-q", "main")
        ws.git("merge", "-q", "--no-edit", "side")
    else:
        ws.git("merge", "-q", "--no-edit", "main")
        ws.git("checkout", "-q", "main")
        ws.git("merge", "-q", "--ff-only", "side")


@pytest.mark.parametrize("merge_as", ["second", "first"])
@pytest.mark.parametrize("start", ["main~1", "draw~1"])
def test_a_copy_on_a_branch_counts_no_second_time(taken_back: Workspace, start: str, merge_as: str) -> None:
    """After the revert its files are the same again; from before the draw they are, too."""
    copy_to_a_branch(taken_back, start, merge_as)
    assert has_draw(taken_back)
    assert any("draw by mistake" in found and "no machine attests it" in found for found in named(taken_back))


def test_it_would_if_each_copy_counted(taken_back: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_to_a_branch(taken_back, "main~1", "second")
    covers = CommitOrigins._find_first

    def find_each(self: CommitOrigins, line: bytes) -> object:
        class Each(str):
            def __ne__(self, other: object) -> bool:
                return False

            __hash__ = str.__hash__

        return Each(covers(self, line))

    monkeypatch.setattr(CommitOrigins, "_find_first", find_each)
    assert has_draw(taken_back) and named(taken_back) == []


@pytest.mark.parametrize("claim", ["", "\n\nRun: 20250210T060000Z-aaaaaa"])
def test_a_merge_brings_back_nothing_that_was_taken_out(taken_back: Workspace, claim: str) -> None:
    """The draw stands on the one side, and was reverted on the other: a merge takes the books of the one."""
    taken_back.git("checkout", "-q", "-b", "side", "draw")
    taken_back.put("notes.txt", "x\n")
    taken_back.commit("notes.txt")
    taken_back.git("checkout", "-q", "main")
    taken_back.git("merge", "-q", "--no-ff", "--no-commit", "side")
    taken_back.git("checkout", "-q", "side", "--", "books")
    taken_back.git("commit", "-q", "-m", f"Merge side{claim}")
    assert has_draw(taken_back)
    assert any("brought back what one side had taken out" in found for found in named(taken_back))


@pytest.mark.parametrize("answered", [(0, 1), (1, 0)])
def test_the_revert_of_a_revert_is_answered_for_in_any_order(posted: Workspace, answered: tuple[int, int]) -> None:
    """A check names both. Once both are answered for, the books are as before them, and nothing is left to answer."""
    posted.ok("journal", "add", "2025-02-05", "rent", "3200=7777.00", "1010=-7777.00")
    before, reverts = posted.entries(), []
    for _ in range(2):
        posted.git("revert", "--no-edit", "HEAD")
        reverts.append(posted.head())
    assert len(named(posted)) == 2
    for each in answered:
        posted.ok("accept", reverts[each], "--reason", "meant so")
    assert posted.entries() == before
    posted.in_order()
    posted.git("revert", "--no-edit", reverts[1])
    posted.ok("accept", "HEAD", "--reason", "it was a mistake after all")
    posted.in_order()


def test_who_answers_for_a_revert_does_not_answer_for_what_came_back_since(posted: Workspace) -> None:
    posted.ok("journal", "add", "2025-02-05", "draw by mistake", "3200=7777.00", "1010=-7777.00")
    posted.git("tag", "draw")
    posted.git("revert", "--no-edit", "HEAD")
    reverted = posted.head()
    posted.git("cherry-pick", "draw")
    copied = posted.head()
    posted.ok("accept", reverted, "--reason", "it was a mistake")
    assert [each.split()[1] for each in named(posted)] == [copied[:10]]
