"""What a card holds, in words and tables: for ``cleared queue show``, and for kinds of cards that have no view of
their own. It takes any kind, so a new one needs nothing here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cleared.base.terminal import escape_text
from cleared.cards.card import Card, list_texts
from cleared.cards.card_section import CardSection
from cleared.cards.kinds import AGREEMENT, kind_named
from cleared.domains.installed_domains import load_comparisons
from cleared.domains.record_comparison import RecordComparison

MAX_ROWS: Final = 50
_MAX_PREVIEWED: Final = 5
"""Records of each domain that an answer would make, and that are shown."""
_LABELS: Final = {
    "retry": "to try again",
    "on_timeout": "if nobody answers",
    "due": "answer until",
    "default": "default answer",
    "instead_of": "asked before",
    "omitted": "rows left out",
    "sha256": "SHA-256",
    "more_files": "files not named here",
}
"""Details whose name is not their label."""
_REASONS: Final = ("cause", "remedy")
_FOR_PROGRAMS: Final = ("ticket", "key", "event_id", "series")
_ROWS_FOR_PROGRAMS: Final = ("line",)


def card_fields(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A card, as ``read_card`` gives it, as labels and values; what needs more room is in ``detail_tables``."""
    kind, details = kind_named(card["kind"]), card["details"]
    answers = list_texts(details, "choices") or [_answer_text(*pair) for pair in kind.answers.items()]
    first = card["agreed"][-1] if card["agreed"] else None
    is_open = card["status"] == "open"
    fields = [
        ("card", card["id"]),
        ("kind", f"{card['kind']}: {kind.meaning}"),
        ("title", card["title"]),
        ("entry", card["entry_id"]),
        ("agent", card["agent"]),
        ("run", card["run_id"]),
        ("since", card["created_at"]),
        (
            "status",
            card["status"]
            if is_open
            else f"{card['status']}: {card['resolution']}, by {card['resolved_by']} at {card['resolved_at']}",
        ),
        ("in its place", card.get("replaced_by")),
        ("cannot be decided", card["held"]),
        (
            "first of two",
            f"{first.get('by')} decided {first.get('says')} ({first.get('at')})" if first and is_open else None,
        ),
        (
            "another agrees",
            f"cleared queue agree {card['id']}" if first and is_open and kind is not AGREEMENT else None,
        ),
        ("answers", ", ".join(answers) if is_open else None),
        ("settled by", kind.settled_by if is_open else None),
        *detail_fields(details, card["title"]),
    ]
    return [(label, str(value)) for label, value in fields if value]


def detail_fields(details: Mapping[str, Any], title: str) -> Iterator[tuple[str, str]]:
    """Details that fit in one line, as labels and values; without reasons that the card's title gives already."""
    for name, value in details.items():
        if name.startswith("_") or name in _FOR_PROGRAMS or name == "choices" or _is_table(value):
            continue
        if name in _REASONS and isinstance(value, str) and value.rstrip(".") in title:
            continue
        if name == "event" and isinstance(value, Mapping):
            yield "event", describe_event(value)
        elif name != "futures" and value not in ("", None, [], {}):
            yield _label(name), _text(value)


def detail_tables(details: Mapping[str, Any]) -> Iterator[CardSection]:
    """Details that are tables, and what each answer to a question would do."""
    for name, value in details.items():
        if _is_table(value) and not name.startswith("_"):
            columns = dict.fromkeys(
                c
                for row in value[:MAX_ROWS]
                for c, cell in row.items()
                if c not in _ROWS_FOR_PROGRAMS and cell not in ("", None)
            )
            rows = tuple(tuple(_text(row.get(c, "")) for c in columns) for row in value[:MAX_ROWS])
            yield CardSection(_label(name).capitalize(), rows=rows, columns=tuple(map(_label, columns)))
    futures = details.get("futures")
    if isinstance(futures, Mapping):
        for choice in list_texts(details, "choices"):
            yield CardSection(f"If you answer {choice}", tuple(preview_lines(futures.get(choice))))


def detail_sections(card: Card) -> Iterator[CardSection]:
    """Whatever the card holds."""
    yield from detail_tables(card.details)
    ours = {_label(name) for name in (*_REASONS, "retry")}
    fields = list(detail_fields(card.details, card.title))
    for title, is_quoted in (("Details", True), ("What helps", False)):
        if lines := tuple(f"{label}: {value}" for label, value in fields if (label not in ours) == is_quoted):
            yield CardSection(title, lines, is_quoted=is_quoted)


def preview_lines(future: Any) -> list[str]:
    """What a dry run with an answer did, briefly."""
    if not isinstance(future, Mapping):
        return ["Not tried."]
    if "error" in future:
        return [f"It would fail: {future['error']}"]
    lines: list[str] = []
    for noun, comparison in load_comparisons().items():
        records = future.get(noun) or ()
        lines += [_describe_record(comparison, record) for record in records[:_MAX_PREVIEWED]]
        more = len(records) - _MAX_PREVIEWED
        lines += [f"… and {more} more {noun}"] if more > 0 else []
    lines += [f"Asks: {title}" for title in future.get("cards", ())[:3]]
    return lines or ["Nothing would be posted."]


def _describe_record(comparison: RecordComparison, record: Any) -> str:
    """A record in one line; one that cannot be read as it stands there: a card may hold anything."""
    try:
        summary = comparison.summarise(record)
    except (KeyError, TypeError):
        return _text(record)
    return "  ".join(filter(None, (summary.date, summary.amount, summary.description)))


def _answer_text(answer: str, meaning: str) -> str:
    """An answer with its meaning, where that says more than the answer's name."""
    return answer if meaning.rstrip(".").lower() == answer else f"{answer} ({meaning})"


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _label(name: str) -> str:
    return _LABELS.get(name) or name.replace("_", " ")


def _text(value: Any) -> str:
    """Any plain value in words, never as Python or JSON would write it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{_label(str(name))} {_text(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(escape_text(_text(each)) for each in value)  # nothing in one passes for another
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value)


def describe_event(event: Mapping[str, Any]) -> str:
    """``file watch (import/january.csv)``"""
    words = [str(event.get("kind", "")).replace("_", " "), str(event.get("name") or "")]
    paths = [str(file[0]) for file in event.get("files") or () if isinstance(file, list | tuple) and file]
    words += [f"({', '.join(paths)})"] if paths else []
    words += [f"with {_text(event['payload'])}"] if event.get("payload") else []
    return " ".join(word for word in words if word)
