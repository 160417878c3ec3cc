"""Bars as inline SVG, in the colours of the page around it."""

from __future__ import annotations

from decimal import Decimal
from html import escape
from typing import Final

from cleared.base import money
from cleared.base.short_text import shorten_text
from cleared.base.terminal import escape_text
from cleared.books.reports.report import BarChart

_WIDTH: Final = 720
_HEIGHT: Final = 220
_TOP: Final = 30
_BOTTOM: Final = 22
_MAX_LABEL: Final = 14


def draw_bars(chart: BarChart) -> str:
    """An ``<svg>``; each bar has its label and amount as a title. Bars of negative amounts hang from the line."""
    amounts = [amount for _, group in chart.groups for amount in group]
    high, low = max([Decimal(0), *amounts]), min([Decimal(0), *amounts])
    scale = (_HEIGHT - _TOP - _BOTTOM) / float(high - low) if high > low else 0.0
    line = _TOP + float(high) * scale
    step = _WIDTH / max(len(chart.groups), 1)
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
    for g, (label, group) in enumerate(chart.groups):
        left = g * step + (step - width * len(group)) / 2
        for n, amount in enumerate(group):
            height = abs(float(amount)) * scale
            top = line - height if amount >= 0 else line
            name = " ".join(filter(None, (label, chart.series[n], money.format_amount(amount))))
            parts.append(
                f'<rect class="s{n % 2}" x="{left + n * width:.1f}" y="{top:.1f}" width="{width * 0.92:.1f}" '
                f'height="{height:.1f}"><title>{_quote(name)}</title></rect>'
            )
        if g % every == 0:
            shown = shorten_text(label, _MAX_LABEL)
            middle = g * step + step / 2
            parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{_quote(shown)}</text>')
    parts.append(f'<line x1="0" x2="{_WIDTH}" y1="{line:.1f}" y2="{line:.1f}"/></svg>\n')
    return "".join(parts)


def _quote(text: str) -> str:
    return escape(escape_text(text), quote=True)
