"""How cards, lists and files look on the screen. Every text from outside passes ``escape_text``; nothing is said by
colour alone."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cleared.base.terminal import count_noun, escape_text
from cleared.books.review.account_choice import AccountMatch
from cleared.cards.card_section import CardSection
from cleared.cards.kinds import INTRODUCTION, kind_named
from cleared.review.card_facts import QueueRow
from cleared.review.card_view import CardView
from cleared.review.source_files import FileView as File

LABEL = 16
QUIET, STRONG = "dim", "bold"


def cut_text(text: object, width: int) -> str:
    """The text in at most so many columns of the terminal, wide characters counted as two."""
    shown = Text(escape_text(text), no_wrap=True)
    shown.truncate(max(1, width), overflow="ellipsis")
    return shown.plain


def fill_text(text: object, width: int, *, right: bool = False) -> str:
    """The text in just so many columns, cut or filled with blanks."""
    shown = cut_text(text, width)
    blank = " " * (width - cell_len(shown))
    return blank + shown if right else shown + blank


def render_card(shown: CardView, width: int) -> RenderableType:
    """The large card: what it is about and the amount, then each section beside its name."""
    head = Table.grid(expand=True, padding=(0, 0))
    head.add_column(ratio=1, overflow="fold")
    head.add_column(justify="right", no_wrap=True)
    head.add_row(
        Text(escape_text(shown.title), STRONG), Text(f"  {escape_text(shown.amount)}" if shown.amount else "", STRONG)
    )
    body = Table.grid(expand=True, padding=(0, 2, 0, 0))
    body.add_column(width=LABEL, style=QUIET, overflow="fold")
    body.add_column(ratio=1, overflow="fold")
    for section in shown.sections:
        body.add_row(Text(escape_text(section.title)), _render_section(section, width - LABEL - 2))
    return Group(head, Text(""), body)


def _render_section(section: CardSection, width: int) -> RenderableType:
    lines = (*section.lines, *(part.title for part in section.parts))
    parts: list[RenderableType] = [Text(escape_text(line), overflow="fold") for line in lines]
    if section.rows:
        parts.append(_render_columns(section.rows, width, section.columns))
    return Group(*parts)


def _render_columns(rows: Sequence[Sequence[str]], width: int, columns: Sequence[str]) -> Text:
    """A table as wide as what is in it, below its headings, if it has any. Where there is no room the widest column
    gets narrower; on a narrow screen the fifth and further ones are left out."""
    count = max(len(row) for row in rows)
    if count > 4 and width < 76:
        count = 4
    cells = [[row[c] if c < len(row) else "" for c in range(count)] for row in ([columns] if columns else []) + [*rows]]
    widths = [max(cell_len(escape_text(row[c])) for row in cells) for c in range(count)]
    while sum(widths) + 2 * (count - 1) > width and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1
    numeric = [all(_is_amount(row[c]) for row in rows if c < len(row)) for c in range(count)]
    lines = ["  ".join(fill_text(row[c], widths[c], right=numeric[c]) for c in range(count)) for row in cells]
    return Text("\n".join(line.rstrip() for line in lines), no_wrap=True, overflow="ellipsis")


def _is_amount(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdecimal()


def render_rows(listed: Sequence[QueueRow], current: int, height: int, width: int) -> Text:
    """As many rows of the list as there is room for, around the current one, which has an arrow."""
    first = max(0, min(current - height // 2, len(listed) - height))
    out = Text(no_wrap=True)
    for at, each in enumerate(listed[first : first + height], first):
        kind = kind_named(each.kind).label
        room = width - 2 - 10 - 2 - 11 - 2 - (len(kind) + 2 if kind else 0)
        line = f"{'▸' if at == current else ' '} {fill_text(each.date, 10)}  {fill_text(each.amount, 11, right=True)}  "
        line += fill_text(each.text, max(4, room)) + (f"  {kind}" if kind else "")
        out.append(line + "\n", STRONG if at == current else QUIET)
    return out


def render_accounts(accounts: Sequence[AccountMatch], current: int, height: int, width: int) -> Text:
    """The accounts that fit what was typed."""
    first = max(0, min(current - height // 2, len(accounts) - height))
    out = Text(no_wrap=True)
    for at, each in enumerate(accounts[first : first + height], first):
        why = f"  {each.why}" if each.why else f"  {each.type}"
        name = fill_text(each.name, max(8, width - 10 - cell_len(why)))
        line = f"{'▸' if at == current else ' '} {each.id}  {name}{why}"
        out.append(line + "\n", STRONG if at == current else "")
    return out if accounts else Text("No account fits.", QUIET)


def render_file(text: File) -> Text:
    """A file with the numbers of its lines; the one that matters has an arrow."""
    width = len(str(len(text.lines)))
    out = Text(no_wrap=True)
    for number, line in enumerate(text.lines, 1):
        mark = "▸" if number == text.line else " "
        out.append(
            f"{mark} {number:>{width}}  {escape_text(line.expandtabs(4))}\n", STRONG if number == text.line else ""
        )
    return out


def render_changes(text: File) -> Text:
    """A file without a line that matters, or the changes of one: what is added is bold, what is removed is dim."""
    out = Text(no_wrap=True)
    for line in text.lines:
        style = STRONG if line.startswith("+") else QUIET if line.startswith(("-", "@@")) else ""
        out.append(f"{escape_text(line.expandtabs(4))}\n", style)
    return out


def render_files(files: Sequence[File]) -> Text:
    """Files one below the other; each with its name where there are several."""
    body = Text(no_wrap=True)
    for file in files:
        if len(files) > 1:
            body.append(f"{escape_text(file.name)}\n", STRONG)
        if file.note:
            body.append(f"{file.note}\n", QUIET)
        body.append_text(render_file(file) if file.line else render_changes(file))
    return body


def render_help(bindings: Sequence[tuple[str, str, str]]) -> Text:
    """What a card is, and each key with what it does; ``bindings``: key, name, text."""
    lines = Text(f"{INTRODUCTION}\n\n")
    for key, _, text in bindings:
        lines.append(f" {key:>3}  ", STRONG).append(f"{text}\n")
    return lines.append(" ↑ ↓  ", STRONG).append("Move in the list; PgUp and PgDn in the card\n")


def progress_text(decided: int, left: int, waiting: int) -> str:
    """``3 done · 97 left ▰▱▱▱▱▱▱▱▱▱``"""
    full = 10 * decided // (decided + left) if decided + left else 10
    busy = f"saving {waiting} · " if waiting else ""
    return f"{busy}{decided} done · {left} left  {'▰' * full}{'▱' * (10 - full)}"


def render_keys(offers: Sequence[tuple[str, str]], width: int) -> Text:
    """The keys of the moment on one line; where there is no room, those that help knows anyway go first."""
    shown = [(key, escape_text(label)) for key, label in offers]
    for spare in "fos":
        if sum(cell_len(label) + 4 for _, label in shown) - 2 > width:
            shown = [pair for pair in shown if pair[0] != spare]
    out = Text(no_wrap=True, overflow="ellipsis")
    for key, label in shown:
        out.append("  " if out else "").append(key, STRONG).append(f" {label}", QUIET)
    return out


def render_empty(decided: int) -> RenderableType:
    """Nothing waits."""
    summary = f"{count_noun(decided, 'decision')} made here.  u takes the last one back." if decided else ""
    return Padding(
        Group(
            Text("✓  Nothing waits for you.", STRONG, justify="center"),
            Text(""),
            Text(summary, QUIET, justify="center"),
            Text("q leaves.", QUIET, justify="center"),
        ),
        (3, 0),
    )
