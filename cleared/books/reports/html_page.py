"""A report as an HTML page with its bars: one file, print-ready, without scripts and without a request to anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from html import escape
from typing import Final

from cleared.base import money
from cleared.base.short_text import shorten_text
from cleared.base.terminal import escape_text
from cleared.books.reports.cell_texts import format_cell, format_label
from cleared.books.reports.report import BarChart, Cell, Column, Report, Row

STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1a; }
h1 { font-size: 1.4rem; margin: 0; }
.span { margin: .2rem 0 1rem; color: #555; }
.warning { border-left: 4px solid #b3541e; padding: .3rem .8rem; margin: .4rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #e4e2dc; vertical-align: top; }
td.figure, th.figure { text-align: right; white-space: nowrap; padding-right: 0; padding-left: 1rem; }
.figure + :not(.figure) { padding-left: 1rem; white-space: nowrap; }
tr.heading td { font-weight: 600; padding-top: .9rem; }
tr.total td { font-weight: 600; border-top: 1px solid #777; }
.d1 { padding-left: 1.2rem } .d2 { padding-left: 2.4rem } .d3 { padding-left: 3.6rem } .d4 { padding-left: 4.8rem }
svg { display: block; width: 100%; height: auto; margin: 1.2rem 0; }
svg text { font-size: 12px; fill: currentColor; }
svg .s0 { fill: #2f6f4f } svg .s1 { fill: #c98b3c } svg line { stroke: #999 }
footer { margin-top: 1rem; color: #555; font-size: .85rem; }
@page { margin: 15mm; }
@media print { body { margin: 0; max-width: none; } thead { display: table-header-group; } tr { break-inside: avoid; } }
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_MAX_DEPTH: Final = 4


def quote_text(text: object) -> str:
    """A text that is nothing but text in HTML, with what nobody sees written out."""
    return escape(escape_text(text), quote=True)


def write_page(report: Report) -> Iterator[str]:
    """The page, part by part."""
    title = quote_text(f"{report.business} · {report.title}")
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    )
    yield from write_body(report)
    yield "</body>\n</html>\n"


def write_body(
    report: Report,
    link: Callable[[Row], str] | None = None,
    separator: str = "",
    write_text: Callable[[str], str] = quote_text,
) -> Iterator[str]:
    """What stands below the title, for a page of its own or another. ``link``: where a row's label leads; or empty.
    ``separator``: what stands between thousands. ``write_text``: the HTML of a warning."""
    yield f'<p class="span">{quote_text(report.span)} · {quote_text(report.currency)}</p>\n'
    yield "".join(f'<p class="warning">{write_text(text)}</p>\n' for text in report.list_warnings())
    chart = report.make_chart()
    if chart is not None:
        yield draw_bars(chart, separator)
    heads = "".join(f'<th scope="col"{_figure_class(c.kind)}>{quote_text(c.title)}</th>' for c in report.columns)
    first = f'<th scope="col">{quote_text(report.label_title)}</th>'
    yield f'<div class="scroll" tabindex="0"><table><thead><tr>{first}{heads}</tr></thead><tbody>\n'
    for row in report.rows:
        yield _write_row(report, row, link(row) if link else "", separator)
    basis = f"{report.basis} basis · commit {report.commit[:10] or 'none'}"
    yield f"</tbody></table></div>\n<footer>{quote_text(basis[0].upper() + basis[1:])}</footer>\n"


def _write_row(report: Report, row: Row, address: str, separator: str) -> str:
    depth = f' class="d{min(row.depth, _MAX_DEPTH)}"' if row.depth else ""
    label = quote_text(format_label(row))
    if address:
        label = f'<a href="{escape(address, quote=True)}">{label}</a>'
    if row.kind == "heading":
        return f'<tr class="heading"><td colspan="{len(report.columns) + 1}"{depth}>{label}</td></tr>\n'
    cells = "".join(
        f"<td{_figure_class(column.kind)}>{quote_text(_format_figure(cell, column, row, separator))}</td>"
        for column, cell in zip(report.columns, row.cells, strict=True)
    )
    kind = ' class="total"' if row.kind == "total" else ""
    return f"<tr{kind}><td{depth}>{label}</td>{cells}</tr>\n"


def _format_figure(cell: Cell, column: Column, row: Row, separator: str) -> str:
    text = format_cell(cell, column, row)
    return money.group_thousands(text, separator) if isinstance(cell, Decimal) else text


def _figure_class(kind: str) -> str:
    return ' class="figure amount"' if kind in ("amount", "count") else ""


_WIDTH: Final = 720
_HEIGHT: Final = 220
_TOP: Final = 30
_BOTTOM: Final = 22
_MAX_LABEL: Final = 14
_AXIS: Final = 92
"""Where the bars begin, or further right: left of it stand the amounts of the axis."""
_LETTER: Final = 10
"""How wide a letter of them is at the most, which is on a phone."""
_LINE: Final = 16
"""And how far two of them are apart at the least."""


def draw_bars(chart: BarChart, separator: str = "") -> str:
    """An ``<svg>``; each bar has its label and amount as a title. Bars of negative amounts hang from the line. The axis
    names the highest and the lowest; nothing is drawn behind the last group that has an amount."""

    def show(amount: Decimal) -> str:
        return money.group_thousands(money.format_amount(amount), separator)

    groups = list(chart.groups)
    while len(groups) > 1 and not any(groups[-1][1]):
        groups.pop()
    amounts = [amount for _, group in groups for amount in group]
    high, low = max([Decimal(0), *amounts]), min([Decimal(0), *amounts])
    scale = (_HEIGHT - _TOP - _BOTTOM) / float(high - low) if high > low else 0.0
    line = _TOP + float(high) * scale
    marks: list[tuple[str, float]] = [
        (show(amount), y) for amount, y in ((high, _TOP), (low, _HEIGHT - _BOTTOM)) if amount
    ]
    if all(abs(line - y) >= _LINE for _, y in marks):
        marks.append(("0", line))
    axis = max([_AXIS, *(_LETTER * len(text) + 12 for text, _ in marks)])
    step = (_WIDTH - axis) / max(len(groups), 1)
    width = min(step * 0.8 / max(len(chart.series), 1), 60.0)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_quote(chart.title)}">'
        f'<text x="0" y="14">{_quote(chart.title)}</text>'
    ]
    for n, name in enumerate(chart.series):
        if name:
            x = _WIDTH - 110 * (len(chart.series) - n)
            parts.append(f'<rect class="s{n % 2}" x="{x}" y="5" width="10" height="10"/>')
            parts.append(f'<text x="{x + 15}" y="14">{_quote(name)}</text>')
    every = max(1, round(90 / step)) if step < 90 else 1
    for g, (label, group) in enumerate(groups):
        left = axis + g * step + (step - width * len(group)) / 2
        for n, amount in enumerate(group):
            height = abs(float(amount)) * scale
            top = line - height if amount >= 0 else line
            name = " ".join(filter(None, (label, chart.series[n], show(amount))))
            parts.append(
                f'<rect class="s{n % 2}" x="{left + n * width:.1f}" y="{top:.1f}" width="{width * 0.92:.1f}" '
                f'height="{height:.1f}"><title>{_quote(name)}</title></rect>'
            )
        if g % every == 0:
            shown = shorten_text(label, _MAX_LABEL)
            middle = axis + g * step + step / 2
            parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{_quote(shown)}</text>')
    for text, y in marks:
        parts.append(f'<text x="{axis - 8}" y="{y + 4:.1f}" text-anchor="end">{_quote(text)}</text>')
    parts.append(f'<line x1="{axis}" x2="{_WIDTH}" y1="{line:.1f}" y2="{line:.1f}"/></svg>\n')
    return "".join(parts)


def _quote(text: str) -> str:
    return escape(escape_text(text), quote=True)
