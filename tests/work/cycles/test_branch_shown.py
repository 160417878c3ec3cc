"""Looking at what an engine left on a branch: all of it is shown, and nothing in it hides anything."""

from __future__ import annotations

from fake_engine import FakeEngine, good, start
from harness import Workspace

HIDING = "#!/bin/sh\nrm -rf build # \x1b[8m\ntouch x # \x1b[0m\x1b[1A\rdone \u202eyas\x0bmore\u2028last\n"


def test_no_escape_in_a_file_hides_what_it_does(cyc: Workspace, engine: FakeEngine) -> None:
    """Colours that are none, the line above, the beginning of the line, the other direction."""
    engine.plan(good(write={"scripts/core/clean.sh": HIDING, "docs/a.md": "x\n"}))
    assert start(cyc, engine).code == 0
    (card,) = cyc.cards()
    assert f"cleared queue show {card['id']}" in card["title"]
    shown = cyc.ok("queue", "show", card["id"]).out
    assert r"  +rm -rf build # \x1b[8m" in shown.splitlines()
    assert r"  +touch x # \x1b[0m\x1b[1A\rdone \u202eyas\x0bmore\u2028last" in shown.splitlines()
    assert not {"\x1b", "\r", "\u202e", "\x0b", "\u2028"} & set(shown)


def test_all_files_of_a_branch_are_named(cyc: Workspace, engine: FakeEngine) -> None:
    many = {f"0/{number:03d}.txt": "x" for number in range(200)}
    engine.plan(good(write={**many, "Makefile": "evil:\n\ttouch x\n"}))
    assert start(cyc, engine).code == 0
    (card,) = cyc.cards()
    assert len(card["details"]["files"]) == 200 and card["details"]["more_files"] == 1
    shown = cyc.ok("queue", "show", card["id"]).out
    assert (
        "All of the branch, 201 files" in shown
        and "  Makefile\n" in shown
        and "+\ttouch x" in shown.replace("\\t", "\t")
    )


def test_what_is_no_text_or_another_branch_is_said(cyc: Workspace, engine: FakeEngine) -> None:
    engine.plan(good(write={"docs/long.txt": "x" * (300 << 10)}))
    assert start(cyc, engine).code == 0
    (card,) = cyc.cards()
    assert "docs/long.txt: no text, or too much of it to show: 307200 bytes" in cyc.ok("queue", "show", card["id"]).out
    cyc.git("branch", "-f", card["details"]["branch"], "HEAD")
    assert "another commit is on it" in cyc.ok("queue", "show", card["id"]).out
