"""Books that were made from others, a template or another client's: an id of their own, and all that counted counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import asks, mallory
from clones import clone, copied, live
from harness import ATTESTED, JANUARY, Workspace, no_traceback, refused, take_ok, unchanged
from msgspec.structs import replace

from cleared.changes import attestation
from cleared.changes.attestation_lines import render_attestation
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.clone_marks import MARK, pins_folder
from cleared.trust.keys import Key

BY_HAND = ("journal", "add", "2025-01-31", "owner takes", "3200=7777.00", "2100=-7777.00")


@pytest.fixture
def books(ws: Workspace) -> Workspace:
    live(ws).drop("january.csv")
    ws.run("ingest")
    return ws


def violations(ws: Workspace) -> list[str]:
    return [f"{v['message']} {v['remedy']}" for v in ws("check", "--json").json["violations"]]


def test_what_was_live_stays_so(books: Workspace, tmp_path: Path) -> None:
    """Fault 2: they get an id of their own; what was live stays so; nothing counts in the one that is of the other."""
    books.config("sandbox.timeout=29")
    client = copied(books, tmp_path / "client")
    made = client.json("trust", "--new-books")
    assert made["workspace"] == client.read(WORKSPACE).strip() != books.read(WORKSPACE).strip()
    assert client.run("probe")["result"] == 1 and client.json("config", "get", "sandbox.timeout") == 29.0
    assert client.json("trust")[0]["trusted"] is True
    live(client, "2")
    record = next((client.root / "agents/approvals/agents/probe").glob("*.json"))
    assert "agents/approvals/config.json" in made["kept"] and record.exists()
    client.git("push", "-q", str(books.root), "HEAD:refs/heads/theirs")
    books.git("checkout", "-q", "theirs")
    refused(books("agent", "run", "probe"), 3, "so nothing is run")


def test_what_was_withdrawn_stays_so_in_new_books(books: Workspace, tmp_path: Path) -> None:
    live(books, "2")
    before = books.head()
    books.ok("agent", "rollback", "probe")
    client = copied(books, tmp_path / "client")
    client.ok("trust", "--new-books")
    client.git("checkout", "-q", before, "--", "agents/probe.py", "agents/approvals/agents")
    client.git("rm", "-q", "--ignore-unmatch", "agents/approvals/agents/probe/*.quarantined.json")
    client.git("commit", "-qam", "as it was")
    refused(client("agent", "run", "probe"), 3)


def test_the_history_goes_on_counting(books: Workspace, tmp_path: Path) -> None:
    """Runs, decisions and answers from before are still known for what they are, on every machine that trusts this."""
    books.ok(*BY_HAND, "--key", "owner-january")
    client = copied(books, tmp_path / "client")
    client.ok("trust", "--new-books")
    assert violations(client) == []
    client.drop("february.csv", JANUARY.replace("01/", "02/"))
    client.run("ingest")
    first = client.json("queue", "list")[0]["id"]
    client.ok("queue", "approve", first)
    assert violations(client) == []
    assert violations(clone(client, tmp_path / "unknown")) == [], "nobody has said anything of this clone yet"


def test_what_was_done_is_not_done_again(books: Workspace, tmp_path: Path) -> None:
    books.ok(*BY_HAND, "--key", "owner-january")
    client = copied(books, tmp_path / "client")
    client.ok("trust", "--new-books")
    entries = len(client.json("journal", "list"))
    again = client(*BY_HAND, "--key", "owner-january")
    assert again.code == 0 and len(client.json("journal", "list")) == entries, again
    assert client.run("ingest")["status"] == "succeeded"
    assert len(client.json("journal", "list")) == entries


def test_books_made_from_books_that_were_made_from_others(books: Workspace, tmp_path: Path) -> None:
    client = copied(books, tmp_path / "client")
    client.ok("trust", "--new-books")
    client.ok(*BY_HAND)
    third = copied(client, tmp_path / "third")
    third.ok("trust", "--new-books")
    third.ok("journal", "add", "2025-01-31", "again", "3200=1.00", "2100=-1.00")
    assert violations(third) == []


def test_on_another_machine_it_is_enough_to_trust_who_made_them(
    books: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = copied(books, tmp_path / "client")
    client.ok("trust", "--new-books")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "elsewhere"))
    there = clone(client, tmp_path / "there")
    assert len(take_ok(there, "trust", "--yes", "--json").json) == 2, "one person, one machine: these"
    assert violations(there) == []


def test_what_the_others_did_later_counts_for_nothing(books: Workspace, tmp_path: Path) -> None:
    """The attack: a genuine commit of the old books, made after these were, and pushed into these."""
    client = copied(books, tmp_path / "client")
    client.ok("trust", "--new-books")
    books.ok(*BY_HAND)
    client.git("fetch", "-q", str(books.root), "HEAD")
    client.git("cherry-pick", "-Xtheirs", "FETCH_HEAD")
    (found,) = violations(client)
    assert client.head()[:10] in found and "no machine attests it" in found


def test_it_goes_unseen_where_the_time_is_not_bound(
    books: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with the wall switched off: the old id counts for whatever it signs."""
    old = books.read(WORKSPACE).strip()
    client = copied(books, tmp_path / "client")
    client.ok("trust", "--new-books")
    books.ok(*BY_HAND)
    client.git("fetch", "-q", str(books.root), "HEAD")
    client.git("cherry-pick", "-Xtheirs", "FETCH_HEAD")
    own = attestation.find_counting
    monkeypatch.setattr(attestation, "find_counting", lambda *args: replace(own(*args), books=own(*args).books | {old}))
    assert violations(client) == []


def test_whoever_counts_for_nothing_takes_nothing_over(
    books: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody without a key that counts makes new books of a clone and pushes them under the id of these."""
    own = books.read(WORKSPACE)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("CLEARED_HOME", str(tmp_path / "mallory"))
        theirs = clone(books, tmp_path / "theirs")
        take_ok(theirs, "trust", "--yes")
        theirs.ok(*BY_HAND)
        theirs.ok("trust", "--new-books")
        theirs.put(WORKSPACE, own)
        theirs.commit(WORKSPACE)
    books.git("pull", "-q", "--no-rebase", str(theirs.root), "HEAD")
    assert any("no machine that is trusted here attests it" in found for found in violations(books))


def test_a_machine_that_counts_for_nothing_here_is_named_first(
    books: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "elsewhere"))
    there = clone(books, tmp_path / "there")
    with unchanged(there):
        refused(there("trust", "--new-books"), 3, "not trusted here", "cleared trust")
    assert not list(pins_folder().glob("*")) and not (there.root / ".git" / MARK).exists(), "nothing was pinned"
    take_ok(there, "trust", "--yes")
    there.ok("trust", "--new-books")
    assert violations(there) == []


def test_a_run_that_waits_for_an_answer_is_named_first(ws: Workspace, tmp_path: Path) -> None:
    asks(ws)
    card = ws.json("queue", "list")[0]["id"]
    there = copied(ws, tmp_path / "there")
    mark = (there.root / ".git" / MARK).read_text()
    with unchanged(there):
        refused(there("trust", "--new-books"), 3, "waits for an answer", card, "cleared queue show")
    assert (there.root / ".git" / MARK).read_text() == mark, "it is a copy as before"
    refused(there("agent", "run", "ingest"), 3, "not trusted on this machine yet")


def test_what_was_reverted_is_taken_over_too(books: Workspace, tmp_path: Path) -> None:
    books.ok(*BY_HAND)
    books.git("revert", "--no-edit", "HEAD")
    books.ok("accept", books.head(), "--reason", "a mistake")
    client = copied(books, tmp_path / "client")
    client.ok("trust", "--new-books")
    assert violations(client) == []


@pytest.mark.parametrize("files", [5, "x", [5, None], {"a": 1}, ["../../x"], ["f" * 40], ["HEAD"]])
def test_a_forged_takeover_of_another_form_takes_nothing(books: Workspace, tmp_path: Path, files: object) -> None:
    forge_takeover(books, {"files": files, "keys": ["k"], "workspaces": ["w"]})
    unknown = clone(books, tmp_path / "unknown")
    no_traceback(unknown("check"))
    (found,) = violations(unknown)
    assert books.head()[:10] in found


def test_forged_takeovers_that_name_each_other_end(books: Workspace, tmp_path: Path) -> None:
    """Each file names the one before twice, for other books: 2^40 readings."""
    stranger = mallory()
    own, keys, blob = books.read(WORKSPACE).strip(), [stranger.public], ""
    for level in range(40):
        lines = b"".join(
            render_attestation(
                SAID
                | {
                    "workspace": own,
                    "takes_over": {"files": [blob], "workspaces": [own, f"{level} {n}"], "keys": keys},
                },
                stranger,
            )
            for n in range(2)
        )
        (books.root / "x").write_bytes(lines)
        blob = books.git("hash-object", "-w", "x").strip()
        books.git("add", "x")
        books.git("commit", "-qm", "x")
    forge_takeover(books, {"files": [blob], "keys": keys, "workspaces": [own]}, stranger)
    assert len(violations(clone(books, tmp_path / "unknown"))) == 1


SAID: dict[str, Any] = {"workspace": "", "by": "", "at": "", "subject": "", "trailers": {}}


def forge_takeover(ws: Workspace, takeover: dict[str, Any], key: Key | None = None) -> None:
    """Somebody without a key that counts pushes an attestation that takes over others."""
    said = SAID | {"workspace": ws.read(WORKSPACE).strip(), "takes_over": takeover}
    path = ws.root / ATTESTED
    path.write_bytes(path.read_bytes() + render_attestation(said, key or mallory()))
    ws.git("commit", "-qam", "x")
