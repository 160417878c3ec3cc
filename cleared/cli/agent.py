"""``cleared agent …``"""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

import typer
from msgspec.structs import asdict

from cleared.base.errors import UsageError
from cleared.base.json_values import to_json
from cleared.base.terminal import count_noun, print_fields, print_json, print_line, print_message, print_table
from cleared.cards.card import list_texts
from cleared.cards.kinds import BAD_FILE
from cleared.changes.host import Host
from cleared.cli.command_groups import new_group
from cleared.cli.completion import complete_agents, complete_cards
from cleared.cli.options import AgentName, JsonOption, WorkspaceOption, open_host, open_host_once, parse_payload
from cleared.domains.installed_domains import count_records
from cleared.runs.outcome import RunResult

app = new_group()


@app.command("run")
def run_agent(
    name: AgentName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Run the working copy and show what it would post; change nothing.")
    ] = False,
    data: Annotated[
        str | None, typer.Option("--data", metavar="JSON", help="What ctx_event() gives the script as its payload.")
    ] = None,
    again: Annotated[
        str | None,
        typer.Option(
            "--again",
            metavar="CARD",
            autocompletion=complete_cards,
            help="For what it failed, or asked what is held now.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --again: what the card says that it was run for is right.")
    ] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Run an agent as approved: one commit, or nothing.

    The script's result is printed as JSON on stdout, its log on stderr. --json prints one object: run_id, agent,
    status (succeeded, failed, waiting, dry_run), result, commits, entries, cards, messages, duration_ms, error,
    edited, warnings.
    """
    from cleared.gate.manual_runs import run_command
    from cleared.sandbox.worker_pool import share_processor

    if again is not None and (dry_run or data is not None):
        raise typer.BadParameter("--again goes without --dry-run and --data")
    payload = parse_payload(data) if data is not None else None
    host = open_host(workspace) if dry_run else open_host_once(workspace, json=json)
    with share_processor():
        result = run_command(host, name, dry_run=dry_run, data=payload, again=again, believed=yes)
    if result.messages:
        from cleared.service.notify.script_messages import send_after_run

        for line in send_after_run(host, result):
            print_message(f"cleared: {line}")
    print_run(result, json=json)


def print_run(result: RunResult, *, json: bool, quiet: bool = False) -> None:
    """How a run ended; ``quiet``: nothing on stdout. Exits with its code where it failed."""
    dry_run = result.status == "dry_run"
    for file in result.edited:
        print_message(
            f"cleared: {file}: the working copy differs from the approved script, and is not what ran. To try it: "
            f"cleared agent run {result.agent} --dry-run"
        )
    for warning in result.warnings:
        print_message(f"cleared: {warning}")
    if json and not quiet:
        print_json(result.to_json_object())
    elif result.error is None and not quiet and result.status != "waiting":
        if dry_run:
            _print_entries(result.to_json_object()["entries"])
            for message in result.messages:
                _print_staged_message(message)
        print_line(jsonlib.dumps(to_json(result.result), ensure_ascii=True))
    bad = [c for c in result.cards if c.kind == BAD_FILE.name]
    for card in bad:
        print_message(f"cleared: {card.title}")
    if result.error is not None:
        print_message(f"cleared: {result.agent} failed; nothing of it was committed. {result.error}")
        # One level says no more than the line above.
        if result.error.traceback and result.error.traceback.count('  File "') > 1:
            print_message(result.error.traceback)
        if result.commits:
            print_message(f"cleared run show {result.run_id} has every call")
    elif result.status == "waiting":
        card = result.cards[0]
        choices = " | ".join(list_texts(card.details, "choices"))
        print_message(f"{card.title}")
        print_message(f"It goes on when you answer: cleared queue answer {card.id} {choices}")
    elif dry_run:
        print_message(
            f"dry run: {count_records(result.records)}, {count_noun(len(result.cards), 'card')}; nothing was changed"
        )
    elif result.commits:
        print_message(f"{result.commits[0][:10]} {result.message}")
        if result.cards:
            print_message(f"{count_noun(len(result.cards), 'new card', 'new cards')} for review: cleared queue list")
    if result.exit_code:
        sys.stdout.flush()
        raise typer.Exit(int(result.exit_code))


def _print_entries(entries: list[dict[str, object]]) -> None:
    if entries:
        from cleared.cli.journal import print_entries

        print_entries(entries, sys.stderr)


def _print_staged_message(message: Mapping[str, Any]) -> None:
    print_message(f"would send: {message['subject']}")
    for line in [*str(message["text"]).splitlines(), *(f"{c['id']}  {c['title']}" for c in message["cards"])]:
        print_message(f"    {line}")


@app.command("list")
def list_agents(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the agents: what starts them, whether each is approved, and whether its working copy is another."""
    from cleared.runs.run_queries import read_agents

    agents = read_agents(open_host(workspace))
    if json:
        print_json([{k: v for k, v in a.items() if k != "source"} for a in agents])
        return
    print_table(
        ["name", "trigger", "schedule", "state", "checks", "description"],
        (
            (
                a["name"],
                ", ".join(a["trigger"]),
                a["schedule"],
                a["state"] + (", edited" if a["edited"] else ""),
                f"{len(a['findings'])} findings" if a["findings"] else "ok",
                a["description"],
            )
            for a in agents
        ),
        wrap=["description", "schedule", "trigger"],
        empty="There are no agents yet: put a script into agents/.",
    )
    for agent in agents:
        if agent["remedy"] and agent["state"] != "disabled":
            print_message(f"{agent['name']} is not run: {agent['approval']}. {agent['remedy']}")


@app.command("show")
def show_agent(name: AgentName, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show an agent: its header, what the checks say, its certificate, its script."""
    from cleared.gate.proposals.crash_certificate import read_certified_agent

    agent = read_certified_agent(open_host(workspace), name)
    if json:
        print_json(agent)
        return
    print_fields(
        (k, ", ".join(v) if isinstance(v, list) else v) for k, v in agent.items() if k not in ("source", "findings")
    )
    for f in agent["findings"]:
        print_line(f"{f['place']}: [{f['rule']}] {f['message']}. {f['remedy']}")
    print_line("")
    print_line(agent["source"].rstrip())


@app.command("certify")
def certify_agent(
    name: Annotated[str, typer.Argument(help="An agent, or an open proposal of one (P7).")],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Kill a run of an agent at each call and each step of its commit, and sign that nothing was lost.

    It is done in a copy of the workspace, over sample data: each time the next command mends what was begun, the agent
    runs again, and what lies there must be the same as if nobody had killed it. What it asks is answered there, each
    answer by itself. Takes a minute or more.
    """
    from cleared.gate.proposals.certification import certify_agent as do

    done = do(open_host(workspace), name)
    if json:
        print_json(asdict(done))
        return
    print_line(f"{done.agent} was {done.says} ({done.commit[:10]})")


@app.command("stats")
def show_stats(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", autocompletion=complete_agents, help="One agent; without, all that have run."),
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show how agents do: runs and errors, what they book without asking, and how often that was corrected.

    Of each agent's newest 1,000 runs. What was corrected, how sure it was beside what persons decided, and the time
    come from the traces of this machine.
    """
    from cleared.gate.agent_stats import read_stats

    stats = read_stats(open_host(workspace), name or "")
    if json:
        print_json([each.to_dict() for each in stats])
        return
    print_table(
        ["agent", "runs", "errors", "records", "asked", "without asking", "corrected", "ms"],
        [
            [
                each.agent,
                str(each.runs),
                str(each.errors),
                str(each.records),
                str(each.asked),
                _percent(each.without_asking),
                _percent(each.corrected),
                "" if each.milliseconds is None else str(each.milliseconds),
            ]
            for each in stats
        ],
        empty="No agent has run yet.",
    )
    if name is None:
        return
    for each in stats:
        months = [[str(row[key]) for key in ("month", "runs", "errors", "records", "asked")] for row in each.trend]
        print_table(["month", "runs", "errors", "records", "asked"], months, empty="")
        decided = [row for row in each.calibration if row["decided"]]
        rows = [[f"from {row['from']}", str(row["decided"]), str(row["agreed"]), row["share"]] for row in decided]
        print_table(
            ["sure", "decided", "as it was", "share"], rows, empty="No person has decided about its records yet."
        )


def _percent(share: Decimal | None) -> str:
    return "" if share is None else f"{share * 100:.1f} %"


@app.command("check")
def check_agent(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", autocompletion=complete_agents, help="The stem of its file in agents/."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Check every agent.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Check the working copy of an agent: every stage of the gate, nothing proposed.

    Changes nothing. Exits 1 where anything was found.
    """
    from cleared.cli.proposal_output import print_checks
    from cleared.gate.examination import check_agents
    from cleared.gate.lint_rules import result_to_dict
    from cleared.runs.run_queries import read_agents

    if (name is None) != all_:
        raise typer.BadParameter("give either NAME or --all")
    host = open_host(workspace)
    names, cannot = ([name], {}) if name is not None else _split_checkable(host, [a["name"] for a in read_agents(host)])
    reports = check_agents(host, names)
    failed = bool(cannot) or any(r.status == "failed" for stages in reports.values() for r in stages)
    for problem in cannot.values():
        print_message(f"cleared: {problem}")
    if json:
        checked = {
            n: {
                "passed": all(r.status == "passed" for r in stages),
                "stages": [result_to_dict(r) for r in stages],
            }
            for n, stages in reports.items()
        }
        print_json(checked | {n: {"passed": False, "stages": [], "error": problem} for n, problem in cannot.items()})
    else:
        for n, stages in reports.items():
            print_line(f"{n}: {'passed' if all(r.status == 'passed' for r in stages) else 'not passed'}")
            print_checks([result_to_dict(r) for r in stages])
    if failed:
        sys.stdout.flush()
        raise typer.Exit(1)


def _split_checkable(host: Host, names: list[str]) -> tuple[list[str], dict[str, str]]:
    """The agents that can be looked at, and why each of the others cannot: one of them is not to hide the rest."""
    checkable: list[str] = []
    cannot: dict[str, str] = {}
    for name in names:
        try:
            file = host.root / host.layout.agent_path(name)
        except UsageError as error:
            cannot[name] = str(error)
            continue
        if file.is_file() and not file.is_symlink():
            checkable.append(name)
        else:
            cannot[name] = f"agents/{name}.py is missing, or not a file; it was not checked"
    return checkable, cannot
