"""What a host call costs, and what a script costs on top of its calls."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from bench.measure import Result, Side, compare, cpu_seconds, seconds
from bench.pace import judge_time, take_paced
from bench.startup import opened_bridge
from bench.workspaces import NOW, chase, copy, host, ingest_script, place, workspace
from cleared.base.clock import SystemClock
from cleared.base.errors import Place
from cleared.books.ledger.entry import ZERO
from cleared.books.primitives.book_shapes import EntryRef, Status
from cleared.changes.trace import TraceStore
from cleared.gate.manual_runs import run_now
from cleared.primitives.dispatch import Call, Dispatcher
from cleared.primitives.registry.primitive import Effect, Registry, primitive
from cleared.primitives.registry.vocabulary import (
    AccountId,
    Confidence,
    Date,
    DecodingContext,
    Line,
    PositiveAmount,
    Text,
)
from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.limits import Limits
from cleared.sandbox.monty import Sandbox
from cleared.sandbox.script_failure import Position
from cleared.sandbox.worker_pool import start_worker

CALLS = 5_000
ROWS = 1_000
REF: EntryRef = {"entry_id": "2025-01-001", "date": "2025-01-31", "status": "auto-confirmed", "duplicate": False}
LIMITS = Limits(seconds=120.0)


@primitive(effect=Effect.STAGE, grant="bench.post")
def bench_post(
    ctx: Any,
    date: Date,
    description: Text,
    debit_account: AccountId,
    credit_account: AccountId,
    amount: PositiveAmount,
    counterparty: Text | None = None,
    reference: Line | None = None,
    confidence: Confidence = ZERO,
    status: Status = "pending-review",
    evidence: Text | None = None,
) -> EntryRef:
    """The signature of ``journal_add_double``, and nothing behind it: what is left is the door itself."""
    return REF


SCRIPT = f"""
for i in range({CALLS}):
    bench_post(
        date="2025-01-31", description="GITHUB INC", debit_account=5020, credit_account=1010, amount=4,
        counterparty="GitHub", reference="r" + str(i), confidence=0.98, status="auto-confirmed",
        evidence="rule: inline match")
"""


def host_call(quick: bool) -> Result:
    """One call through dispatch: decoded, checked, timed, recorded, and written to the trace database."""
    sandbox = Sandbox()
    worker = start_worker("best", 120.0)

    def ours() -> Callable[[], object]:
        traces = TraceStore(place())
        calls: list[Call] = []
        dispatcher = Dispatcher(
            Registry([bench_post]), None, DecodingContext(), monotonic=SystemClock().monotonic, record=calls.append
        )
        call = dispatcher.call_primitive
        run = {"id": "r", "agent": "a", "dry_run": False, "started_at": "", "event": {}, "script": "", "head": ""}
        traces.begin_run(run)

        def answer(name: str, args: tuple[object, ...], kwargs: dict[str, object], at: Position) -> object:
            return call(name, args, kwargs, Place(at.file, at.line, at.column))

        def act() -> None:
            sandbox.run(
                ScriptRun(
                    SCRIPT,
                    file="bench.py",
                    call=answer,
                    names=dispatcher.registry,
                    limits=LIMITS,
                    now=NOW,
                    seed="bench",
                )
            )
            outcome = dict.fromkeys(("status", "duration_ms", "result", "error", "message", "commits", "entries"))
            traces.end_run("r", {**outcome, "status": "succeeded", "cards": None, "log": []}, calls, 0.0)
            assert len(calls) == CALLS

        return act

    def bare() -> Callable[[], object]:
        def act() -> None:
            from pydantic_monty import FunctionSnapshot, MontyComplete

            answered = 0
            with worker.pool.checkout(limits={"max_suspensions": 10**6}) as session:
                at: Any = session.feed_start(SCRIPT)
                while type(at) is not MontyComplete:
                    if type(at) is FunctionSnapshot:
                        answered += 1
                        at = at.resume({"return_value": REF})
                    else:
                        at = at.resume(value=bench_post_stub)
            assert answered == CALLS

        return act

    try:
        return compare(
            "one host call, validated and traced / bare feed_start + resume", ours, bare, 2.0, 3 if quick else 9, CALLS
        )
    finally:
        sandbox.close()
        worker.stop()


def bridge_call(quick: bool) -> Result:
    """A call from a script in ``cleared bridge`` to its host and back, against one that is answered in this process: in
    processor time of the bridge and its worker, as the machine may be busy."""
    loop = f"for i in range({CALLS}):\n    price(i)\n"
    direct, waited = [], []
    with opened_bridge() as (ask, bridge), Sandbox() as sandbox:

        def call() -> float:
            began, before = time.perf_counter(), cpu_seconds(bridge)
            ask({"script": loop, "external_functions": ["price"], "limits": {"seconds": 600}})
            ours = cpu_seconds(bridge) - before
            waited.append((time.perf_counter() - began) / CALLS)
            before = cpu_seconds(os.getpid(), without=bridge)
            sandbox.run(
                ScriptRun(loop, file="b.py", call=lambda *_: 1, names={"price"}, limits=LIMITS, now=NOW, seed="bench")
            )
            direct.append((cpu_seconds(os.getpid(), without=bridge) - before) / CALLS)
            return ours / CALLS

        took = take_paced(call, 4 if quick else 10)
    base = statistics.median(direct)
    return judge_time(
        "a call through cleared bridge / the same in one process",
        took,
        80e-6,
        baseline=seconds(base),
        ratio=took.measured / base,
        note=f"{seconds(statistics.median(waited))} from call to call, with those of a host in Python",
    )


def bench_post_stub() -> None:
    """Never called: the interpreter sees its name."""


bench_post_stub.__name__ = "bench_post"


def ingest_rows(quick: bool) -> Result:
    """A whole run of document 003's script over 1,000 rows of one month, against the same with empty primitives."""
    template = workspace(files={"bank.csv": chase(ROWS)})
    with Sandbox() as sandbox:
        return compare(
            f"ingest {ROWS:,} rows of a month / the same script, primitives that return at once",
            whole_run(template, ROWS),
            empty_primitives(ROWS, sandbox),
            3.0,
            2 if quick else 7,
        )


def linear(quick: bool) -> Result:
    """Ten times the rows."""
    large, small = (workspace(files={"bank.csv": chase(rows)}) for rows in (10 * ROWS, ROWS))
    return compare(
        f"ingest {10 * ROWS:,} rows of a month / {ROWS:,} rows",
        whole_run(large, 10 * ROWS),
        whole_run(small, ROWS),
        11.0,
        1 if quick else 3,
    )


def whole_run(template: Any, rows: int, agent: str = "ingest") -> Side:
    """``cleared agent run`` within this process, from the opened workspace to the commit, each time on a copy."""

    def side() -> Callable[[], object]:
        opened = host(copy(template))

        def act() -> None:
            result = run_now(opened, agent)
            assert result.error is None and len(result.records["entries"]) == rows, result.error

        return act

    return side


def empty_primitives(rows: int, sandbox: Sandbox) -> Side:
    """The same script in the same sandbox; what it asks is answered with values made before."""
    days = [f"2025-01-{1 + n * 28 // rows:02d}" for n in range(rows)]
    texts = ("GITHUB INC", "AWS EMEA", "CORNER SHOP")
    txns = [
        {
            "date": days[n],
            "description": f"{texts[n % 3]} {n:06d}",
            "amount": Decimal(-100 - n % 9_000) / 100,
            "reference": f"l1:{n:024d}",
            "type": "ACH_DEBIT",
            "currency": "USD",
            "balance": Decimal(1),
            "state": "posted",
            "account": "checking",
            "ledger_account": 1010,
        }
        for n in range(rows)
    ]
    answers: dict[str, Any] = {
        "importer_scan": [{"name": "bank.csv", "ledger_account": 1010}],
        "importer_parse": txns,
        "accounts_get": {"account_type": "asset"},
        "journal_add_double": REF,
        "queue_add_review": {"id": "x"},
        "importer_mark_processed": {"name": "bank.csv"},
        "git_commit": {"success": True, "commit_hash": "run:x"},
        "ctx_log": None,
    }
    settings = {"thresholds.auto_confirm": 0.95, "bank_accounts": []}
    script = ingest_script()

    def answer(name: str, args: tuple[object, ...], *_: object) -> object:
        return settings[str(args[0])] if name == "config_get" else answers[name]

    def side() -> Callable[[], object]:
        def act() -> None:
            found = sandbox.run(
                ScriptRun(
                    script,
                    file="agents/ingest.py",
                    call=answer,
                    names={*answers, "config_get"},
                    limits=LIMITS,
                    now=NOW,
                    seed="bench",
                )
            )
            assert isinstance(found, dict) and found["imported"] == rows

        return act

    return side
