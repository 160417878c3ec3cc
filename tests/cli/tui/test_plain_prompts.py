"""``cleared review`` without a capable terminal: the same decisions by plain prompts, through a real process."""

from __future__ import annotations

import io
import sys

import pytest
from harness import Done, Workspace, chase, no_traceback

FEBRUARY = chase(("02/03/2025", "COFFEE 0231", "-4.80"), ("02/04/2025", "COFFEE 0977", "-5.10"))


def type_(ws: Workspace, *lines: str) -> Done:
    done = ws.process("review", stdin="".join(f"{line}\n" for line in lines).encode())
    assert done.code == 0, done
    no_traceback(done)
    assert "\x1b" not in done.out
    return done


def statuses(ws: Workspace) -> dict[str, str]:
    return {e["entry_id"]: e["status"] for e in ws.entries()}


def test_cards_are_read_out_and_confirmed(posted: Workspace) -> None:
    done = type_(posted, "a", "a")
    for part in (
        "Entry to confirm. 2 cards left, 0 done.",
        "1500.00 ACME INVOICE 12",
        "The bank said:",
        "Not sure at all: no confident match",
        "a Confirm as it is, c Correct the account",
        "Confirmed: ACME INVOICE 12",
        "2 decisions made. 0 cards left.",
    ):
        assert part in done.out, done.out
    assert "pending-review" not in statuses(posted).values()
    posted.in_order()


def test_correct_by_name_by_list_and_split(posted: Workspace) -> None:
    done = type_(posted, "c prod", "", "c", "o", "zzz", "5070=9999 5060=", "5070=4 5060=", "a note", "q")
    assert "5070=9999 is more than the 4.50 to be split (meant? add the word mixed)" in done.out
    assert "4020 Product sales" in done.out and "Several fit:" in done.out and "No account fits." in done.out
    assert "2 decisions made. 0 cards left." in done.out
    assert [e["notes"] for e in posted.entries("--account", "5060")] == ["a note"]
    posted.in_order()


def test_reject_asks_for_outcome_and_reason_and_undo_takes_it_back(posted: Workspace) -> None:
    posted.ok("journal", "add", "2025-01-10", "Coffee, by hand", "5070=4.50", "1010=-4.50")
    done = type_(posted, "s", "r", "2", "my own", "u", "", "r", "1", "2025-01-005", "it came twice", "q")
    assert "What is that? 1 a duplicate" in done.out and "Rejected: COFFEE" in done.out
    assert "Taken back: 2025-01-004" in done.out
    assert "1 decision made. 1 card left." in done.out
    posted.in_order()


def test_skipped_cards_come_again(posted: Workspace) -> None:
    done = type_(posted, "s", "s", "", "a", "a", "u", "", "s", "q")
    assert "Enter shows the 2 skipped cards again" in done.out
    assert "Nothing waits for you; u undo, q quit:" in done.out
    assert "1 decision made. 1 card left." in done.out


def test_a_group_is_listed_before_it_is_decided(posted: Workspace) -> None:
    posted.drop("february.csv", FEBRUARY)
    posted.run("ingest")
    done = type_(posted, "s", "g", "", "g", "c 5070", "", "q")
    assert "3 cards, COFFEE, 5030 Uncategorised expense, -14.40 in all:" in done.out
    assert "Corrected: 3 cards" in done.out
    assert posted.git("log", "-1", "--format=%s").strip() == "correct: 3 entries"


def test_a_group_takes_the_suggestion_of_its_cards(posted: Workspace) -> None:
    posted.ok("queue", "correct", "2025-01-004", "--account", "5070")
    posted.drop("february.csv", FEBRUARY)
    posted.run("ingest")
    done = type_(posted, "s", "g", "z", "y", "q")
    assert "For all of them: a Confirm as it is, c Correct the account, r Reject, y Take 5070 Meals (empty:" in done.out
    assert "z does nothing here." in done.out and "Corrected: 2 cards" in done.out
    posted.in_order()


def test_siblings_are_offered(posted: Workspace) -> None:
    posted.drop("february.csv", chase(("02/03/2025", "COFFEE", "-4.80")))
    posted.run("ingest")
    done = type_(posted, "s", "c 5070", "", "y")
    assert "1 more card like it. Correct them the same way?" in done.out
    assert "2 decisions made. 1 card left." in done.out


def test_file_code_and_help_are_read_out(posted: Workspace) -> None:
    done = type_(posted, "f", "o", "?", "x", "q")
    assert "this line, 3: CREDIT,01/06/2025" in done.out
    assert "agents/ingest.py, line" in done.out and "journal_add_double(" in done.out
    assert "u: Undo the last act" in done.out and "x does nothing here." in done.out
    assert "0 decisions made. 2 cards left." in done.out


def test_the_end_of_the_input_loses_nothing(posted: Workspace) -> None:
    before = posted.head()
    assert "0 decisions made. 2 cards left." in type_(posted).out
    assert "0 decisions made. 2 cards left." in type_(posted, "c").out
    assert posted.head() == before


def test_nothing_waits(ws: Workspace) -> None:
    assert type_(ws).out == "Nothing waits for you.\n"


def test_a_refusal_is_said_and_the_next_card_comes(posted: Workspace) -> None:
    done = type_(posted, "c 4010", "", "q")
    assert "Not done: 2025-01-002 is like that already" in done.out


def test_a_job_decides_nothing(posted: Workspace) -> None:
    import os

    done = posted.process("review", stdin=b"a\nq\n", env={**os.environ, "CLEARED_JOB": "j"})
    assert done.code == 0 and "not for a job to make" in done.out
    assert statuses(posted)["2025-01-002"] == "pending-review"


def test_textual_is_not_needed_for_other_commands(posted: Workspace) -> None:
    import subprocess

    code = (
        "import sys; from cleared.cli.commands import command; command(['review']).get_command(None, 'review');"
        "assert 'textual' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_textual_it_says_how_to_get_it_and_goes_on_plainly(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cleared.cli import review

    monkeypatch.setattr(review, "_is_full_terminal", lambda: True)
    monkeypatch.setattr(review, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))
    review.review_queue(plain=False, workspace=posted.root)
    said = capsys.readouterr()
    assert "In the checkout: pip install '.[review]'" in said.err
    assert "0 decisions made. 2 cards left." in said.out


def test_v_decides_the_card_and_teaches_the_vendor(posted: Workspace) -> None:
    done = type_(posted, "s", "v", "", "5070", 'vendor="The shop"', "", "q")
    for part in (
        "Which words of it name the vendor? (Enter: COFFEE)",
        "Corrected: COFFEE",
        "5070  COFFEE",
        "1 entry would have gone to 5070",
        "Enter approves it",
        "P1 is live now",
    ):
        assert part in done.out, done.out
    assert '    ("COFFEE", "The shop", 5070, 0.99),\n' in posted.read("agents/ingest.py")
    posted.in_order()


def test_v_leaves_a_card_where_it_is_not_taken(posted: Workspace) -> None:
    done = type_(posted, "s", "v", "", "5070", "", "no", "q")
    assert "P1 waits as a card." in done.out
    assert "COFFEE" not in posted.read("agents/ingest.py")
    assert [c["kind"] for c in posted.cards()] == ["entry", "proposal"]


def test_what_no_dry_run_showed_takes_its_number_typed(ws: Workspace) -> None:
    body = 'if ctx_today() > "2031-01-01":\n    ctx_log("later")\nctx_log("hello")'
    ws.put("agents/hello.py", f'"""\nname: hello\n"""\n{body}\n')
    ws.ok("agent", "propose", "hello")
    done = type_(ws, "a", "y", "q")
    assert "Type P1 to approve it all the same" in done.out and "one key does not approve it" in done.out, done.out
    assert "P1 is live now" in type_(ws, "a", "P1", "q").out
    ws.run("hello")
