"""FLAT: a check judges what came since the last one, and says what a whole check would say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest
from harness import ATTESTED, Workspace

from cleared.changes.audit import attested_state, provenance
from cleared.git.object_reader import ObjectReader

JOURNAL = "books/2025/01/journal.csv"


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What judged a whole history."""
    calls: list[str] = []
    for module, name in ((provenance, "find_unexplained_commits"), (attested_state.AttestedState, "find_residue")):

        def record(*args: object, name: str = name, original: Callable[..., object] = getattr(module, name)) -> object:
            calls.append(name)
            return original(*args)

        monkeypatch.setattr(module, name, record)
    return calls


@pytest.fixture
def right(posted: Workspace) -> Workspace:
    """Books that were checked and shown, and one decision since."""
    assert posted("check").code == 0
    posted.ok("status")
    posted.ok("journal", "add", "2025-02-05", "draw", "3200=77.00", "1010=-77.00")
    return posted


def test_an_account_renamed_by_hand_is_doubted_wherever_its_name_stands(right: Workspace) -> None:
    """Whoever can push could have "3200 Meals" on a card. One that is new, or was altered back, is nobody's doubt."""

    def find_doubt() -> str:
        said = right("status", "--json").json["trouble"]
        return "".join(each for each in said if "changed accounts by hand" in each)

    def commit_chart(text: str) -> str:
        right.put(chart, text)
        right.commit(chart)
        return find_doubt()

    chart = "accounts/chart-of-accounts.csv"
    assert not commit_chart(f"{right.read(chart)}5999,Parking,expense,,,\n")
    said = commit_chart(right.read(chart).replace("3200,Member draws", "3200,Meals"))
    assert "3200 Member draws (name Member draws → Meals)" in said, said
    right.ok("teach", "BLUE BOTTLE", "3200")
    (card,) = (card for card in right.cards() if card["kind"] == "proposal")
    shown = right.ok("queue", "show", card["id"]).out
    assert -1 < shown.find("changed accounts by hand") < shown.find("3200 Meals"), shown
    right.ok("accounts", "rename", "5070", "Food")
    assert find_doubt(), "a decision about another account says nothing of this one"
    assert not commit_chart(right.read(chart).replace("3200,Meals", "3200,Member draws"))
    assert commit_chart(right.read(chart).replace("3200,Member draws", "3200,Meals"))
    right.ok("accept", right.git("rev-parse", "HEAD").strip(), "--reason", "it is called so")
    assert not find_doubt()


def test_only_what_came_since_is_judged(right: Workspace, whole: list[str]) -> None:
    right.ok("status")
    assert (right("check").code, whole) == (0, [])
    right.put("notes.txt", "no book")
    right.commit("notes.txt")
    right.ok("status")
    assert (right("check").code, whole) == (0, [])
    shutil.rmtree(right.root / ".cleared/books")
    right.ok("status")
    assert (right("check").code, whole) == (0, ["find_residue", "find_unexplained_commits", "find_residue"])


def by_hand(ws: Workspace) -> None:
    ws.put(JOURNAL, ws.read(JOURNAL).replace("COFFEE", "TEA"))
    ws.git("commit", "-qam", "by hand")


def amended(ws: Workspace) -> None:
    """The decision's own commit, with something more."""
    ws.put(JOURNAL, ws.read(JOURNAL).replace("COFFEE", "TEA"))
    ws.git("commit", "-q", "--amend", "--no-edit", "-a")


def dropped_line(ws: Workspace) -> None:
    """An attestation says nothing of the other lines beside it."""
    *_, last = lines = ws.read(ATTESTED).splitlines(keepends=True)
    ws.put(ATTESTED, "".join([*lines[:-2], last]))
    ws.git("commit", "-q", "--amend", "--no-edit", "-a")


def added_line(ws: Workspace) -> None:
    """That of another run in another part of the file: it counts once."""
    ws.put("logs/attestations-2025-02_002.jsonl", ws.read(ATTESTED).splitlines(keepends=True)[0])
    ws.git("add", "logs")
    ws.git("commit", "-q", "--amend", "--no-edit")


def renamed(ws: Workspace) -> None:
    message = ws.git("log", "-1", "--format=%B").replace("draw", "rent")
    ws.git("commit", "-q", "--amend", "-m", message)


def replayed(ws: Workspace) -> None:
    """Taken back by hand, and done once more as it was."""
    done = ws.head()
    ws.git("revert", "--no-edit", done)
    ws.git("cherry-pick", "--allow-empty", done)


def by_hand_twice(ws: Workspace) -> None:
    """With decisions before and after each."""
    by_hand(ws)
    ws.ok("journal", "add", "2025-02-06", "draw", "3200=7.00", "1010=-7.00")
    ws.put(JOURNAL, ws.read(JOURNAL).replace("TEA", "RUM"))
    ws.git("commit", "-qam", "by hand again")
    ws.ok("journal", "add", "2025-02-07", "draw", "3200=8.00", "1010=-8.00")


def accepted(ws: Workspace) -> None:
    by_hand_twice(ws)
    ws.ok("accept", ws.git("log", "-1", "--grep=by hand again", "--format=%H").strip(), "--reason", "so be it")


def opened_card(ws: Workspace) -> None:
    ws.put("queue/2025-02.jsonl", json.dumps({"event": "open", "id": "q1", "at": "2025-02-01T00:00:00Z"}) + "\n")
    ws.commit("queue")


def answered(ws: Workspace) -> None:
    """Right: a person answers for all of it."""
    by_hand(ws)
    ws.ok("accept", ws.head(), "--reason", "so be it")
    ws.ok("journal", "add", "2025-02-08", "draw", "3200=9.00", "1010=-9.00")


def settled(ws: Workspace) -> None:
    """Two cards by a push, the second with a second answer of its own."""
    lines = ws.read("queue/2025-02.jsonl").splitlines()
    ids = dict.fromkeys(json.loads(line)["id"] for line in lines)
    said = {"event": "resolve", "at": "2025-02-10T06:00:00Z", "by": "ana"}
    new = [{**said, "id": card, "resolution": how} for card, how in zip(ids, ("confirmed", "rejected"), strict=False)]
    new.append({**new[-1], "resolution": "confirmed"})
    ws.put("queue/2025-02.jsonl", "".join(f"{line}\n" for line in [*lines, *map(json.dumps, new)]))
    ws.commit("queue")


def damaged(ws: Workspace) -> None:
    ws.put("queue/2025-02.jsonl", ws.read("queue/2025-02.jsonl") + "{}\n")
    ws.commit("queue")


def retold(ws: Workspace) -> None:
    """What the queue said before, otherwise."""
    ws.put("queue/2025-02.jsonl", ws.read("queue/2025-02.jsonl").replace("COFFEE", "TEA", 1))
    ws.commit("queue")


def misnamed(ws: Workspace) -> None:
    """Files that are of no month, one with a name that is no text."""
    line = ws.read(ATTESTED).splitlines(keepends=True)[0]
    ws.put("logs/attestations-2025-99.jsonl", line)
    ws.put("logs/attestations-\udcff.jsonl", line)
    ws.git("add", "logs")
    ws.git("commit", "-qm", "odd")


def merged(ws: Workspace) -> None:
    """Right: a branch with nothing of the books."""
    ws.git("checkout", "-qb", "side", "HEAD~1")
    ws.put("notes.txt", "no book")
    ws.commit("notes.txt")
    ws.git("checkout", "-q", "-")
    ws.git("merge", "-q", "--no-edit", "side")


def by_a_person(ws: Workspace) -> None:
    """Right: people add accounts and rules by hand."""
    ws.put(
        "accounts/chart-of-accounts.csv", ws.read("accounts/chart-of-accounts.csv") + "5999,Odds and ends,expense,,,\n"
    )
    ws.git("commit", "-qam", "an account")


TAMPERS = (
    *(by_hand, amended, dropped_line, added_line, renamed, replayed),
    *(by_hand_twice, accepted, opened_card, merged, by_a_person),
    *(answered, settled, damaged, retold, misnamed),
)


@pytest.mark.parametrize("tamper", TAMPERS)
def test_whoever_tampers_is_found_as_by_a_whole_check(right: Workspace, tamper: Callable[[Workspace], None]) -> None:
    tamper(right)
    known = right("check", "--json")
    shutil.rmtree(right.root / ".cleared/books")
    assert known.json == right("check", "--json").json
    assert known.code == (tamper not in (added_line, merged, by_a_person, answered)), known.json


def test_a_commit_by_hand_is_not_the_dearer_the_older_the_books(
    right: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = ObjectReader._read_here
    monkeypatch.setattr(ObjectReader, "_read_here", lambda self, oid: (read.append(oid), original(self, oid))[1])

    def count_objects() -> int:
        right.put(JOURNAL, right.read(JOURNAL).replace("COFFEE", "COFFEE AND"))
        right.git("commit", "-qam", "by hand")
        read.clear()
        assert right("check").code == 1
        count = len(read)
        right.ok("accept", right.head(), "--reason", "so be it")
        assert right("check").code == 0
        return count

    young = count_objects()
    for day in range(6, 16):
        right.ok("journal", "add", f"2025-02-{day:02d}", "draw", "3200=7.00", "1010=-7.00")
    assert right("check").code == 0
    assert count_objects() < young + 30, "ten decisions more, each of which has eight objects"


def test_a_record_by_others_counts_for_nothing(right: Workspace, whole: list[str]) -> None:
    by_hand(right)
    judged = right.root / ".cleared/books/judged"
    sealed = judged.read_bytes()
    judged.write_bytes(sealed[:-40] + right.head().encode())
    assert right("check").code == 1
    assert "find_unexplained_commits" in whole


def test_what_is_doubted_is_worked_out_once_and_told_until_it_is_answered(right: Workspace, whole: list[str]) -> None:
    """A commit by hand waits for a person, and each command asks meanwhile."""
    doubt = "the books are not just what the runs and decisions that count here made of them"
    good = right.head()
    by_hand(right)
    wrong = right.head()
    for worked_out in (["find_residue"], []):
        whole.clear()
        assert doubt in str(right("status", "--json").json["trouble"])
        assert whole == worked_out
    right.git("reset", "-q", "--hard", good)
    assert doubt not in str(right("status", "--json").json["trouble"])
    right.git("reset", "-q", "--hard", wrong)
    assert doubt in str(right("status", "--json").json["trouble"])
    right.ok("accept", wrong, "--reason", "it was tea")
    assert doubt not in str(right("status", "--json").json["trouble"])
