"""Each kind of trigger is declared once; all else is read off the declaration, and something makes its events."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from pathlib import Path

import pytest
from harness import Workspace
from msgspec import structs
from world import World

import cleared
from cleared.sandbox import header, trigger_kinds
from cleared.sandbox.trigger_kinds import KEYED_KINDS, ON_DEMAND, TRIGGER_KINDS, TRIGGER_NAMES, TriggerKind

ROOT = Path(cleared.__file__).parent
DOCS = ROOT.parent / "docs"


@pytest.mark.parametrize("kind", KEYED_KINDS, ids=lambda kind: kind.name)
def test_a_header_needs_the_key_of_its_trigger_and_shows_its_value(kind: TriggerKind) -> None:
    text = f'"""\nname: x\ntrigger: {kind.name}\n{kind.key}: {kind.example}\n"""\n'
    read, findings = header.parse_header(text, "agents/x.py")
    assert read is not None, findings
    assert trigger_kinds.kinds_of(read) == (kind,) and kind.values(read) == (kind.example,)
    said = kind.describe(read, "Europe/London", datetime(2026, 1, 1, tzinfo=UTC))
    assert kind.example in said or said == "every day at 06:00, Europe/London"
    _, findings = header.parse_header(text.replace(f"{kind.key}: {kind.example}\n", ""), "agents/x.py")
    assert [f.rule for f in findings] == ["header-trigger"] and kind.example in findings[0].remedy


def test_each_kind_has_a_source_of_deliveries(ws: Workspace) -> None:
    """A kind that is declared and that no source makes deliveries for would be an agent that silently never runs."""
    with World(ws) as world:
        assert world.service is not None
        kinds = [source.kind.name for source in world.service.sources]
    assert sorted(kinds) == sorted(set(TRIGGER_NAMES) - {ON_DEMAND.name})


@pytest.mark.parametrize("kind", TRIGGER_KINDS, ids=lambda kind: kind.name)
def test_each_kind_is_in_the_docs(kind: TriggerKind) -> None:
    pages = (DOCS / "howto/write-an-agent.md", DOCS / "howto/triggers.md")
    assert any(kind.name in page.read_text("utf-8") for page in pages)
    assert not kind.key or f"{kind.key}:" in "".join(page.read_text("utf-8") for page in pages)


def test_no_other_module_names_a_kind() -> None:
    """``schedule`` and ``event`` are also commands and keys of records, so the other two stand for all."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text("utf-8")
        if path.name == "trigger_kinds.py" or "starters" in path.parts or not ("file_" in text or "on_dem" in text):
            continue
        names = {n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)}
        assert not names & {"file_watch", "on_demand"}, path


def test_a_new_kind_needs_no_field_of_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = structs.replace(KEYED_KINDS[2], name="letter", key="sender", describe=lambda *_: "on letters")
    monkeypatch.setattr(trigger_kinds, "TRIGGER_KINDS", (*TRIGGER_KINDS, kind))
    monkeypatch.setattr(header, "KEYED_KINDS", (*KEYED_KINDS, kind))
    readers = {**header._READERS, "sender": kind.read_key}
    readers["trigger"] = header.header_values.choices_reader(*TRIGGER_NAMES, kind.name)
    monkeypatch.setattr(header, "_READERS", readers)
    read, findings = header.parse_header('"""\nname: x\ntrigger: letter\nsender: paid\n"""\n', "agents/x.py")
    assert read is not None, findings
    assert kind.values(read) == ("paid",) and trigger_kinds.kinds_of(read) == (kind,)


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_schedule_in_quotes_says_to_drop_them(quote: str) -> None:
    text = f'"""\nname: x\ntrigger: schedule\nschedule: {quote}0 6 * * *{quote}\n"""\n'
    _, [finding] = header.parse_header(text if quote == "'" else text.replace('"""\n', "'''\n"), "agents/x.py")
    assert finding.rule == "header-cron" and finding.remedy == "Drop the quotes: schedule: 0 6 * * *"
