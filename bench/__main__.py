"""``python -m bench``: every figure, one table."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from bench import (
    age,
    bank_formats,
    books,
    bulk,
    calls,
    commits,
    engines,
    fleets,
    gate,
    growth,
    improving,
    large_books,
    loop,
    page_year,
    pages,
    passkeys,
    past,
    reporting,
    requests,
    review,
    server,
    service,
    sessions,
    slow_line,
    startup,
    steady,
    suggestions,
    tasks,
    versions,
)
from bench.measure import Result
from cleared.cli import GC_THRESHOLD

FIGURES: dict[str, Callable[[bool], Result]] = {
    "call": calls.host_call,
    "ingest": calls.ingest_rows,
    "linear": calls.linear,
    "many": bulk.many,
    "document": bulk.document,
    "query": bulk.month_query,
    "ofx": bank_formats.ofx_lines,
    "camt": bank_formats.camt_lines,
    "mt940": bank_formats.mt940_lines,
    "balance": books.balance,
    "month_list": books.month_list,
    "whole_list": books.whole_list,
    "check_again": books.check_again,
    "check_changed": books.check_changed,
    "check_whole": books.check_whole,
    "reports": books.reports,
    "open_reports": reporting.open_reports,
    "pnl": reporting.income_statement,
    "export_hledger": books.export_hledger,
    "durable": commits.durable,
    "seal": commits.seal_small,
    "help": startup.help_,
    "cold": startup.cold_run,
    "cold_floor": startup.cold_floor,
    "cold_least": startup.cold_least,
    "bridge_start": startup.bridge_start,
    "bridge_call": calls.bridge_call,
    "mcp_start": startup.mcp_start,
    "gate": gate.whole,
    "history": gate.history,
    "agents": gate.many,
    "queue": review.listing,
    "decision": review.decision,
    "decision_floor": review.decision_floor,
    "signed_decision": passkeys.signed_decision,
    "batch": review.batch,
    "files": service.files,
    "cron": service.cron,
    "load": service.load,
    "idle": service.idle,
    "status": service.status,
    "webhooks": server.webhooks,
    "idle_server": server.idle_server,
    "long_queue": pages.long_queue,
    "page_decision": pages.page_decision,
    "slow_line": slow_line.next_card_on_slow_line,
    "page_year": page_year.page_year,
    **large_books.FIGURES,
    "job": loop.overhead,
    "job_floor": loop.floor,
    "enqueued": loop.enqueued,
    "tree": loop.export,
    "idle_loop": loop.idle,
    "session_turn": sessions.session_turn,
    **requests.FIGURES,
    "learn": suggestions.train,
    "suggest": suggestions.suggest,
    "calibration": suggestions.calibration,
    "recognition": suggestions.recognition,
    "replay": past.replays,
    "bisect": past.bisecting,
    "good_versions": versions.good_versions,
    "bad_versions": versions.bad_versions,
    "task_ledger": tasks.task_ledger,
    "cold_ledger": tasks.cold_ledger,
    "engine_output": engines.engine_output,
    **fleets.FIGURES,
    "throughput": steady.throughput,
    "memory": steady.memory,
    "memory_commits": steady.memory_commits,
}
COLUMNS = ("figure", "ours", "the peer or floor", "ratio", "target", "")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure; medians, interleaved.")
    parser.add_argument("--only", metavar="NAME", action="append", choices=FIGURES, help=", ".join(FIGURES))
    parser.add_argument("--quick", action="store_true", help="few repetitions: a hint, not a figure")
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    parser.add_argument(
        "--write", action="store_true", help="the table into docs/benchmarks.md; with --only those rows of it"
    )
    parser.add_argument("--growth", action="store_true", help="1,000 to 100,000 rows: docs/growth.svg, and its table")
    parser.add_argument("--million", action="store_true", help="with --growth: a million rows, too; half an hour")
    parser.add_argument("--age", action="store_true", help="what a day costs after 10 to 1,000 of them: a table")
    parser.add_argument("--old", action="store_true", help="with --age: 5,000 of them, too; some hours")
    parser.add_argument("--improve", action="store_true", help="cards a month in a simulated year that teaches")
    options = parser.parse_args()
    # Installed programs have their bytecode; where nobody may write it, each start would compile all modules again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    gc.set_threshold(*GC_THRESHOLD)  # as in a command, for what is measured here and for its baselines
    if options.growth:
        return growth.write_growth(options.million, options.quick)
    if options.age:
        print(age.render_ages(age.measure_ages(age.choose_ages(options.old, options.quick))), end="")
        return 0
    if options.improve:
        print(improving.measure_year(options.quick), end="")
        return 0
    results = []
    for name in options.only or FIGURES:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            results.append(FIGURES[name](options.quick))
        except Exception:  # noqa: BLE001  (the other figures are worth their twenty minutes all the same)
            traceback.print_exc()
            results.append(Result(name, "failed", "—", None, "—", False))
    rows = [
        (
            r.name,
            r.measured,
            r.baseline,
            "—" if r.ratio is None else f"{r.ratio:.2f}×",
            r.target,
            "ok" if r.ok else "over",
        )
        for r in results
    ]
    lines = ["| " + " | ".join(row) + " |\n" for row in (COLUMNS, ("---",) * len(COLUMNS), *rows)]
    table = "".join(lines)
    page = growth.DOCS / "benchmarks.md"
    if options.write and not options.quick:
        if options.only:
            table = replace_rows(growth.read_section(page, "figures"), lines[2:])
        growth.replace_section(page, "figures", table)
    if options.markdown:
        print(table, end="")
    else:
        widths = [max(len(row[i]) for row in (COLUMNS, *rows)) for i in range(len(COLUMNS))]
        for row in (COLUMNS, *rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for r in results:
        if r.note:
            print(f"{r.name}: {r.note}.")
    return 0 if all(r.ok for r in results) else 1


def replace_rows(table: str, lines: Sequence[str]) -> str:
    """A table with these lines in place of those that begin with the same cell. Raises ``ValueError`` for a line that
    has no place in it."""
    rows = {line.split(" | ")[0]: line for line in table.splitlines(keepends=True)}
    for line in lines:
        name = line.split(" | ")[0]
        if name not in rows:
            raise ValueError(f"{name!r} is not in the table: write the whole of it")
        rows[name] = line
    return "".join(rows.values()).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.exit(main())
