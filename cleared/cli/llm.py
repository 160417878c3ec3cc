"""``cleared llm …``: the language model, its key, and what it has cost."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from cleared.base.terminal import print_fields, print_json, print_line, print_message, print_table
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.llm import api_keys, model_check
from cleared.llm.model_check import ModelCheck
from cleared.llm.model_door import read_approved_choice
from cleared.llm.spending import format_dollars
from cleared.llm.usage_report import report_usage

app = new_group()


@app.command("check")
def check_model(
    call: Annotated[bool, typer.Option("--call", help="Ask the model one short thing, which costs a little.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show which model is asked, where, what it costs, and whether its key is there. Nothing is sent without --call."""
    check = model_check.check_model(open_host(workspace), os.environ, with_call=call)
    if json:
        print_json(_describe_check(check))
    else:
        print_fields(_list_facts(check))
        for problem in check.problems:
            print_message(f"{problem}")
    if check.problems:
        raise typer.Exit(1)


def _list_facts(check: ModelCheck) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = []
    if check.choice is not None:
        facts += [("provider", check.choice.provider), ("model", check.choice.model), ("address", check.choice.url)]
        if check.choice.is_readable_on_the_way:
            facts.append(("", "plain http: what is sent can be read on the way"))
        needed = "missing" if check.choice.needs_key else "none"
        facts.append(("key", f"from {check.key_source}" if check.key_source else needed))
    if check.price is not None and check.typical_cost is not None:
        price = check.price
        each = ", ".join(
            f"{format_dollars(amount)} {what}"
            for what, amount in (("in", price.input), ("in from its cache", price.cached_input), ("out", price.output))
        )
        facts.append(("a million tokens", f"{each} ({price.source})"))
        facts.append(("a typical call", f"{format_dollars(check.typical_cost)} for 10,000 tokens in and 1,000 out"))
    if check.has_answered is not None:
        cost = f", for {format_dollars(check.answer_cost)}" if check.answer_cost is not None else ""
        facts.append(("answers", f"yes{cost}" if check.has_answered else "no"))
    return facts


def _describe_check(check: ModelCheck) -> dict[str, Any]:
    choice, price = check.choice, check.price
    return {
        "provider": choice and choice.provider,
        "model": choice and choice.model,
        "url": choice and choice.url,
        "key_source": check.key_source,
        "price": price
        and {
            "input": str(price.input),
            "cached_input": str(price.cached_input),
            "output": str(price.output),
            "source": price.source,
        },
        "answers": check.has_answered,
        "cost": None if check.answer_cost is None else str(check.answer_cost),
        "ready": not check.problems,
        "problems": [str(problem) for problem in check.problems],
    }


@app.command("usage")
def show_usage(
    days: Annotated[int, typer.Option("--days", min=1, max=3_660, help="Today and so many days before it.")] = 30,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show what was asked and what it cost, by day, model and purpose, and what is left of today's budget."""
    report = report_usage(open_host(workspace), days)
    if json:
        print_json(report.describe())
        return
    print_table(
        ["day", "model", "purpose", "calls", "failed", "in", "from cache", "out", "cost"],
        (
            (
                row.day,
                row.model,
                row.purpose,
                row.calls,
                row.failed + row.unfinished,
                f"{row.input_tokens:,}",
                f"{row.cached_tokens:,}",
                f"{row.output_tokens:,}",
                format_dollars(row.cost),
            )
            for row in report.rows
        ),
        wrap=["model", "purpose"],
        empty="No model was asked.",
    )
    if report.rows:
        print_line(f"Together: {format_dollars(report.total)}")
    print_line(f"Left today: {format_dollars(report.left_today)} of {format_dollars(report.daily_budget)}")


@app.command("key")
def store_key(
    remove: Annotated[bool, typer.Option("--remove", help="Take the key out of the keyring.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Put the key for the configured model's server into the system's keyring. It is asked for, and not shown."""
    choice = read_approved_choice(open_host(workspace))
    if remove:
        was_there = api_keys.remove_api_key(choice)
        print_message(f"The key for {choice.server} is removed." if was_there else "There was none in the keyring.")
        return
    api_keys.store_api_key(choice, _read_secret(f"Key for {choice.server}: "))
    print_message(f"The key for {choice.server} is in the system's keyring. Try it: cleared llm check --call")


def _read_secret(prompt: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline(10_000).strip()
    import getpass

    return getpass.getpass(prompt).strip()
