"""``cleared agent new|propose|diff|approve|reject|history|rollback``, ``cleared test``: the gate."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, host_of
from cleared.cli.output import out, out_json, say, table

test_app = typer.Typer(help="Regression cases: what agents must go on doing.", no_args_is_help=True,
                       rich_markup_mode=None)  # fmt: skip

_PROPOSAL = re.compile(r"[Pp][0-9]+(-[0-9a-f]{8})?")
PROPOSAL = Annotated[str, typer.Argument(metavar="PROPOSAL", help="Such as P7 (cleared queue list).")]
NAME = Annotated[str, typer.Argument(metavar="NAME", help="The stem of its file in agents/.")]


def register(app: typer.Typer) -> None:
    """Put the agent commands into the group ``cleared agent``."""
    for name, function in (
        ("new", new), ("propose", propose), ("diff", diff), ("approve", approve), ("reject", reject),
        ("history", history), ("rollback", rollback),
    ):  # fmt: skip
        app.command(name)(function)


def new(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The stem of its file in agents/.")] = None,
    template: Annotated[
        str, typer.Option("--template", metavar="TEMPLATE", help="What to begin with (--list shows them).")
    ] = "blank",
    list_: Annotated[bool, typer.Option("--list", help="List the templates.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Write a new agent's working copy from a template, with a commented header. Nothing is proposed yet."""
    from cleared.proposals.agent_templates import new_agent, templates

    host = host_of(workspace)
    if list_:
        found = templates(host)
        if json:
            out_json([{"name": n, "about": t.about} for n, t in found.items()])
        else:
            table(["template", "what it does"], ((n, t.about) for n, t in found.items()), empty="")
        return
    if name is None:
        raise typer.BadParameter("give the NAME of the new agent, or --list")
    path = new_agent(host, name, template)
    if json:
        out_json({"path": path, "template": template})
        return
    out(path)
    say(f"Edit it, then: cleared agent check {name}, and cleared agent propose {name}.")


def propose(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME…", help="Agents by name; other files by path: scripts/…, config.yaml, tests/cases/…"
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
    from cleared.app import propose as do
    from cleared.proposals.submission import GateFailed

    if author is not None and not author.strip():
        raise typer.BadParameter("it is empty", param_hint="--author")
    try:
        proposal, is_new = do(host_of(workspace), targets, message=message, author=author)
    except GateFailed as error:
        if json:
            out_json({"error": {"type": "GateFailed", "message": error.message, "exit_code": 1},
                      **error.report.data(), "findings": [_finding(f) for f in error.report.findings]})  # fmt: skip
        else:
            _show_report(error.report.data()["stages"])
        say(f"cleared: {error}")
        sys.stdout.flush()
        raise typer.Exit(1) from None
    if json:
        out_json(proposal.shown())
        return
    _show_card(proposal.shown())
    say(f"{'Proposed' if is_new else 'Proposed before'} as {proposal.id}. "
        f"Next: cleared agent diff {proposal.id}, then cleared agent approve {proposal.id} "
        f"or reject {proposal.id} --reason …")  # fmt: skip


def _finding(finding: Any) -> dict[str, Any]:
    from cleared.gate.check_result import finding_data

    return finding_data(finding)


def diff(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="A proposal (P7), or an agent: its working copy.")],
    behaviour: Annotated[
        bool, typer.Option("--behaviour", help="Of a proposal: what it would have done on your books, not its code.")
    ] = False,
    runs: Annotated[int, typer.Option("--runs", min=1, max=1000, help="Of an agent: over how many past runs.")] = 50,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Compare a change with what is approved: its code, or what it would have done on your own books, by entry.

    Of an agent's working copy always the latter: both versions are rehearsed over its past runs, on the books and
    files of that time. Changes nothing.
    """
    from cleared.app import compare
    from cleared.proposals.proposal_history import code_diff, one

    host = host_of(workspace)
    if not _PROPOSAL.fullmatch(what):
        found = compare(host, what, runs)
        data = {**found.data(), "warnings": found.warnings()}
        if json:
            out_json(data)
        else:
            show_behaviour(data)
        return
    shown = one(host, what)
    texts = code_diff(host, what)
    if json:
        out_json({"id": shown["id"], "behaviour": shown["behaviour"], "code": texts})
    elif behaviour:
        _show_card(shown)
        out("")
        show_behaviour({**shown["behaviour"]["history"], "warnings": shown["behaviour"]["warnings"]})
    else:
        for text in texts.values():
            out(text.rstrip("\n"))


def show_behaviour(found: Mapping[str, Any]) -> None:
    """Differences on past runs, at most 20 of them."""
    from cleared.proposals.proposal_text import example

    for warning in found["warnings"]:
        out(f"! {warning}")
    for failure in found["failed"]:
        out(f"! it fails over {failure}")
    counts = [f"{found[c]} {c}" for c in ("changed", "added", "removed") if found[c]]
    runs = found["runs"]
    over = f"Over {runs} past run{'s' if runs != 1 else ''}: {', '.join(counts) or 'the same effects'}."
    out(over if runs else "There are no past runs to compare with.")
    if found["not_comparable"]:
        out(f"{len(found['not_comparable'])} more cannot be compared: their files are not in the repository.")
    for entry in found["entries"][:20]:
        out(example(entry))
    if len(found["entries"]) > 20:
        out(f"  … and {len(found['entries']) - 20} more (--json has all)")


def _show_card(shown: Mapping[str, Any]) -> None:
    out(f"{shown['id']}  {shown['title']}  ({shown['status']})")
    for line in shown["card"]:
        out(f"  {line}")


def _show_report(stages: Mapping[str, Any]) -> None:
    """Which stages passed; what they found is in the error."""
    for file, results in stages.items():
        out(f"{file}: {'passed' if all(r['status'] == 'passed' for r in results) else 'not passed'}")
        show_stages([{**r, "findings": []} for r in results])


def show_stages(results: list[dict[str, Any]]) -> None:
    """Each stage with its findings."""
    for r in results:
        mark = {"passed": "✓", "failed": "✗"}.get(r["status"], "–")
        out(f"  {mark} {r['stage']}" + (f" ({r['reason']})" if r["reason"] else ""))
        for kind, lead in (("findings", ""), ("warnings", "warning: ")):
            for f in r[kind]:
                where = ":".join(str(p) for p in (f["file"], f["line"], f["column"]) if p)
                out(f"      {where}: {lead}[{f['rule']}] {f['message'].rstrip('.')}. {f['remedy']}")


def approve(proposal: PROPOSAL, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Make a proposal live: one commit, with your signature. Refused where anything changed since it was examined."""
    from cleared.app import approve as do

    outcome = do(host_of(workspace), proposal)
    if json:
        out_json({"id": outcome.proposal.id, "status": "approved", "commit": outcome.commit,
                  "files": outcome.proposal.paths, "edited": list(outcome.edited)})  # fmt: skip
    elif outcome.commit is None:
        out(f"{outcome.proposal.id} was approved already; nothing was to be done.")
    else:
        out(f"{outcome.proposal.id} is live: {', '.join(outcome.proposal.paths)} ({outcome.commit[:10]})")
        for path in outcome.edited:
            _say_edited(path)


def _say_edited(path: str) -> None:
    say(f"Your working copy of {path} is another: it is left as it is, and is not approved.")


def reject(
    proposal: PROPOSAL,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept with it.")] = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Decide against a proposal. The live scripts stay; the reason is kept, and told if the same is proposed again."""
    from cleared.proposals.approval import reject as do

    outcome = do(host_of(workspace), proposal, reason)
    if json:
        out_json({"id": outcome.proposal.id, "status": "rejected", "commit": outcome.commit, "reason": reason})
    else:
        out(f"{outcome.proposal.id} is rejected ({str(outcome.commit)[:10]})")


def history(name: NAME, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Everything that was proposed and decided about an agent, oldest first."""
    from cleared.proposals.proposal_history import chronicle

    found = chronicle(host_of(workspace), name)
    if json:
        out_json(found)
        return
    columns = ["when", "what", "proposal", "by", "version", "about"]
    keys = ("at", "event", "proposal", "by", "version", "about")
    table(columns, ([str(e[k])[:16].replace("T", " ") if k == "at" else e[k] for k in keys] for e in found),
          empty="Nothing was ever decided about it.")  # fmt: skip


def rollback(
    name: NAME,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept with the quarantine.")] = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Bring back the version before, and quarantine the live one: it runs no more until it is approved again.

    The entries it posted stay; they are listed, with the command that voids them.
    """
    from cleared.proposals.rollback import rollback as do

    done = do(host_of(workspace), name, reason)
    if json:
        out_json({"path": done.path, "quarantined": done.quarantined, "restored": done.to or None,
                  "commit": done.commit, "kept": done.kept, "edited": done.edited, "entries": done.entries,
                  "void": [f"cleared journal void {e['entry_id']} --reason …" for e in done.entries]})  # fmt: skip
        return
    short = done.quarantined.removeprefix("sha256:")[:12]
    if done.to:
        out(f"{done.path} is as in {done.to.removeprefix('sha256:')[:12]} again; {short} is quarantined "
            f"({done.commit[:10]})")  # fmt: skip
    else:
        out(f"{done.path} is gone: there was no version before {short}, which is quarantined ({done.commit[:10]})")
    say(f"Its text is kept as {done.kept}.")
    if not done.to:
        say(f"To have it back: git show {done.commit[:10]}~1:{done.path} > {done.path}, then cleared agent propose and "
            "approve.")  # fmt: skip
    if done.edited:
        _say_edited(done.path)
    if done.entries:
        count = f"{len(done.entries)} {'entry that stands' if len(done.entries) == 1 else 'entries that stand'}"
        say(f"It posted {count}. To void one: cleared journal void ID --reason …")
        table(["entry", "date", "amount", "status", "description"],
              ([e["entry_id"], e["date"], e["amount"], e["status"], e["description"]] for e in done.entries),
              right=["amount"], empty="")  # fmt: skip


@test_app.command("add")
def test_add(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A committed run (cleared run list).")],
    why: Annotated[str, typer.Option("-m", "--message", metavar="TEXT", help="What must stay so.")] = "",
    correct: Annotated[
        list[str] | None,
        typer.Option("--correct", metavar="ENTRY=ACCOUNT", help="What should have been; only that is held to then."),
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Keep what a run did as a regression case: a change that does otherwise is blocked from now on."""
    from cleared.app import add_case

    corrections = {}
    for text in correct or ():
        entry, _, account = text.partition("=")
        if not account.isdecimal():
            raise typer.BadParameter(f"{text!r} is not ENTRY=ACCOUNT", param_hint="--correct")
        corrections[entry] = int(account)
    case, commit = add_case(host_of(workspace), run, why=why, corrections=corrections)
    if json:
        out_json({"name": case.name, "path": case.path, "agent": case.agent, "commit": commit})
    else:
        out(f"{case.path} ({commit[:10]})")


@test_app.command("list")
def test_list(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the regression cases, and whether each is as it was approved."""
    from cleared.proposals.proposal_history import cases

    found = cases(host_of(workspace))
    if json:
        out_json(found)
        return
    table(["case", "agent", "run", "state", "why"],
          ((c["name"], c["agent"], c["run"], c["state"], c["why"]) for c in found),
          empty="There are no cases yet: cleared test add RUN.")  # fmt: skip
