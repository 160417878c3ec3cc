"""What a change would have done, in groups: each with its number, its amounts and an example, and a table on demand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from cleared.base.short_text import list_lines
from cleared.base.terminal import count_noun
from cleared.cards.card_section import CardSection
from cleared.gate.framed_text import frame_text
from cleared.gate.impact import describe_sides, group_effects, name_group
from cleared.gate.proposals.change_text import describe_last_runs
from cleared.gate.run_outputs import KINDS

_COLUMNS: Final = ("Id", "Date", "What", "Amount", "Before", "After")
_MOST_ROWS: Final = 200
_MOST_GROUPS: Final = 12
_MOST_LINES: Final = 40
_FOLDED: Final = ("result", "log")
"""Kinds of outputs that are opened on demand where an agent changes."""


def list_effects(behaviour: Mapping[str, Any], new_agents: Collection[str]) -> Iterator[CardSection]:
    """The effects of changed agents over their past runs; over sample data where there were none, and those of new
    agents."""
    history, sample = behaviour["history"], behaviour["synthetic"]
    agents = {str(each.get("agent", "")) for each in (*sample["entries"], *sample.get("outputs", ()))}
    shown = agents & set(new_agents) if history["runs"] else agents
    over = f"over the {describe_last_runs(history['runs'])}"
    yield from _make_section(f"What it would have done, {over}", history, None, ())
    yield from _make_section("What it would do, in dry runs", sample, shown, new_agents)


def _make_section(
    title: str, impact: Mapping[str, Any], agents: Collection[str] | None, new_agents: Collection[str]
) -> Iterator[CardSection]:
    """``agents``: those of which it is; None: all."""
    entries, outputs = (
        [each for each in impact.get(key, ()) if agents is None or str(each.get("agent", "")) in agents]
        for key in ("entries", "outputs")
    )
    parts, lines = [*list_groups(entries)], []
    for output in outputs:
        part = _describe_output(output)
        if part.name in _FOLDED and str(output.get("agent", "")) not in new_agents:
            parts.append(part)
        else:
            lines += [f"{part.title}:", *part.lines]
    if parts or lines:
        yield CardSection(title, tuple(lines), parts=tuple(parts), name="effects")


def list_groups(entries: Iterable[Mapping[str, Any]]) -> Iterator[CardSection]:
    """The groups of differences, the largest first."""
    groups = group_effects(entries)
    agents = {str(members[0].get("agent", "")) for members in groups}
    for members in groups[:_MOST_GROUPS]:
        of = f"{members[0].get('agent', '')}: " if len(agents) > 1 else ""
        yield _describe_group(f"{of}{name_group(members)}", members)
    if left := groups[_MOST_GROUPS:]:
        rest = [entry for members in left for entry in members]
        yield _describe_group(f"{len(rest)} more, in {len(left)} groups", rest)


def _describe_group(title: str, members: list[Mapping[str, Any]]) -> CardSection:
    first = members[0]
    example = " ".join(filter(None, (str(first[key])[:60] for key in ("date", "description", "amount"))))
    shown = f"{title}{_describe_amounts(members)}"
    rows = [
        (str(e["entry_id"] or ""), str(e["date"]), str(e["description"]), str(e["amount"]), *describe_sides(e))
        for e in members[:_MOST_ROWS]
    ]
    kept = [at for at in range(len(_COLUMNS)) if any(row[at] for row in rows)]
    more = len(members) - _MOST_ROWS
    return CardSection(
        f"{shown}; for example {example}" if example else shown,
        (f"… and {more} more: cleared agent diff --json has all",) if more > 0 else (),
        tuple(tuple(row[at] for at in kept) for row in rows),
        tuple(_COLUMNS[at] for at in kept),
    )


def _describe_amounts(members: Iterable[Mapping[str, Any]]) -> str:
    """``, 3.50 to 18.90``."""
    amounts = []
    for entry in members:
        with suppress(InvalidOperation):
            amounts.append(Decimal(str(entry["amount"])))
    if not amounts:
        return ""
    low, high = min(amounts), max(amounts)
    return f", {low}" if low == high else f", {low} to {high}"


def _describe_output(output: Mapping[str, Any]) -> CardSection:
    """What a person would see otherwise: before and after, each line in a frame, as a script wrote it."""
    before, after = ([str(text) for text in output[key]] for key in ("before", "after"))
    kind = str(output["kind"])
    title = KINDS.get(kind, kind)
    times = f", in {count_noun(output['runs'], 'run')}" if output["runs"] > 1 else ""
    times += f"; in {count_noun(output['more'], 'more run')} it is another" if output.get("more") else ""
    if not before or not after:
        end = "" if after else ", no more"
        return CardSection(f"{title}{end}{times}", tuple(_frame_texts(after or before)), name=kind)
    lines = ("before:", *_frame_texts(before), "from then on:", *_frame_texts(after))
    return CardSection(f"{title}{times}, before and after", lines, name=kind)


def _frame_texts(texts: Iterable[str]) -> list[str]:
    lines = [line for text in texts for line in frame_text(text)]
    return list_lines(lines, _MOST_LINES, "  … and {} more")
