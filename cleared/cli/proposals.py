"""``cleared agent new|propose|diff|approve|reject|history|rollback|disable|enable``: how scripts change."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import replace

from cleared.base.terminal import count_noun, print_json, print_line, print_message, print_table
from cleared.cli import shadow
from cleared.cli.command_groups import new_group
from cleared.cli.completion import complete_agents, complete_changes
from cleared.cli.options import (
    AgentName,
    JsonOption,
    ProposalArgument,
    ReasonOption,
    WorkspaceOption,
    open_host,
    open_host_once,
)
from cleared.cli.proposal_output import (
    describe_subject,
    note_card,
    note_edited,
    note_proposed,
    print_card,
    print_checks,
    print_impact,
)
from cleared.cli.showing import has_terminal, note_part, taking_shown

if TYPE_CHECKING:
    from cleared.changes.host import Host
    from cleared.gate.proposals.proposal import Proposal

PROPOSAL_ID = r"[Pp][0-9]+(-[0-9a-f]{8,64})?"


app = new_group()


@app.command("new")
def create_agent(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The stem of its file in agents/.")] = None,
    template: Annotated[
        str, typer.Option("--template", metavar="TEMPLATE", help="What to begin with (--list shows them).")
    ] = "blank",
    list_: Annotated[bool, typer.Option("--list", help="List the templates.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Write a new agent's working copy from a template, with a commented header. Nothing is proposed yet."""
    from cleared.gate.proposals.agent_templates import create_agent, load_templates

    host = open_host(workspace)
    if list_:
        templates = load_templates(host)
        if json:
            print_json([{"name": n, "about": t.description} for n, t in templates.items()])
        else:
            print_table(
                ["template", "what it does"],
                ((n, t.description) for n, t in templates.items()),
                wrap=["what it does"],
                empty="",
            )
        return
    if name is None:
        raise typer.BadParameter("give the NAME of the new agent, or --list")
    path = create_agent(host, name, template)
    if json:
        print_json({"path": path, "template": template})
        return
    print_line(path)
    print_message(f"Edit it, then: cleared agent check {quote(name)}, and cleared agent propose {quote(name)}.")


@app.command("propose")
def propose_changes(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME…",
            autocompletion=complete_agents,
            help="Agents by name; other files by path: scripts/…, config.yaml, tests/cases/…",
        ),
    ],
    message: Annotated[
        str, typer.Option("-m", "--message", metavar="TEXT", help="Why, in your words; shown on the card as such.")
    ] = "",
    author: Annotated[
        str | None,
        typer.Option("--author", metavar="NAME", help="The program or model that wrote it, if it was not you."),
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Put changed scripts through the gate, and propose them with a card that says what would change.

    The shared scripts they run come along where they have changed. The live scripts stay as they are until the
    proposal is approved. Exits 1 with all findings where it does not pass; then nothing is proposed.
    """
    from cleared.gate.proposals.author import Author
    from cleared.gate.proposals.shown_proposal import read_shown_proposal
    from cleared.gate.proposals.submission import GateFailed, propose_changes

    if author is not None and not author.strip():
        raise typer.BadParameter("it is empty", param_hint="--author")
    host = open_host(workspace)
    try:
        proposal, is_new = propose_changes(
            host, targets, message=message, author=Author(author, is_human=False) if author else None
        )
    except GateFailed as error:
        if json:
            print_json(
                {
                    "error": {"type": "GateFailed", "message": error.message, "exit_code": 1},
                    **error.report.to_dict(),
                    "findings": [_finding_data(f) for f in error.report.findings],
                }
            )
        else:
            _print_report(error.report.to_dict()["stages"])
        print_message(f"cleared: {error}")
        sys.stdout.flush()
        raise typer.Exit(1) from None
    shown = read_shown_proposal(host, proposal.folder)
    note_proposed(host, shown, json)
    if json:
        print_json(shown.to_dict())
        return
    print_card(shown)
    print_message(
        f"{'Proposed' if is_new else 'Proposed before'} as {proposal.id}. "
        f"Next: cleared agent diff {proposal.id}, then cleared agent approve {proposal.id} "
        f"or reject {proposal.id} --reason …"
    )


def _finding_data(finding: Any) -> dict[str, Any]:
    from cleared.gate.lint_rules import finding_to_dict

    return finding_to_dict(finding)


@app.command("diff")
def show_diff(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT", autocompletion=complete_changes, help="A proposal (P7), or an agent: its working copy."
        ),
    ],
    impact: Annotated[
        bool, typer.Option("--impact", help="Of a proposal: what it would have done on your books, not its code.")
    ] = False,
    runs: Annotated[int, typer.Option("--runs", min=1, max=1000, help="Of an agent: over how many past runs.")] = 50,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Compare a change with what is approved: its code, or what it would have done on your own books, by entry.

    Of an agent's working copy always the latter: both versions are rehearsed over its past runs, on the books and
    files of that time. Changes nothing.
    """
    from cleared.gate.examination import compare_agent
    from cleared.gate.proposals.shown_proposal import read_shown_proposal
    from cleared.gate.shadow import describe_shadow, read_shadows

    host = open_host(workspace)
    if not re.fullmatch(PROPOSAL_ID, what):
        impact_data = compare_agent(host, what, runs)
        data = {**impact_data.to_dict(), "warnings": impact_data.find_warnings()}
        if json:
            print_json(data)
        else:
            print_impact(data)
        return
    found = read_shown_proposal(host, what)
    subject = describe_subject(found)
    if json:
        behaviour = found.proposal.data["behaviour"]
        print_json({"id": found.proposal.id, "behaviour": behaviour, "code": dict(found.code)})
    elif impact:
        print_card(found, is_whole=True)
        note_card(host, subject, json)
        if (shadow := read_shadows(host).get(found.proposal.folder)) is not None:
            print_line("\n".join(("", *describe_shadow(shadow))))
    else:
        for text in found.code.values():
            print_line(text.rstrip("\n"))
        note_part(host.root, subject, "code", json)


def show_proposal(host: Host, name: str, *parts: str) -> None:
    """Print parts of a proposal (``card``, ``code``, ``message``), and keep that this terminal has shown them."""
    from cleared.gate.proposals.shown_proposal import read_shown_proposal

    subject = describe_subject(read_shown_proposal(host, name))
    for part in parts:
        subject.parts[part]()
        note_part(host.root, subject, part)


def _print_report(stages: Mapping[str, Any]) -> None:
    """Which stages passed; what they found is in the error."""
    for file, results in stages.items():
        print_line(f"{file}: {'passed' if all(r['status'] == 'passed' for r in results) else 'not passed'}")
        print_checks([{**r, "findings": []} for r in results])


@app.command("approve")
def approve_proposal(proposal: ProposalArgument, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Make a proposal live: one commit, with your signature. Refused where anything changed since it was examined.

    On a terminal it shows what was not shown there yet, and asks. In a script name what you have looked at by the
    beginning of its digest, P7-1a2b3c4d; P7 alone takes only your own edit, which was proposed on this machine.
    """
    take_proposal(open_host(workspace, tells_waiting=False), proposal, json)


def take_proposal(host: Host, proposal: str, json: bool = False, *, asks_always: bool = False) -> None:
    """Approve it as it is shown. ``asks_always``: a person is asked also where this terminal has shown all of it."""
    from cleared.gate.proposals.approval import approve_proposal as do
    from cleared.gate.proposals.proposal import split_name
    from cleared.gate.proposals.shown_proposal import read_shown_proposal

    shown = read_shown_proposal(host, proposal)
    if shown.proposal.decision is None:
        typed = split_name(proposal)[1]
        subject = replace(describe_subject(shown), asks_always=asks_always)
        with taking_shown(host.root, subject, typed, json=json):
            outcome = do(host, shown.proposal.folder, _type_number(shown.proposal, typed, json))
    else:
        outcome = do(host, shown.proposal.folder)
    if json:
        print_json(
            {
                "id": outcome.proposal.id,
                "status": "approved",
                "commit": outcome.commit,
                "files": outcome.proposal.paths,
                "edited": list(outcome.edited),
            }
        )
    elif outcome.commit is None:
        print_line(f"{outcome.proposal.id} was approved already; nothing was to be done.")
    else:
        print_line(f"{outcome.proposal.id} is live: {', '.join(outcome.proposal.paths)} ({outcome.commit[:10]})")
        for path in outcome.edited:
            note_edited(path)
        if outcome.next_step:
            print_message(outcome.next_step)


def _type_number(proposal: Proposal, typed: str, json: bool) -> str:
    """The number of a proposal, typed by the person where no dry run shows all that it may do. ``typed``: the beginning
    of its digest; who names it by that, or approves an edit of his own in a script, has named it."""
    if not proposal.has_unreached or typed or not has_terminal(json):
        return proposal.id
    question = f"No dry run showed all that it may do. Type {proposal.id} to approve it all the same"
    answer: str = typer.prompt(question, default="", show_default=False, err=True)
    return answer


@app.command("reject")
def reject_proposal(
    proposal: ProposalArgument,
    reason: ReasonOption = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Decide against a proposal. The live scripts stay; the reason is kept, and told if the same is proposed again."""
    from cleared.gate.proposals.approval import reject_proposal as do

    outcome = do(open_host(workspace), proposal, reason)
    if json:
        print_json({"id": outcome.proposal.id, "status": "rejected", "commit": outcome.commit, "reason": reason})
    else:
        print_line(f"{outcome.proposal.id} is rejected ({str(outcome.commit)[:10]})")


@app.command("history")
def show_agent_history(name: AgentName, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Everything that was proposed and decided about an agent, oldest first."""
    from cleared.gate.proposals.proposal_history import read_history

    versions = read_history(open_host(workspace), name)
    if json:
        print_json(versions)
        return
    columns = ["when", "what", "proposal", "by", "version", "about"]
    keys = ("at", "event", "proposal", "by", "version", "about")
    print_table(
        columns,
        ([str(e[k])[:16].replace("T", " ") if k == "at" else " ".join(e[k].split()) for k in keys] for e in versions),
        wrap=["about"],
        empty="Nothing was ever decided about it.",
    )


@app.command("rollback")
def roll_back_agent(
    name: AgentName,
    reason: ReasonOption = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Bring back the version before, and quarantine the live one: it runs no more until it is approved again.

    The entries it posted stay; they are listed, with the command that voids them.
    """
    from cleared.gate.proposals.rollback import roll_back_script as do

    result = do(open_host_once(workspace, json=json), name, reason)
    if json:
        print_json(
            {
                "path": result.path,
                "quarantined": result.quarantined,
                "restored": result.restored or None,
                "commit": result.commit,
                "kept": result.kept_text,
                "edited": result.edited,
                "entries": result.entries,
                "void": [f"cleared journal void {e['entry_id']} --reason …" for e in result.entries],
            }
        )
        return
    short, commit = result.quarantined.removeprefix("sha256:")[:12], result.commit[:10]
    if result.restored:
        before = result.restored.removeprefix("sha256:")[:12]
        print_line(f"{result.path} is as in {before} again; {short} is quarantined ({commit})")
    else:
        print_line(f"{result.path} is gone: there was no version before {short}, which is quarantined ({commit})")
    print_message(f"Its text is kept as {result.kept_text}.")
    if not result.restored:
        print_message(
            f"To have it back: git show {commit}~1:{result.path} > {result.path}, "
            "then cleared agent propose and approve."
        )
    if result.edited:
        note_edited(result.path)
    if result.entries:
        count = count_noun(len(result.entries), "entry that stands", "entries that stand")
        print_message(f"It posted {count}. To void one: cleared journal void ID --reason …")
        print_table(
            ["entry", "date", "amount", "status", "description"],
            ([e["entry_id"], e["date"], e["amount"], e["status"], e["description"]] for e in result.entries),
            right=["amount"],
            wrap=["description"],
            empty="",
        )


@app.command("disable")
def disable_agent(
    name: AgentName, reason: ReasonOption = "", json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Disable an agent: no trigger and no person starts it until it is enabled. Dry runs still work.

    What triggers it meanwhile waits. The approval of its script stays as it is.
    """
    _switch_agent(name, reason, json, workspace, is_enabled=False)


@app.command("enable")
def enable_agent(
    name: AgentName, reason: ReasonOption = "", json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Enable an agent that was disabled: a signed record, as every approval is. What waited for it is run."""
    _switch_agent(name, reason, json, workspace, is_enabled=True)


def _switch_agent(name: str, reason: str, json: bool, workspace: Path | None, *, is_enabled: bool) -> None:
    from cleared.gate.proposals.agent_switch import switch_agent

    commit = switch_agent(open_host(workspace), name, is_enabled=is_enabled, reason=reason)
    if json:
        print_json({"agent": name, "enabled": is_enabled, "commit": commit})
    else:
        print_line(f"{name} is {'enabled' if is_enabled else 'disabled'} ({commit[:10]}).")


app.add_typer(shadow.app, name="shadow", help="Run a proposed version beside the live one")
