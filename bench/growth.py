"""How what people wait for grows with the rows: a table and a drawing, ``python -m bench --growth``."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench.bulk import SCRIPT, run_command
from bench.measure import seconds
from bench.workspaces import chase, copy, host, workspace
from cleared.gate.proposals.setting_changes import set_setting

DOCS = Path(__file__).parents[1] / "docs"
SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
MOST_CALLS = 100_000
"""Rows up to which the document's agent is measured: it makes a call for each."""
LARGE = {"import.max_rows": "1000000", "sandbox.memory_mb": "2048"}
"""Settings for a million rows."""
COMMANDS = {
    "journal balance": ("journal", "balance"),
    "check": ("check"),
    "queue list": ("queue", "list"),
    "status": ("status",),
}
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 420, 70, 170, 20, 50


@dataclass
class Curve:
    """One line of the drawing: rows → processor seconds and peak MB."""

    name: str
    points: dict[int, tuple[float, float]] = field(default_factory=dict)


def measure_growth(million: bool, quick: bool) -> list[Curve]:
    """All curves. Each command is a process of its own; its processor seconds, with what it starts, are counted."""
    imports = Curve("import by parts, one commit"), Curve("the document's ingest")
    curves = {name: Curve(name) for name in COMMANDS}
    for rows in (*SIZES[: 2 if quick else 3], *((MILLION,) if million else ())):
        print(f"{rows:,} rows …", file=sys.stderr, flush=True)
        template = workspace(files={"bank.csv": chase(rows, days=365)}, agents={"bulk": SCRIPT})
        for key, value in LARGE.items() if rows == MILLION else ():
            set_setting(host(template), key, value)
        books = template
        for curve, agent in zip(imports, ("bulk", "ingest"), strict=True):
            if agent == "bulk" or rows <= MOST_CALLS:
                books = copy(template)
                usage = run_command(books, "agent", "run", agent)
                curve.points[rows] = usage.host + usage.others, usage.host_peak
        for name, curve in curves.items():
            # The second time: what can be kept between commands is there then.
            curve.points[rows] = min(_measure(books, COMMANDS[name]) for _ in range(2))
    return [*imports, *curves.values()]


_CHILD = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "cleared", *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def _measure(root: Path, command: tuple[str, ...]) -> tuple[float, float]:
    """Processor seconds and peak MB of one command."""
    child = [sys.executable, "-c", _CHILD, *command]
    used, peak = subprocess.run(child, cwd=root, check=True, capture_output=True, text=True).stdout.split()
    return float(used), int(peak) * (1 if sys.platform == "darwin" else 1024) / 1e6


def render_table(curves: list[Curve]) -> str:
    """A row for each curve: seconds and peak for each size, and how much the last step of ten costs."""
    sizes = sorted({rows for curve in curves for rows in curve.points})
    lines = ["| | " + " | ".join(f"{rows:,} rows" for rows in sizes) + " | the last ×10 |"]
    lines.append("| --- |" + " --- |" * (len(sizes) + 1))
    for curve in curves:
        cells = [
            f"{seconds(curve.points[rows][0])}, {curve.points[rows][1]:.0f} MB" if rows in curve.points else "—"
            for rows in sizes
        ]
        *_, before, last = sorted(curve.points)
        step = curve.points[last][0] / curve.points[before][0]
        lines.append(f"| {curve.name} | " + " | ".join(cells) + f" | {step:.1f}× |")
    return "\n".join(lines) + "\n"


def render_drawing(curves: list[Curve]) -> str:
    """The curves as SVG, both axes logarithmic: what is linear in the rows has the slope of the grey line."""
    sizes = sorted({rows for curve in curves for rows in curve.points})
    times = [point[0] for curve in curves for point in curve.points.values()]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    left, right = math.log10(sizes[0]), math.log10(sizes[-1])

    def at(rows: float, taken: float) -> str:
        x = _LEFT + (math.log10(rows) - left) / (right - left) * (_WIDTH - _LEFT - _RIGHT)
        y = _HEIGHT - _BOTTOM - (math.log10(taken) - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)
        return f"{x:.1f},{y:.1f}"

    def text(where: str, words: str, anchor: str, colour: str = "#444", dx: int = 0, dy: int = 4) -> str:
        x, y = (float(number) + more for number, more in zip(where.split(","), (dx, dy), strict=True))
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'

    def line(points: list[str], colour: str, width: float, dash: str = "") -> str:
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        return f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>'

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        "<title>Processor seconds by rows; both axes are logarithmic</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
    ]
    for power in range(low, high + 1):
        out.append(line([at(sizes[0], 10.0**power), at(sizes[-1], 10.0**power)], "#ddd", 1))
        out.append(text(at(sizes[0], 10.0**power), f"{10.0**power:g} s", "end", dx=-8))
    for rows in sizes:
        out.append(line([at(rows, 10.0**low), at(rows, 10.0**high)], "#ddd", 1))
        out.append(text(at(rows, 10.0**low), f"{rows:,}", "middle", dy=20))
    out.append(text(at(10 ** ((left + right) / 2), 10.0**low), "rows", "middle", dy=40))
    steps = min(right - left, high - low)
    out.append(line([at(sizes[0], 10.0**low), at(10 ** (left + steps), 10 ** (low + steps))], "#999", 1, "4 4"))
    used: list[float] = []
    ends = sorted(zip(curves, COLOURS, strict=False), key=lambda pair: pair[0].points[max(pair[0].points)][0])
    for curve, colour in ends:
        spots = [at(rows, curve.points[rows][0]) for rows in sorted(curve.points)]
        out.append(line(spots, colour, 2))
        out += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in (spot.split(",") for spot in spots)]
        wanted = float(spots[-1].split(",")[1])
        y = min(wanted, used[-1] - 14) if used else wanted  # names do not cover each other
        used.append(y)
        out.append(text(f"{spots[-1].split(',')[0]},{y}", curve.name, "start", colour, dx=8))
    return "\n".join([*out, "</svg>", ""])


def read_section(page: Path, name: str) -> str:
    """What stands between the page's marks of this name."""
    return page.read_text().partition(f"<!-- {name}: begin -->")[2].partition(f"<!-- {name}: end -->")[0].strip()


def replace_section(page: Path, name: str, text: str) -> None:
    """Put ``text`` between the page's marks of this name."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, _, rest = page.read_text().partition(begin)
    after = rest.partition(end)[2]
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def write_growth(million: bool, quick: bool) -> int:
    """Measure, and write the drawing and the table into the documents; where ``quick``, only show the table."""
    curves = measure_growth(million, quick)
    table = render_table(curves)
    print(table)
    if not quick:
        (DOCS / "growth.svg").write_text(render_drawing(curves))
        replace_section(DOCS / "benchmarks.md", "growth", table)
    return 0
