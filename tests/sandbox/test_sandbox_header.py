"""A1: the header of a script."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox_samples import INGEST

from cleared.domains.installed_domains import parse_header


def findings(*lines: str, kind: str = "agent") -> list[tuple[str, str | None, int | None]]:
    source = '"""\n' + "\n".join(lines) + '\n"""\n'
    header, found = parse_header(source, "agents/x.py", kind=kind)  # type: ignore[arg-type]
    assert (header is None) == bool(found)
    assert all(finding.message and finding.remedy and finding.place.file == "agents/x.py" for finding in found)
    return [(finding.rule, finding.place.field, finding.place.line) for finding in found]


def test_A1_document_003() -> None:
    header, found = parse_header(INGEST, "agents/ingest.py")
    assert found == []
    assert header is not None
    assert header.name == "Daily Ingest"
    assert header.triggers == ("schedule",)
    assert header.schedule == "0 6 * * *"
    assert header.description == "Import new bank transactions, classify inline, route by confidence"
    assert header.line_of("schedule") == 5


def test_A1_every_key_is_typed() -> None:
    source = '''"""
name: Night: watch
trigger: [schedule, file_watch, event]
schedule: */5 * * * *
timezone: Europe/London
watch: [import/, import/*.csv]
event: loop.*
description: first
  second: with a colon
    third
grants: []
args: [month, year]
timeout: 5m
memory_mb: 256
max_calls: 1000
max_entries: 10
max_total: 1500.50
accounts: [5010, 5020]
catch_up: latest
overlap: skip
retries: 3
jitter: 30
"""
'''
    header, found = parse_header(source, "agents/x.py")
    assert found == [] and header is not None
    assert header.name == "Night: watch"
    assert header.triggers == ("schedule", "file_watch", "event")
    assert header.watch == ("import/", "import/*.csv")
    assert header.event == ("loop.*",)
    assert header.description == "first second: with a colon third"
    assert header.grants == () and header.args == ("month", "year")
    assert (header.timeout, header.memory_mb, header.max_calls, header.jitter) == (300.0, 256, 1000, 30.0)
    assert header.own_values == {"max_entries": 10, "max_total": Decimal("1500.50"), "accounts": (5010, 5020)}
    assert (header.catch_up, header.overlap, header.retries) == ("latest", "skip", 3)
    assert len(header.raw) == 19


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["trigger: on_demand"], ("header-name", "name", 1)),
        (["name: x", "trigger: web_hook"], ("header-trigger", "trigger", 3)),
        (["name: x", "trigger: [schedule, nope]", "schedule: @daily"], ("header-trigger", "trigger", 3)),
        (["name: x", "trigger: schedule"], ("header-trigger", "schedule", 3)),
        (["name: x", "trigger: file_watch"], ("header-trigger", "watch", 3)),
        (["name: x", "trigger: event"], ("header-trigger", "event", 3)),
        (["name: x", "schedule: @daily"], ("header-trigger", "schedule", 3)),
        (["name: x", "trigger: schedule", "schedule: 61 0 * * *"], ("header-cron", "schedule", 4)),
        (["name: x", "trigger: schedule", "schedule: every day"], ("header-cron", "schedule", 4)),
        (["name: x", "trigger: schedule", "schedule: @dayly"], ("header-cron", "schedule", 4)),
        (["name: x", "trigger: schedule", "schedule: 0 0 31 2 *"], ("header-cron", "schedule", 4)),
        (["name: x", "trigger: schedule", "schedule: 0 0 1 1 * 0 2030"], ("header-cron", "schedule", 4)),
        (
            ["name: x", "trigger: schedule", "schedule: 0 " + ",".join(map(str, range(24))) * 3 + " * * *"],
            ("header-cron", "schedule", 4),
        ),
        (["name: x", "nmae: y"], ("header-key", "nmae", 3)),
        (["name: x", "name: y"], ("header-duplicate", "name", 3)),
        (["name: x", "trigger: file_watch", "watch: /etc"], ("header-watch", "watch", 4)),
        (["name: x", "trigger: file_watch", "watch: import/../../x"], ("header-watch", "watch", 4)),
        (["name: x", "timezone: Mars/Base"], ("header-timezone", "timezone", 3)),
        (["name: x", "timezone: ../../etc/passwd"], ("header-timezone", "timezone", 3)),
        (["name: x", "retries: -1"], ("header-number", "retries", 3)),
        (["name: x", "max_calls: many"], ("header-number", "max_calls", 3)),
        (["name: x", "max_total: 1e9"], ("header-number", "max_total", 3)),
        (["name: x", "accounts: [a]"], ("header-number", "accounts", 3)),
        (["name: x", "overlap: maybe"], ("header-value", "overlap", 3)),
        (["name: x", "args: [class]"], ("header-args", "args", 3)),
        (["name: x", "just prose"], ("header-line", None, 3)),
    ],
)
def test_A1_findings_name_field_and_line(lines: list[str], expected: tuple[str, str, int]) -> None:
    assert findings(*lines) == [expected]


def test_A1_a_long_schedule_is_refused_as_that() -> None:
    hours = ",".join(str(n % 24) for n in range(100))
    _, (finding,) = parse_header(f'"""\nname: x\ntrigger: schedule\nschedule: 0 {hours} * * *\n"""', "a.py")
    assert finding.rule == "header-cron" and "longer than 200 characters" in finding.message


def test_A1_unknown_key_names_the_nearest() -> None:
    _, (finding,) = parse_header('"""\nname: x\nshedule: @daily\n"""', "a.py")
    assert "Did you mean `schedule`?" in finding.remedy


@pytest.mark.parametrize("value", ["@daily", "*/5 * * * *", "0 6 * * 1-5", "0 0 29 2 *", "*/5 * * * * 30"])
def test_A1_cron_that_is_accepted(value: str) -> None:
    assert findings("name: x", "trigger: schedule", f"schedule: {value}") == []


def test_A1_no_header() -> None:
    header, (finding,) = parse_header("x = 1\n", "agents/x.py")
    assert header is None and finding.rule == "header-missing"


def test_A1_a_shared_script_needs_none() -> None:
    assert parse_header("x = 1\n", "scripts/tax.py", kind="script")[0] is not None
    header, found = parse_header('"""Tax, e.g.:\nnote: prose\nargs: [month]\n"""\n1', "scripts/tax.py", kind="script")
    assert found == [] and header is not None
    assert (header.name, header.args) == ("tax", ("month",))
    assert findings("arg: [month]", kind="script") == [("header-key", "arg", 2)]


def test_A1_indented_docstring_and_line_endings() -> None:
    header, found = parse_header('"""\r\n    name: x\r\n    description: a\r\n      b\r\n"""\r\n', "a.py")
    assert found == [] and header is not None
    assert header.description == "a b" and header.line_of("name") == 2


LINE = st.sampled_from(
    ["name", "trigger", "schedule", "watch", "timezone", "max_total", "args", "x", " y", ""]
).flatmap(lambda key: st.text(max_size=20).map(lambda value: f"{key}: {value}"))


@given(st.lists(LINE, max_size=8), st.sampled_from(["agent", "script"]))
def test_A1_never_raises(lines: list[str], kind: str) -> None:
    source = '"""\n' + "\n".join(lines) + '\n"""'
    header, found = parse_header(source, "a.py", kind=kind)  # type: ignore[arg-type]
    assert (header is None) == bool(found)
