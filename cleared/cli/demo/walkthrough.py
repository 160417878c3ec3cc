"""``cleared demo``: a sample workspace, and the main job done in it, step by step.

Everything shown is read back from the workspace afterwards, by the queries that the commands use.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleared.base.clock import Clock, clock_from
from cleared.base.errors import CheckFailed
from cleared.base.json_values import to_json
from cleared.base.safe_files import write_atomic
from cleared.base.terminal import count_noun, print_table
from cleared.books.card_kinds import ENTRY
from cleared.books.ledger.staged_journal import Books
from cleared.books.queries import open_committed_books
from cleared.cards.kinds import INTRODUCTION, kind_named
from cleared.changes.audit.record_violations import describe_violations
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.changes.session import recent_commits
from cleared.changes.workspace_creation import create_workspace
from cleared.changes.workspace_opening import open_workspace
from cleared.cli.demo.sample_firm import agent_text, bank_files, demo_files
from cleared.gate.manual_runs import run_now
from cleared.gate.proposals.approval import approve_proposal
from cleared.gate.proposals.proposal_card import list_card_lines, make_card
from cleared.gate.proposals.shown_proposal import read_shown_proposal
from cleared.gate.proposals.submission import propose_changes
from cleared.review.card_decisions import reject_cards
from cleared.review.queue_cards import read_cards
from cleared.runs.outcome import RunResult

if TYPE_CHECKING:
    from rich.console import Console

NOT_A_STATEMENT: Final = "Chase7733_Activity_2025-Q3.csv"
"""A download that went wrong, as it happens: the bank's login page under the name of a statement."""
_LOGIN_PAGE: Final = b"<!DOCTYPE html>\n<html><head><title>Your session has ended</title></head></html>\n"
_PRIVATE: Final = "SP ATELIER-MOSS"
_CARDS: Final = 6


def run_demo(directory: Path | None, as_json: bool) -> None:
    """Make the sample workspace in ``directory`` (default: a new temporary one), run its agent, and print the result.

    Raises ``WorkspaceError`` where the directory is not new or empty, ``CheckFailed`` where any step failed.
    """
    clock = clock_from(os.environ.get("CLEARED_CLOCK"))
    with _progress(as_json) as show_step:
        story = _run_walkthrough(directory, clock, show_step)
    if as_json:
        _refuse_failed(story)
        import json

        json.dump(to_json(story), sys.stdout, indent=2 if sys.stdout.isatty() else None, ensure_ascii=True)
        sys.stdout.write("\n")
        return
    _WalkthroughPrinter(story).print_all()
    sys.stdout.flush()
    _refuse_failed(story)


def _refuse_failed(story: dict[str, Any]) -> None:
    problems = []
    if story["run"]["status"] != "succeeded":
        problems.append(f"the run failed: {(story['run']['error'] or {}).get('message')}")
    if story["check"]:
        problems.append(f"{len(story['check'])} checks failed")
    problems += [
        f"{b['name']}: the bank says {b['bank']}, the books {b['books']}"
        for b in story["balances"]
        if b["bank"] != b["books"]
    ]
    if problems:
        raise CheckFailed(
            f"the demo did not end well: {'; '.join(problems)}",
            remedy=f"cleared doctor says what this machine lacks; what was made is in {story['workspace']}.",
        )


@contextmanager
def _progress(as_json: bool) -> Iterator[Any]:
    """Shows the current step on a terminal."""
    if as_json or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update


# --- doing it ----------------------------------------------------------------------------------------------


def _run_walkthrough(directory: Path | None, clock: Clock, show_step: Any) -> dict[str, Any]:
    """Do the main job, and return what happened as plain values."""
    started = clock.monotonic()
    show_step("making a workspace")
    target = directory if directory is not None else Path(tempfile.mkdtemp(prefix="cleared-demo-"))
    root, commit = create_workspace(
        target,
        name="Juniper Lane Consulting LLC",
        entity_type="llc_single_member",
        currency="USD",
        clock=clock,
        extra=demo_files(),
    )
    host = open_workspace(root, clock=clock)
    show_step("having the agent approved")
    approval = _approve_agent(host)
    show_step("dropping bank files into import/")
    files = bank_files()
    for name, data in {**files, NOT_A_STATEMENT: _LOGIN_PAGE}.items():
        write_atomic(root / host.layout.import_dir / name, data, fsync=False)
    show_step("running the agent ingest")
    result = run_now(host, "ingest")
    show_step("deciding about a card")
    decision = _decide_card(host) if result.error is None else None
    show_step("checking the books")
    story: dict[str, Any] = {
        "workspace": str(root),
        "temporary": directory is None,
        "init_commit": commit,
        "files": [{"name": name, "rows": data.count(b"\n") - 1} for name, data in files.items()],
        "refused": NOT_A_STATEMENT,
        "approval": approval,
        "run": _run_data(result),
        **_books_data(host, files),
        "check": describe_violations(host),
        "queue": _queue_data(host),
        "decision": decision,
    }
    story["log"] = recent_commits(host, 5)
    story["duration_ms"] = round((clock.monotonic() - started) * 1000)
    return story


def _approve_agent(host: Host) -> dict[str, Any]:
    """Propose and approve the demo's agent, as any other is."""
    write_atomic(host.root / host.layout.agent_path("ingest"), agent_text().encode(), fsync=False)
    proposal, _ = propose_changes(host, ["ingest"], message="Knows the vendors of these bank files")
    with expecting({proposal.folder: read_shown_proposal(host, proposal.folder).digest}):  # the walk-through shows it
        outcome = approve_proposal(host, proposal.folder, proposal.id)
    return {
        "id": proposal.id,
        "title": proposal.title,
        "card": list_card_lines(make_card(proposal)),
        "commit": outcome.commit,
    }


def _run_data(result: RunResult) -> dict[str, Any]:
    data = result.to_json_object()
    return {**data, "entries": len(data["entries"]), "cards": len(data["cards"]), "message": result.message}


def _books_data(host: Host, files: dict[str, bytes]) -> dict[str, Any]:
    """Per month and per account, and whether the bank's own last balance is the books'."""
    with open_committed_books(host) as (_, _snapshot, books, bank):
        trial = books.trial_balance()
        return {
            "known_rows": sum(record.rows - record.new for record in bank.imports),
            "months": [_month_data(books, *key) for key in books.list_months()],
            "accounts": [
                {
                    "account_id": a,
                    "name": books.chart.accounts[a].account_name,
                    "type": books.chart.accounts[a].account_type,
                    "balance": amount,
                }
                for a, amount in trial.items()
            ],
            "trial_balance": sum(trial.values(), Decimal(0)),
            "balances": _compare_balances(host, books, files),
        }


def _month_data(books: Books, year: int, month: int) -> dict[str, Any]:
    entries = list(books.iter_entries(year, month))
    sums = {"revenue": Decimal(0), "expense": Decimal(0)}
    for entry in entries:
        for leg in entry.legs:
            kind = books.chart.accounts[leg.account_id].account_type
            if kind in sums:
                sums[kind] += leg.amount
    return {
        "month": f"{year}-{month:02d}",
        "entries": len(entries),
        "confirmed": sum(e.status == "auto-confirmed" for e in entries),
        "waiting": sum(e.status == "pending-review" for e in entries),
        "income": -sums["revenue"],
        "expenses": sums["expense"],
    }


def _compare_balances(host: Host, books: Books, files: dict[str, bytes]) -> list[dict[str, Any]]:
    """The last running balance of the checking account's files beside its balance in the books."""
    account = host.config.bank_accounts[0]
    assert account.opening is not None
    newest = files[max(name for name in files if name.startswith("Chase4821"))]
    bank = next(csv.DictReader(newest.decode().splitlines()))["Balance"]  # newest first
    booked = account.opening.balance + books.account_balance(account.ledger_account)
    return [{"name": account.name, "bank": Decimal(bank), "books": booked}]


def _queue_data(host: Host) -> dict[str, Any]:
    waiting = read_cards(host)
    kinds: dict[str, int] = {}
    for card in waiting:
        kinds[card["kind"]] = kinds.get(card["kind"], 0) + 1
    seldom = [c for c in waiting if c["kind"] != ENTRY.name]
    doubtful = [c for c in waiting if c["kind"] == ENTRY.name]
    return {"open": len(waiting), "kinds": kinds, "first": [*seldom, *doubtful][:_CARDS]}


def _decide_card(host: Host) -> dict[str, Any] | None:
    """One decision of a person: a purchase that was private is the owner's draw, not an expense."""
    card = next((c for c in read_cards(host) if c["kind"] == ENTRY.name and _PRIVATE in c["title"]), None)
    if card is None:
        return None
    result = reject_cards(host, [card["id"]], "a private purchase, paid with the wrong card", "personal")
    return {
        "card": card["id"],
        "title": card["title"],
        "entry_id": card["entry_id"],
        "posted": result.added,
        "commit": result.commit,
    }


# --- printing it ---------------------------------------------------------------------------------------------


class _WalkthroughPrinter:
    """Prints the result: with colour and boxes on a terminal, else plain text."""

    def __init__(self, story: dict[str, Any]) -> None:
        from rich.console import Console

        self.story = story
        terminal = sys.stdout.isatty()
        self.console: Console = Console(
            file=sys.stdout,
            highlight=False,
            markup=False,
            emoji=False,
            width=None if terminal else 100,
            soft_wrap=not terminal,
        )

    def print_all(self) -> None:
        self.print_files()
        self.print_run()
        if self.story["run"]["status"] != "succeeded":
            return
        self.print_months()
        self.print_profit()
        self.print_queue()
        self.print_checks()
        self.print_next_steps()

    def print_heading(self, text: str) -> None:
        self.console.print()
        self.console.print(text, style="bold cyan")

    def print_line(self, text: str, style: str = "") -> None:
        self.console.print(f"  {text}", style=style)

    def print_files(self) -> None:
        story = self.story
        self.print_heading("What came in")
        for file in story["files"]:
            self.print_line(f"import/{file['name']}  {file['rows']:>4} rows")
        self.print_line(f"import/{story['refused']}  (a login page: the download went wrong)")

    def print_run(self) -> None:
        ran = self.story["run"]
        self.print_heading("cleared agent run ingest")
        if ran["status"] != "succeeded":
            self.print_line(f"failed: {(ran['error'] or {}).get('message')}", "bold red")
            return
        result = ran["result"]
        self.print_line(
            f"{result['imported']} transactions posted in {ran['duration_ms'] / 1000:.2f} s: "
            f"{result['confirmed']} confirmed by the vendor table, {result['review']} for a person"
        )
        known = count_noun(self.story["known_rows"], "row")
        self.print_line(f"The overlap was noticed: {known} came before and were left out.")
        self.print_line(f"one commit: {ran['commits'][0][:10]} {ran['message']}")

    def print_months(self) -> None:
        months = self.story["months"]
        self.print_heading("The books")
        figures = ["entries", "confirmed", "waiting", "income", "expenses", "result"]

        def month_cells(name: str, m: dict[str, Any]) -> tuple[str, ...]:
            counts = (str(m[k]) for k in ("entries", "confirmed", "waiting"))
            return (
                name,
                *counts,
                _format_money(m["income"]),
                _format_money(m["expenses"]),
                _format_money(m["income"] - m["expenses"]),
            )

        total = {k: sum(m[k] for m in months) for k in ("entries", "confirmed", "waiting", "income", "expenses")}
        rows = [*(month_cells(m["month"], m) for m in months), month_cells("total", total)]
        print_table(["month", *figures], rows, right=figures, empty="")

    def print_profit(self) -> None:
        self.print_heading("Profit and loss, by account")
        shown = [a for a in self.story["accounts"] if a["type"] in ("revenue", "expense")]
        rows = [(str(a["account_id"]), a["name"], _format_money(-a["balance"])) for a in shown]
        profit = -sum((a["balance"] for a in shown), Decimal(0))
        rows.append(("", "profit", _format_money(profit)))
        print_table(["account", "name", "amount"], rows, right=["amount"], empty="")

    def print_queue(self) -> None:
        queue, decision = self.story["queue"], self.story["decision"]
        kinds = ", ".join(f"{kind_named(kind).title}: {count}" for kind, count in queue["kinds"].items())
        self.print_heading(f"What waits for a person: {count_noun(queue['open'], 'card')} ({kinds})")
        self.print_line(INTRODUCTION)
        rows = [(c["id"], c["kind"], c["title"]) for c in queue["first"]]
        print_table(["card", "kind", "title"], rows, wrap=["title"], empty="")
        if decision:
            self.print_line(f"Decided already: {decision['entry_id']} ({decision['title']})")
            self.print_line(
                f"was a private purchase; {', '.join(decision['posted'])} makes it the owner's draw (3200)."
            )

    def print_checks(self) -> None:
        story = self.story
        self.print_heading("Is it right?")
        good = "green" if not story["check"] else "bold red"
        for violation in story["check"]:
            self.print_line(f"[{violation['check']}] {violation['message']}", good)
        if not story["check"]:
            self.print_line("check: every invariant holds", good)
        self.print_line(
            f"trial balance: {len(story['accounts'])} accounts sum to {_format_money(story['trial_balance'])}"
        )
        for b in story["balances"]:
            self.print_line(
                f"{b['name']}: the bank's last line says {_format_money(b['bank'])}, "
                f"the books {_format_money(b['books'])}",
                "green" if b["bank"] == b["books"] else "bold red",
            )
        self.print_heading("git log --oneline")
        for commit in story["log"]:
            self.print_line(f"{commit['commit_hash'][:10]} {commit['message']}")

    def print_next_steps(self) -> None:
        story = self.story
        self.print_heading("Go on from here")
        for command in (
            f"cd {story['workspace']}",
            "cleared queue list",
            "cleared journal list --month 2025-03",
            f"cleared run show {story['run']['run_id'].rsplit('-', 1)[1]}",
            "cleared journal balance",
            "cleared agent show ingest",
            "cleared doctor",
            "git show --stat HEAD~1",
        ):
            self.print_line(command)
        self.console.print()
        keeping = "a temporary directory; delete it when you are done" if story["temporary"] else "yours to keep"
        self.print_line(f"The workspace is {story['workspace']} ({keeping}).")


def _format_money(amount: Decimal) -> str:
    return f"{amount:,.2f}"
