"""``python -m bench`` goes on working as the program changes: each figure is taken once, with the smallest sizes.

Those that start a service or a loop, and then wait, are not: what they set up is what ``throughput`` and ``tree`` do.
Nor are those that start the command again and again, as ``whole_list`` does.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browsing import CHROMIUM_NAMES
from fleets import skip_without_postgres

from bench import __main__ as bench
from bench import (
    age,
    bank_formats,
    books,
    bulk,
    calls,
    commits,
    gate,
    growth,
    large_books,
    loop,
    measure,
    pace,
    requests,
    review,
    sessions,
    suggestions,
    tasks,
    versions,
    workspaces,
)

pytestmark = pytest.mark.slow

SIZES = (
    (age, "COMMANDS", ("check",)),
    (age, "REPEATS", 1),
    (age, "TRIES", 1),
    (bank_formats, "LINES", 50),
    (books, "ROWS", 30),
    (bulk, "ROWS", 30),
    (calls, "ROWS", 3),
    (sessions, "STEPS", 3),
    (sessions, "TURNS", 1),
    (tasks, "BYTES", 1 << 20),
    (commits, "FILES", 300),
    (large_books, "ROWS", 400),
    (large_books, "_SETTLE_SECONDS", 0),
    (large_books, "_PAUSE_SECONDS", 0),
    (gate, "RUNS", 2),
    (gate, "ROWS", 3),
    (loop, "PAST", 3),
    (pace, "_STARTS", 1),
    (review, "CARDS", 3),
    (review, "BATCH", 3),
    (review, "MONTH", 3),
    (suggestions, "ENTRIES", 200),
    (versions, "WINDOW", 2),
)
WAITING = {
    "help",
    "cold",
    "idle_server",
    "mcp_start",
    "agents",
    "files",
    "cron",
    "load",
    "idle",
    "status",
    "bridge_start",
    "job",
    "job_floor",
    "enqueued",
    "idle_loop",
    "memory",
    "memory_commits",
    "balance",
    "whole_list",
    "month_list",
    "check_again",
    "check_whole",
    "export_hledger",
    "page_year",  # tests/browser/test_month_in_browser.py keeps a month of it
    "fleet_latency",  # measured with fleet_job
    "fleet_throughput",
    "fleet_killed",  # tests/service/fleet/test_fleet_kills.py has it with less patience
    *requests.FIGURES,  # tests/meta/test_recorded_requests.py replays them
}


def once(measured: measure.Side, baseline: measure.Side, repeat: int) -> tuple[float, float]:
    """As ``interleave``, without repetitions."""
    for side in (measured, baseline):
        side()()
    return 1.0, 1.0


@pytest.fixture
def smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, size in SIZES:
        monkeypatch.setattr(module, name, size)
    for module in (bank_formats, gate, loop, measure, sessions, tasks):
        monkeypatch.setattr(module, "interleave", once)
    # The figures set these to folders of their own; they are put back afterwards.
    monkeypatch.setattr(sys, "path", [*sys.path])
    for variable in ("CLEARED_HOME", "PYTHONPATH"):
        monkeypatch.setenv(variable, "")
    workspaces.use_own_home()  # the same for all figures of this process: they share their workspaces


@pytest.mark.parametrize("name", sorted(bench.FIGURES.keys() - WAITING))
def test_each_figure_can_be_taken(name: str, smallest: None) -> None:
    if name == "fleet_job":
        skip_without_postgres()
    if name == "slow_line" and not any(map(shutil.which, CHROMIUM_NAMES)):
        pytest.skip("NO BROWSER: install chromium (apt-get install chromium)")
    assert bench.FIGURES[name](True).measured


def test_single_rows_are_measured_again() -> None:
    table = "| figure | ours |\n| --- | --- |\n| a | 1 |\n| b | 2 |\n"
    assert bench.replace_rows(table, ["| b | 3 |\n"]) == table.replace("2", "3")
    with pytest.raises(ValueError, match="is not in the table"):
        bench.replace_rows(table, ["| c | 3 |\n"])


def test_the_growth_is_a_table_and_a_drawing(tmp_path: Path) -> None:
    curves = [
        growth.Curve("import", {1_000: (0.5, 60.0), 10_000: (2.0, 100.0), 100_000: (15.0, 330.0)}),
        growth.Curve("balance", {1_000: (0.1, 30.0), 10_000: (0.1, 31.0)}),
    ]
    table, drawing = growth.render_table(curves), growth.render_drawing(curves)
    assert "| import | 500.0 ms, 60 MB | 2.00 s, 100 MB | 15.00 s, 330 MB | 7.5× |" in table
    assert "| balance | 100.0 ms, 30 MB | 100.0 ms, 31 MB | — | 1.0× |" in table
    root = ElementTree.fromstring(drawing)
    assert root.tag.endswith("svg") and drawing.count("<circle") == 5
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- growth: begin -->\nold\n<!-- growth: end -->\nafter\n")
    growth.replace_section(page, "growth", table)
    assert "old" not in page.read_text() and page.read_text().startswith("before") and "after" in page.read_text()


def test_b26_what_is_suggested_with_confidence_is_right() -> None:
    """B26: held out, of suggestions with 0.95 or more the lower bound of the share that is right reaches 0.95."""
    result = suggestions.calibration(True)
    assert result.ok, result.measured


def test_the_cost_of_a_day_is_measured_at_each_age(smallest: None) -> None:
    """Two days lived through: each figure is one of work done, and the store of git is not smaller than packed."""
    ages = age.measure_ages((1, 2))
    assert [found.runs for found in ages] == [1, 2]
    assert all(cost > 0 for found in ages for cost in found.costs.values())
    assert all(found.git_bytes >= found.packed_bytes > 0 for found in ages)
    assert age.render_ages(ages).splitlines()[2].startswith("| 1 | ")
