"""What a person is shown of a proposal and of its checks, and how it is approved as it was shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cleared.base.terminal import count_noun, print_line, print_message
from cleared.changes.host import Host
from cleared.cli.showing import Subject, note_part, note_shown
from cleared.trust.person_only import current_job

if TYPE_CHECKING:
    from cleared.gate.proposals.shown_proposal import ShownProposal


def note_proposed(host: Host, shown: ShownProposal, json: bool) -> None:
    """Keep that its card is printed; and of a person's own edit that it was made here, which in a script is enough."""
    subject = describe_subject(shown)
    note_part(host.root, subject, "card", json)
    if shown.is_made_here and shown.proposal.by_human and not current_job():
        note_shown(host.root, subject.digest, "made")


def describe_subject(shown: ShownProposal) -> Subject:
    """A proposal, to be approved: its card, and its code."""
    proposal = shown.proposal
    return Subject(
        name=proposal.folder,
        title=proposal.id,
        digest=shown.digest,
        hex=proposal.digest.removeprefix("sha256:"),
        command=f"cleared agent approve {proposal.id}-",
        question=f"Make {proposal.id} live?",
        parts={
            "card": lambda: print_card(proposal.to_dict()),
            "code": lambda: print_line("\n".join(["", *shown.code_lines])),
        },
    )


def print_impact(impact: Mapping[str, Any]) -> None:
    """Differences on past runs, at most 20 of them."""
    from cleared.gate.impact import describe_not_comparable
    from cleared.gate.proposals.proposal_text import example_line

    for warning in impact["warnings"]:
        print_line(f"! {warning}")
    for failure in impact["failed"]:
        print_line(f"! it fails over {failure}")
    counts = [f"{impact[c]} {c}" for c in ("changed", "added", "removed") if impact[c]]
    runs = impact["runs"]
    over = f"Over {count_noun(runs, 'past run')}: {', '.join(counts) or 'the same effects'}."
    print_line(over if runs else "There are no past runs to compare with.")
    if impact["not_comparable"]:
        print_line(describe_not_comparable(impact["not_comparable"]))
    for entry in impact["entries"][:20]:
        print_line(example_line(entry))
    if len(impact["entries"]) > 20:
        print_line(f"  … and {len(impact['entries']) - 20} more (--json has all)")


def print_card(shown: Mapping[str, Any]) -> None:
    print_line(f"{shown['id']}  {shown['title']}  ({shown['status']})")
    for line in shown["card"]:
        print_line(f"  {line}")


def print_checks(results: list[dict[str, Any]]) -> None:
    """Each check with its findings."""
    from cleared.gate.lint_rules import TITLES

    for r in results:
        mark = {"passed": "✓", "failed": "✗"}.get(r["status"], "–")
        print_line(f"  {mark} {TITLES.get(r['stage'], r['stage'])}" + (f" ({r['reason']})" if r["reason"] else ""))
        for kind, lead in (("findings", ""), ("warnings", "warning: ")):
            for f in r[kind]:
                where = ":".join(str(p) for p in (f["file"], f["line"], f["column"]) if p)
                print_line(f"      {where}: {lead}[{f['rule']}] {f['message'].rstrip('.')}. {f['remedy']}")


def note_edited(path: str) -> None:
    """Say that a working copy is somebody's edit, and stays."""
    print_message(f"Your working copy of {path} is another: it is left as it is, and is not approved.")
