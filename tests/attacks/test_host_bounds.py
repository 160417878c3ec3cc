"""Scripts that have the host do endless work, hold endless data or say endless things (fault 9, rows A6, B2, B10).

Each attack is a script. One test has the wall stop it; one beside it takes that one wall away, and the attack succeeds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from harness import CLOCK, Workspace, chase, fails

from cleared.api.rpc.workspace_server import RequestHandler
from cleared.base import bounds, clock, money
from cleared.base.clock import FixedClock, clock_from
from cleared.base.errors import ClearedError, PrimitiveError
from cleared.base.json_values import from_wire, to_wire
from cleared.changes.host import Host
from cleared.changes.trace import TraceStore
from cleared.changes.workspace_opening import open_workspace
from cleared.primitives.context import RunLog
from cleared.primitives.dispatch import Dispatcher
from cleared.primitives.registry.primitive import Effect, Registry, primitive
from cleared.primitives.registry.vocabulary import DecodingContext
from cleared.runs import attempt

POST = '{"date": "2025-01-03", "description": "x", "debit_account": 5020, "credit_account": 1010, "amount": 1}'

# -- time -------------------------------------------------------------------------------------------------------------

SLOW = {
    "journal_add_many": f"journal_add_many([{POST}] * 3)",
    "journal_add": 'a = {"account_id": 5020}\njournal_add("2025-01-03", "x", [{**a, "debit": 4}, {**a, "credit": 4}])',
    "money_allocate": "money_allocate(1, [1] * 3)",
    "journal_query": f"journal_add_many([{POST}])\njournal_query()",
    "journal_balance": f"journal_add_many([{POST}])\njournal_balance(1010, as_of='2025-01-31')",
    "importer_scan": "importer_scan()",
    "importer_parse": 'importer_parse("january.csv")',
    "importer_deduplicate": 'importer_deduplicate(importer_parse("january.csv"))',
    "queue_pending": f'journal_add_many([{POST}])\nqueue_add_review("pending", "x")\nqueue_pending()',
    "config_get": 'config_get("no.such.key", [0] * 300)',
    "git_commit": f"journal_add_many([{POST}])\ngit_commit('x')",
}


@pytest.fixture
def time_is_up_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has the host's clock jump past any deadline when a primitive is called; the sandbox's own clock stays."""

    def arrange(name: str) -> None:
        later, call = [0.0], Dispatcher.call_primitive

        def watched(self: Dispatcher, called: str, *args: Any) -> Any:
            if called == name:
                later[0] += 1e6
            return call(self, called, *args)

        monkeypatch.setattr(Dispatcher, "call_primitive", watched)
        monkeypatch.setattr(FixedClock, "monotonic", lambda self: time.monotonic() + later[0])

    return arrange


@pytest.mark.parametrize("name", SLOW)
def test_a6_the_hosts_own_loops_ask_for_the_deadline(
    ws: Workspace, time_is_up_in: Callable[[str], None], name: str
) -> None:
    ws.drop("january.csv")
    time_is_up_in(name)
    error = fails(ws, SLOW[name], "did not end within 30 s", "sandbox.timeout", "config approve")["error"]
    assert (error["type"], error["primitive"]) == ("TimeoutError", name) and error["line"]
    assert ws.cards()[0]["kind"] == "failed_run"


@pytest.mark.parametrize("name", SLOW)
def test_without_the_deadline_the_hosts_loops_go_on(
    ws: Workspace, time_is_up_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ws.drop("january.csv")
    time_is_up_in(name)
    monkeypatch.setattr(clock._Deadline, "check_time", lambda self: None)
    ws.agent("probe", SLOW[name])
    assert ws("agent", "run", "probe", "--dry-run").code == 0


def test_a6_the_remedy_names_the_limit_that_holds(ws: Workspace, time_is_up_in: Callable[[str], None]) -> None:
    """Fault 25: the settings', the header's, or the cap of headers."""
    time_is_up_in("money_allocate")
    ws.config("sandbox.timeout_cap=40")
    body = "money_allocate(1, [1])"
    fails(ws, body, "raise sandbox.timeout: cleared config set sandbox.timeout 60", "config approve")
    fails(ws, body, "raise `timeout:`", "sandbox.timeout", "config approve", header="timeout: 40\n")
    fails(ws, body, "cleared config set sandbox.timeout_cap 80", header="timeout: 50\n")


def test_a6_the_seals_checks_ask_too_and_the_seal_is_not_stopped(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the script leaves to be checked is checked in the run's time; what is checked is sealed whole."""
    from cleared.runs import execution

    asked: list[bool] = []
    resolve_cards = execution.resolve_cards

    def late(*args: Any) -> None:
        monkeypatch.setattr(FixedClock, "monotonic", lambda self: time.monotonic() + 1e6)
        resolve_cards(*args)

    monkeypatch.setattr(execution, "resolve_cards", late)
    fails(ws, f"journal_add_many([{POST}])", "did not end within")
    monkeypatch.setattr(clock._Deadline, "check_time", lambda self: asked.append(True))
    assert ws.run("probe")["status"] == "succeeded" and asked


# -- sizes ------------------------------------------------------------------------------------------------------------


def test_b10_a_list_has_its_limit(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every list of every primitive, before anything is made of it; plain data is counted as a whole."""
    most = "200000 are allowed"
    fails(ws, "money_allocate(1, [1] * 200_001)", "the list has 200001 items", most, "weights")
    fails(ws, 'config_get("a.b", [[0] * 150_000, [0] * 60_000])', "the data has more than 200000 values")
    monkeypatch.setattr(bounds, "MAX_ITEMS", 10)
    monkeypatch.setattr(Host, "env", property(lambda host: DecodingContext(max_items=10)))
    fails(ws, f"journal_add_many([{POST}] * 11)", "the list has 11 items", "10 are allowed")
    fails(ws, "accounts_list()", "the answer of accounts_list has", "Ask for less at a time")


def test_without_the_limit_a_list_is_taken(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "env", property(lambda host: DecodingContext(max_items=10**9)))
    assert ws.script("len(money_allocate(1, [1] * 200_001))")["result"] == 200_001


HUGE = {
    "config_get": ["a.b", Decimal("1e1000000")],
    "money_allocate": [1, [Decimal("1e-1000000")]],
    "importer_deduplicate": [[{"reference": Decimal("1" * 100)}]],
    "journal_add_many": [[{**json.loads(POST), "confidence": Decimal("1e-1000000")}]],
    "queue_add_review": ["pending", "x", Decimal("0e-1000000")],
}


@pytest.fixture
def door(ws: Workspace) -> Iterator[Dispatcher]:
    """The primitives as a client reaches them, who is in no sandbox."""
    with RequestHandler(open_workspace(ws.root, clock=clock_from(CLOCK))).open_dispatcher() as found:
        found.effects = frozenset(Effect)
        yield found


@pytest.mark.parametrize("name", HUGE)
def test_b3_a_number_has_its_digits(door: Dispatcher, name: str) -> None:
    """1E+120000000 is a few bytes, and a hundred megabytes in an answer, a card or a journal."""
    with pytest.raises(PrimitiveError, match="more than 40 digits"):
        door.call_primitive(name, tuple(HUGE[name]), {})


def test_without_the_bound_of_digits_an_answer_is_a_megabyte(door: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(money, "require_bounded", lambda number: number)
    assert len(json.dumps(to_wire(door.call_primitive("config_get", tuple(HUGE["config_get"]), {})))) > 1_000_000


@primitive(effect=Effect.READ, grant="test.read")
def test_say(ctx: Any) -> str:
    """Not a test: a primitive that says much."""
    if ctx == "refuse":
        raise PrimitiveError("x" * 1_000_000, remedy="y" * 1_000_000)
    if ctx == "break":
        raise ZeroDivisionError("x" * 1_000_000)
    return "x" * 1_000_000


SAY = test_say
del test_say


def said(how: str) -> tuple[ClearedError, str]:
    door = Dispatcher(Registry([SAY]), how, DecodingContext(), monotonic=time.monotonic, record=(calls := []).append)
    with pytest.raises(Exception):  # noqa: B017
        door.call_primitive("test_say", (), {})
    assert door.failure is not None
    return door.failure, calls[0].error


@pytest.mark.parametrize("how", ["refuse", "break"])
def test_b10_an_errors_message_has_its_limit(how: str) -> None:
    error, traced = said(how)
    assert len(error.message) < 11_000 and len(error.remedy or "") < 11_000 and len(traced) < 25_000


def test_without_the_limit_an_error_is_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.base.errors.clip_text", lambda text: text)
    assert len(said("refuse")[1]) > 1_000_000


def test_b10_what_a_script_makes_a_primitive_say_is_short_everywhere(ws: Workspace) -> None:
    """The million characters that a refusal would quote are in no list of runs, no card, no commit, no trace."""
    for body in (
        'money_allocate(1, ["x" * 1_000_000])',
        'accounts_get("x" * 1_000_000)',
        'ctx_log(**{"x" * 1_000_000: 1})',
        'journal_query("x" * 1_000_000)',
    ):
        fails(ws, body)
    shown = [ws.ok("run", "list", "--json").out, ws.ok("queue", "list", "--json").out, ws.git("log")]
    assert all(len(text) < 40_000 for text in shown) and (ws.root / ".cleared/runs.db").stat().st_size < 200_000


def test_b10_an_answer_has_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Dispatcher(Registry([SAY]), "", DecodingContext(), monotonic=time.monotonic).call_primitive(
        "test_say", (), {}
    )
    monkeypatch.setattr("cleared.primitives.dispatch.MAX_ANSWER_BYTES", 1 << 19)
    with pytest.raises(PrimitiveError, match="the answer of test_say has more than"):
        Dispatcher(Registry([SAY]), "", DecodingContext(), monotonic=time.monotonic).call_primitive("test_say", (), {})


# -- what is shown and kept -------------------------------------------------------------------------------------------


def test_b10_a_log_is_shown_up_to_its_limit(ws: Workspace) -> None:
    """Lines, and bytes; the agent log has them all."""
    ws.agent("probe", 'for i in range(1_500):\n    ctx_log("line " + str(i))')
    shown = ws.ok("agent", "run", "probe").err
    assert 900 < shown.count("line ") <= 1_001 and "more lines are not shown" in shown
    ws.agent("probe", 'for i in range(200):\n    ctx_log("x" * 10_000)')
    assert len(ws.ok("agent", "run", "probe").err) < 1_200_000


def test_without_the_limits_of_lines_a_log_is_shown_whole(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "MAX_SHOWN_LINES", 10**9)
    ws.agent("probe", 'for i in range(1_500):\n    ctx_log("line " + str(i))')
    assert ws.ok("agent", "run", "probe").err.count("line ") == 1_500


@pytest.fixture
def small_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunLog.__init__, "__defaults__", (20, 5, bounds.MAX_LOG_BYTES))


LOGS = f"journal_add_many([{POST}])\nfor i in range(60):\n    ctx_log('line ' + str(i))\n"


def test_d4_rows_beyond_the_limit_are_counted_not_refused(ws: Workspace, small_log: None) -> None:
    """Fault 25: the first and the last are whole."""
    ws.script(LOGS)
    rows = [line for line in ws.read("logs/agent-log-2025-02.csv").splitlines() if ",probe," in line]
    assert len(rows) == 21 and "line 13" in rows[14] and "… 43 more rows are not written out: 43 log" in rows[15]
    assert "line 59" in rows[-3] and "succeeded" in rows[-1]
    assert ",queue_add_review," in rows[-2], "the card of the entry that the script asked nobody about"


def test_d4_a_run_that_fails_beyond_the_limit_of_rows_leaves_its_commit_and_its_card(
    ws: Workspace, small_log: None
) -> None:
    """Fault 25."""
    before = ws.head()
    fails(ws, f"{LOGS}accounts_get(4)", "account 4 does not exist")
    assert ws.head() != before and [card["kind"] for card in ws.cards()] == ["failed_run"]
    assert ws.read("logs/agent-log-2025-02.csv").count(",probe,") == 21


def test_d4_document_003s_ingest_takes_more_rows_than_a_log_has(ws: Workspace, small_log: None) -> None:
    """Fault 25: its script logs every entry, and every card."""
    ws.drop("january.csv", chase(*[(f"01/{n % 28 + 1:02}/2025", f"SHOP {n}", f"-{n + 1}.00") for n in range(40)]))
    assert ws.run("ingest")["result"]["imported"] == 40
    assert len(ws.entries()) == 40 and ws.read("logs/agent-log-2025-02.csv").count(",ingest,") == 21


def test_b10_rows_of_a_log_are_bounded_in_bytes() -> None:
    from cleared.primitives.context import LogRow

    log = RunLog(1_000, 10, (1 << 20) + 100_000)
    for _ in range(900):
        log.add_row(LogRow("log", "x" * 10_000))
    assert sum(row.size for row in log) < 1_200_000 and len(list(log)) < 130


def traced(ws: Workspace) -> dict[str, Any]:
    found = ws.json("run", "show", ws.json("run", "list")[0]["run_id"])
    assert isinstance(found, dict)
    return found


CHATTY = 'for i in range(100):\n    config_get("a.b", "x" * 1_000)'


def test_b10_a_trace_has_its_limit_in_bytes(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one run: all calls stay, without what they were given; of all runs: the oldest go."""
    monkeypatch.setattr("cleared.changes.trace.MAX_TRACE_BYTES", 20_000)
    ws.script(CHATTY)
    calls = traced(ws)["calls"]
    assert len(calls) == 100 and len(json.dumps(calls)) < 60_000 and calls[-1]["line"]
    monkeypatch.setattr("cleared.changes.trace.MAX_TRACE_BYTES", 10**9)
    monkeypatch.setattr("cleared.changes.trace.MAX_TRACES_BYTES", 1 << 20)
    for _ in range(12):
        ws.run("probe")
    runs = TraceStore(ws.root / ".cleared").list_runs(100)
    assert 1 <= len(runs) < 8 and (ws.root / ".cleared/runs.db").stat().st_size < 2 << 20


def test_without_the_limits_a_trace_grows(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.script(CHATTY)
    assert len(json.dumps(traced(ws)["calls"])) > 200_000


def test_b10_what_is_held_of_results_is_bounded() -> None:
    """Until the run ends; a script can ask for the same list as often as it has time."""
    calls: list[Any] = []
    door = Dispatcher(Registry([SAY]), "", DecodingContext(), monotonic=time.monotonic, record=calls.append)
    for _ in range(20):
        door.call_primitive("test_say", (), {})
    assert sum(len(call.result) for call in calls) <= 20 * 2_001


def test_exact_numbers_are_bounded_alike() -> None:
    """One rule for scripts, clients and bridges."""
    for text in ("1e120000000", "-1e-41", "1" * 41, "0e99"):
        with pytest.raises(ValueError, match="digits"):
            from_wire({"$decimal": text})
    assert from_wire({"$decimal": "1e-40"}) == Decimal("1e-40")
