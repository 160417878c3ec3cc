"""What a person is shown of a proposal and of its checks, and how it is approved as it was shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from cleared.base.terminal import count_noun, print_line, print_message
from cleared.cards.card_section import CardSection, list_lines, list_part
from cleared.changes.host import Host
from cleared.cli.showing import Subject, note_part, note_shown
from cleared.trust.person_only import current_job

if TYPE_CHECKING:
    from cleared.gate.proposals.shown_proposal import ShownProposal


_MOST_ROWS: Final = 20
"""Differences of a group that are printed."""


def note_proposed(host: Host, shown: ShownProposal, json: bool) -> None:
    """Keep that its card is printed; and of a person's own edit that it was made here, which in a script is enough."""
    subject = describe_subject(shown)
    note_card(host, subject, json)
    if shown.is_made_here and shown.proposal.by_human and not current_job():
        note_shown(host.root, subject.digest, "made")


def note_card(host: Host, subject: Subject, json: bool) -> None:
    """Keep that its card was printed, with the words of who proposed it."""
    for part in ("card", "message"):
        note_part(host.root, subject, part, json)


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
            "card": lambda: print_card(shown, has_message=False),
            "code": lambda: print_line("\n".join(["", *shown.code_lines])),
            "message": lambda: print_sections(_find_message(shown)),
        },
    )


def print_impact(impact: Mapping[str, Any]) -> None:
    """Differences on past runs, at most 20 of them."""
    from cleared.gate.impact import describe_not_comparable, example_line

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


def print_card(shown: ShownProposal, *, is_whole: bool = False, has_message: bool = True) -> None:
    """Its card without the code. ``is_whole``: with what a page opens on demand, such as each difference."""
    proposal = shown.proposal
    print_line(f"{proposal.id}  {proposal.title}  ({proposal.status})")
    message = _find_message(shown)
    print_sections([each for each in shown.card if not each.is_code and each not in message], is_whole=is_whole)
    if has_message:
        print_sections(message)


def _find_message(shown: ShownProposal) -> list[CardSection]:
    return [each for each in shown.card if each.name == "message"]


def print_sections(sections: Iterable[CardSection], *, is_whole: bool = False) -> None:
    """Parts of a card below their titles."""
    for section in sections:
        if not is_whole or not section.parts:
            for line in list_lines([section]):
                print_line(f"  {line}")
            continue
        for line in list_lines([replace(section, parts=())]):
            print_line(f"  {line}")
        for line in (line for part in section.parts for line in list_part(part, _MOST_ROWS)):
            print_line(f"    {line}")


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
