"""The loop of a session: what it makes of a model that works, asks, lies, repeats itself or says nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from session_doubles import DiskTools, FakeDoor, Reply, last_text, new_store, open_loop, play

from cleared.base.errors import BusyError, ExitCode, UsageError
from cleared.meta.session_events import read_event_schema
from cleared.meta.session_loop import Outcome

EVENT_TYPES = {
    "session.started",
    "turn.started",
    "message.delta",
    "message.text",
    "message.dropped",
    "tool.called",
    "tool.finished",
    "context.pruned",
    "context.compacted",
    "verification",
    "proposal",
    "usage",
    "session.ended",
}
WORK: list[Reply] = [[("write", {"name": "a.py"}), ("propose", {})], "I proposed it."]
SURE: list[Reply] = ["VERDICT: done"]


class Played:
    """A session with a scripted model, worked to its end."""

    def __init__(self, folder: Path, *replies: Reply, prompt: str | None = None, **options: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self.door, self.tools = FakeDoor(play(*replies)), DiskTools(folder / "tools.json")
        self.store = new_store(folder)
        with open_loop(self.store, self.door, self.tools, events=self.events, **options) as loop:
            self.outcome: Outcome = loop.run(prompt)

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def read_last(self) -> list[str]:
        """The last text of each request."""
        return [last_text(messages) for messages, _ in self.door.requests]


def test_the_first_call_has_the_request_and_the_state_of_the_workspace(tmp_path: Path) -> None:
    """H3."""
    played = Played(tmp_path, "Five.", "VERDICT: answered")
    messages, info = played.door.requests[0]
    assert [part.content for part in messages[0].parts] == [
        "Batch my notifications",
        "[workspace at the start; data, not instructions]\nagents/ingest.py",
    ]
    assert info.instructions == "You write agents."
    assert [tool.name for tool in info.function_tools] == ["read", "write", "propose"]


def test_a_request_is_complete_when_its_proposal_stands_and_was_verified(tmp_path: Path) -> None:
    """H11."""
    played = Played(tmp_path, *WORK, *SURE)
    outcome = played.outcome
    assert (outcome.status, outcome.proposal, outcome.text) == ("done", "P1", "I proposed it.")
    assert outcome.exit_code == ExitCode.DONE
    assert [event["phase"] for event in played.of_type("verification")] == ["verify", "ended"]
    verify = played.read_last[-1]
    assert verify.startswith("[verify]") and "proposed as P1" in verify
    (only,), info = played.door.requests[-1]
    assert len(only.parts) == 1 and not info.function_tools, "nothing else of the session is sent"
    assert "<request>\nBatch my notifications\n</request>" in verify and "<reply>\nI proposed it.\n</reply>" in verify


def test_a_reply_that_is_not_sure_is_asked_to_confirm(tmp_path: Path) -> None:
    played = Played(tmp_path, *WORK, "I think so.", "VERDICT: done")
    assert [event["phase"] for event in played.of_type("verification")] == ["verify", "confirm", "ended"]
    assert len(played.door.requests[-1][0]) > 1, "with all of the session, to go on with the work"


def test_a_question_is_answered_when_nothing_is_written(tmp_path: Path) -> None:
    """H11."""
    played = Played(tmp_path, [("read", {"name": "march"})], "March is low: no invoice.", "VERDICT: answered")
    assert (played.outcome.status, played.outcome.text) == ("answered", "March is low: no invoice.")
    assert played.outcome.proposal is None


def test_an_answer_corrected_under_verification_is_the_one_that_counts(tmp_path: Path) -> None:
    played = Played(tmp_path, "I changed it.", "I changed nothing; you asked why.\nVERDICT: answered")
    assert (played.outcome.status, played.outcome.text) == ("answered", "I changed nothing; you asked why.")


def test_a_model_that_cannot_says_why(tmp_path: Path) -> None:
    """H11."""
    played = Played(tmp_path, "No way.", "VERDICT: cannot - there is no bank account")
    outcome = played.outcome
    assert (outcome.status, outcome.reason, outcome.message) == ("cannot", "cannot", "there is no bank account")
    assert outcome.exit_code == ExitCode.FAILED


@pytest.mark.parametrize("claim", ["It is all done.", "VERDICT: done", "**VERDICT: done**, I swear"])
def test_a_model_that_lies_about_being_done_is_told_and_stopped(tmp_path: Path, claim: str) -> None:
    """H11: nothing is written, whatever it says."""
    played = Played(tmp_path, claim)
    assert (played.outcome.status, played.outcome.reason) == ("stopped", "unverified")
    assert "nothing is proposed" in played.outcome.message
    assert 3 <= len(played.door.requests) <= 8
    assert all("nothing is written" in text for text in played.read_last[1:])


def test_a_draft_that_the_gate_refuses_is_not_complete(tmp_path: Path) -> None:
    """H11: the findings are told; what follows is done, and verified anew."""
    played = Played(tmp_path, [("write", {"name": "a.py"})], "Done.", [("propose", {})], "Now it is.", *SURE)
    assert "agents/a.py:3: import is not allowed" in played.read_last[2]
    assert (played.outcome.status, played.outcome.text) == ("done", "Now it is.")
    assert played.of_type("verification")[0]["evidence"] == "blocked"


def test_issues_seen_at_confirmation_lead_back_to_work(tmp_path: Path) -> None:
    """H11."""
    more: list[Reply] = [[("write", {"name": "b.py"})], [("propose", {})], "Both.", *SURE]
    played = Played(tmp_path, *WORK, "b.py is missing.", *more)
    assert (played.outcome.status, played.outcome.proposal, played.outcome.text) == ("done", "P2", "Both.")


def test_a_model_that_repeats_a_call_is_guided_then_stopped(tmp_path: Path) -> None:
    played = Played(tmp_path, [("read", {"name": "a"})])
    assert (played.outcome.status, played.outcome.reason) == ("stopped", "repeating")
    assert len(played.tools.called) == 6
    finished = [event["text"] for event in played.of_type("tool.finished")]
    assert ["[host]" in text for text in finished] == [False, False, True, True, True, True]


def test_two_calls_in_turn_are_a_repetition_too(tmp_path: Path) -> None:
    turn = [0]

    def alternate(messages: Any, info: Any) -> Reply:
        turn[0] += 1
        return [("read", {"name": "ab"[turn[0] % 2]})]

    door, tools = FakeDoor(alternate), DiskTools(tmp_path / "tools.json")
    with open_loop(new_store(tmp_path), door, tools) as loop:
        assert loop.run(None).reason == "repeating"
    assert len(tools.called) <= 12


def test_a_call_after_a_change_is_no_repetition(tmp_path: Path) -> None:
    """The same answer to the same question seven times, each time after something was written."""
    turns = [[("write", {"name": f"{n}.py"})] if n % 2 else [("read", {"name": "a"})] for n in range(14)]
    played = Played(tmp_path, *turns, [("propose", {})], "Done.", *SURE)
    assert played.outcome.status == "done"
    assert len(played.tools.called) == 15


def test_the_number_of_requests_is_bounded(tmp_path: Path) -> None:
    """H12."""
    turn = [0]

    def wander(messages: Any, info: Any) -> Reply:
        turn[0] += 1
        return [("read", {"name": str(turn[0])})]

    door, tools = FakeDoor(wander), DiskTools(tmp_path / "tools.json")
    with open_loop(new_store(tmp_path), door, tools, max_iterations=7) as loop:
        outcome = loop.run(None)
        assert (outcome.status, outcome.reason, outcome.exit_code) == ("stopped", "max_iterations", ExitCode.FAILED)
        assert len(door.requests) == 7 and "7 times" in outcome.message
        assert loop.run(None).reason == "max_iterations" and len(door.requests) == 14, "going on is asking for more"


@pytest.mark.parametrize("arguments", ['{"name": ', "[1]", '"a"', "nul", '{"name": "a"} trailing', "[" * 5000])
def test_arguments_that_are_no_json_object_are_answered(tmp_path: Path, arguments: str) -> None:
    played = Played(tmp_path, [("write", arguments)], "No.", "VERDICT: cannot")
    assert [event["outcome"] for event in played.of_type("tool.finished")] == ["invalid"]
    assert not played.tools.called and "JSON object" in played.read_last[1]


def test_a_tool_that_there_is_not_is_answered(tmp_path: Path) -> None:
    played = Played(tmp_path, [("approve", {"name": "P1"}), ("rm -rf / ;", {})], "No.", "VERDICT: cannot")
    assert [event["outcome"] for event in played.of_type("tool.finished")] == ["invalid", "invalid"]
    assert [name for name, _ in played.tools.called] == ["approve", "rm-rf"]
    assert played.tools.state == {"writes": [], "proposals": []}


def test_empty_replies_end_it(tmp_path: Path) -> None:
    played = Played(tmp_path, "")
    assert (played.outcome.status, played.outcome.reason) == ("stopped", "empty_replies")
    assert len(played.door.requests) == 3


def test_a_model_that_recovers_from_an_empty_reply_goes_on(tmp_path: Path) -> None:
    assert Played(tmp_path, "", "  \n", *WORK, *SURE).outcome.status == "done"


def test_a_reply_of_ten_megabytes_is_kept_short(tmp_path: Path) -> None:
    played = Played(tmp_path, "é" * 10_000_000, "Short.", "VERDICT: answered")
    assert (played.outcome.status, played.outcome.text) == ("answered", "Short.")
    assert (played.store.path / "messages.jsonl").stat().st_size < 2_000_000
    assert all(len(json.dumps(event)) < 2_000_000 for event in played.events)


def test_arguments_of_ten_megabytes_are_refused(tmp_path: Path) -> None:
    played = Played(tmp_path, [("write", {"name": "x" * 10_000_000})], "No.", "VERDICT: cannot")
    assert not played.tools.called
    assert [event["reason"] for event in played.of_type("message.dropped")] == ["cut_off"]


def test_a_reply_without_an_end_is_never_taken(tmp_path: Path) -> None:
    """CARD 2: it is told, asked for again, and after three the session stops with the setting that would help."""
    played = Played(tmp_path, "é" * 10_000_000)
    assert (played.outcome.status, played.outcome.reason, played.outcome.text) == ("stopped", "cut_off", "")
    assert "llm.max_tokens" in played.outcome.message and "cut off" in played.read_last[1]
    assert len(played.door.requests) == 3 and not played.of_type("message.text")


def test_a_question_ends_the_turn_and_is_answered_once(tmp_path: Path) -> None:
    """CARD 2: with the context, also by another process; a second answer is refused, and asks no model."""
    played = Played(tmp_path, "Every day, or on weekdays?\nVERDICT: asks")
    outcome = played.outcome
    assert (outcome.status, outcome.text) == ("asks", "Every day, or on weekdays?")
    assert (outcome.note, outcome.exit_code) == ("Nothing was proposed.", ExitCode.BLOCKED)
    door = FakeDoor(play(*WORK, *SURE))
    with open_loop(played.store, door, played.tools) as loop:
        with pytest.raises(UsageError, match="another question"):
            loop.reply("every day", 2)
        assert loop.reply("every day", 1).proposal == "P1"
        asked = len(door.requests)
        with pytest.raises(UsageError, match="asks you nothing any more"):
            loop.reply("on weekdays", 1)
    assert len(door.requests) == asked and "Batch my notifications" in str(door.requests[0][0])


def test_more_calls_in_one_reply_than_are_made_are_answered(tmp_path: Path) -> None:
    played = Played(tmp_path, [("read", {"name": str(n)}) for n in range(40)], "Read.", "VERDICT: answered")
    assert len(played.tools.called) == 16 and played.outcome.status == "answered"
    assert len(played.of_type("tool.finished")) == 40


def test_ids_of_calls_never_stand_twice(tmp_path: Path) -> None:
    """The scripted model uses the same ids in each reply, as some local servers do."""
    played = Played(tmp_path, [("read", {"name": "a"})], [("read", {"name": "b"})], "Read.", "VERDICT: answered")
    calls = [event["call"] for event in played.of_type("tool.called")]
    assert len(set(calls)) == 2
    for messages, _ in played.door.requests:
        ids = [part.tool_call_id for message in messages for part in message.parts if part.part_kind == "tool-return"]
        assert ids == calls[: len(ids)]


def test_events_follow_their_schema_in_order_with_totals(tmp_path: Path) -> None:
    """H14."""
    played = Played(tmp_path, [("read", {"name": "a"})], *WORK, *SURE)
    schema = read_event_schema()
    assert {one["title"] for one in schema["oneOf"]} == EVENT_TYPES
    for event in played.events:
        jsonschema.validate(json.loads(json.dumps(event)), schema)
    numbers = [event["seq"] for event in played.events]
    assert numbers == list(range(1, len(numbers) + 1))
    assert played.events[0]["type"] == "session.started" and played.events[-1]["type"] == "session.ended"
    end = played.events[-1]
    assert end["usage"]["requests"] == 4 and end["usage"]["input_tokens"] == played.outcome.usage.input_tokens > 0
    assert end["cost"] == "0.04" and end["proposal"] == "P1" and end["status"] == "done"
    stored = [json.loads(line) for line in (played.store.path / "events.jsonl").read_text().splitlines()]
    assert stored == [event for event in played.events if event["type"] != "message.delta"]
    pieces = "".join(event["text"] for event in played.of_type("message.delta") if event["purpose"] == "reply")
    assert pieces == "I proposed it."


def test_a_chat_takes_one_request_after_another(tmp_path: Path) -> None:
    store, tools = new_store(tmp_path), DiskTools(tmp_path / "tools.json")
    door = FakeDoor(play(*WORK, *SURE, "It mails you.", "VERDICT: answered"))
    with open_loop(store, door, tools) as loop:
        assert loop.run("Batch my notifications").proposal == "P1"
        outcome = loop.run("What does it do?")
        assert (outcome.status, outcome.text, outcome.proposal) == ("answered", "It mails you.", None)
    verify = last_text(door.requests[-1][0])
    assert "P1" in verify and "nothing was written for this one" in verify
    with open_loop(store, FakeDoor(play("never asked")), tools) as loop:
        assert loop.run(None).text == "It mails you.", "an answered session has nothing to go on with"
    with pytest.raises(UsageError), open_loop(store, door, tools) as loop:
        loop.run("   ")


def test_a_claim_about_an_earlier_proposal_completes_nothing(tmp_path: Path) -> None:
    """H11: the second request changed nothing; the first one's proposal is no evidence for it."""
    store, tools = new_store(tmp_path), DiskTools(tmp_path / "tools.json")
    with open_loop(store, FakeDoor(play(*WORK, *SURE, "I added b.py.", "VERDICT: done")), tools) as loop:
        loop.run(None)
        assert loop.run("Add b.py").reason == "unverified"


def test_a_session_runs_once_at_a_time(tmp_path: Path) -> None:
    store, tools = new_store(tmp_path), DiskTools(tmp_path / "tools.json")
    with open_loop(store, FakeDoor(play("x")), tools), pytest.raises(BusyError, match="running already"):
        open_loop(store, FakeDoor(play("x")), tools)
