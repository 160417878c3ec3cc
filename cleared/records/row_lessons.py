"""What persons' decisions about rows teach the agents that keep tables: rules to add and to take out, and decisions
that contradict each other.

A rule says what a column is wherever another one has a certain text. It needs three equal decisions, one of them a
correction, and none that differs; only persons' decisions count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import Struct

from cleared.base.terminal import count_noun
from cleared.cards.kinds import CONTRADICTION
from cleared.changes.record_sources import CommittedSource
from cleared.gate.agent_stats import list_makers
from cleared.gate.improvements import (
    Improvement,
    Lessons,
    LessonSource,
    OpenQuestion,
    Unwritten,
    iter_older_texts,
    list_approved,
)
from cleared.records.decided_values import DecidedRow, read_decisions
from cleared.records.row_changes import read_table
from cleared.records.rule_table import Rule, RuleTable, drop_rule, find_rule_table, put_rule
from cleared.records.table_names import FOLDER, table_of
from cleared.records.table_rows import Table
from cleared.workspace.location import name_script

LEAST: Final = 3
"""Equal decisions that make a rule."""
_UNUSED_DAYS: Final = 400
"""So long a rule has been there before it is proposed to take it out, as no row has its text."""
_MAX_TEXT: Final = 80
_WRITTEN: Final = frozenset(("text", "decimal", "date"))
"""The types of columns whose values a script passes as texts."""


class _Script(NamedTuple):
    path: str
    source: str
    table: RuleTable

    @property
    def agent(self) -> str:
        return name_script(self.path)


class _Group(Struct, frozen=True):
    """Decided rows of a table that have the same text in a column, and what became of another one."""

    table: Table
    column: str
    text: str
    target: str
    rows: Sequence[DecidedRow]
    """Newest first."""

    @property
    def counts(self) -> list[tuple[str, int]]:
        return Counter(row.values[self.target] for row in self.rows).most_common()

    @property
    def corrected(self) -> frozenset[str]:
        return frozenset(row.id for row in self.rows if self.target in row.corrected)

    @property
    def rule(self) -> Rule:
        """What most decided."""
        return Rule(self.column, self.text, self.target, self.counts[0][0])

    @property
    def is_equal(self) -> bool:
        return len(self.rows) >= LEAST and len(self.counts) == 1 and bool(self.counts[0][0]) and bool(self.corrected)

    @property
    def is_contradicted(self) -> bool:
        return len(self.counts) > 1 and self.counts[0][1] >= LEAST and bool(self.corrected)

    def count_past(self) -> tuple[int, int]:
        """Of the rows that have the text now: all, and those where the other column is otherwise."""
        columns = list(self.table.schema.columns)
        at, to = columns.index(self.column), columns.index(self.target)
        having = [row for row in self.table.rows.values() if row[at] == self.text]
        return len(having), sum(1 for row in having if row[to] != self.rule.value)


def find_lessons(source: LessonSource) -> Lessons:
    """What the tables teach. Raises ``WorkspaceError`` where they cannot be read."""
    lessons, committed = Lessons(), CommittedSource(source.snapshot)
    names = filter(None, (table_of(f"{FOLDER}/{file}", "yaml") for file in source.snapshot.list_folder(FOLDER)))
    tables = {name: table for name in names if (table := read_table(committed, name)) is not None}
    if not tables:
        return lessons
    live = dict(list_approved(source.scripts, source.host.layout.agents_dir))
    having = ((path, text, find_rule_table(text, path)) for path, text in live.items())
    scripts = [_Script(path, text, rules) for path, text, rules in having if rules is not None]
    makers = dict(list_makers(source.host)) | {
        card.record_id: card.agent for card in source.cards.values() if card.record_id and card.agent
    }
    decided = read_decisions(source, tables)
    answers = _read_answers(source)
    for table in tables.values():
        groups = list(_list_groups(table, [row for row in decided if row.table == table.name], answers))
        learned = _choose(groups)
        for group in learned:
            _propose(group, scripts, live, makers, lessons)
        lessons.questions += _ask(groups, learned)
    for script in scripts:
        lessons.improvements += _find_useless(source, script, tables)
    return lessons


def _list_groups(
    table: Table, rows: Sequence[DecidedRow], answers: Mapping[tuple[str, ...], tuple[str, str]]
) -> Iterator[_Group]:
    columns, key = table.schema.columns, table.schema.key
    for target in (name for name, each in columns.items() if name not in key and each.kind in _WRITTEN):
        for column in (name for name, each in columns.items() if each.kind == "text" and name != target):
            if key == (column,):
                continue  # each row has its own
            by_text: dict[str, list[DecidedRow]] = defaultdict(list)
            for row in rows:
                if {column, target} <= row.values.keys():
                    by_text[row.values[column]].append(row)
            for text, having in by_text.items():
                always, until = answers.get((table.name, column, text, target), ("", ""))
                kept = [row for row in having if not always or row.values[target] == always or row.at > until]
                if text and len(text) <= _MAX_TEXT and text.isprintable() and kept:
                    yield _Group(table, column, text, target, kept)


def _choose(groups: Sequence[_Group]) -> list[_Group]:
    """One rule for what was corrected together: of several columns that say the same, the one by which the fewest rows
    would be otherwise than they are."""
    order = {id(group): (-len(group.corrected), group.count_past()[1]) for group in groups if group.is_equal}
    chosen: list[_Group] = []
    for group in sorted((each for each in groups if each.is_equal), key=lambda each: order[id(each)]):
        known = [each.corrected for each in chosen if each.target == group.target]
        if not group.corrected <= frozenset().union(*known):
            chosen.append(group)
    return chosen


def _propose(
    group: _Group,
    scripts: Sequence[_Script],
    live: Mapping[str, str],
    makers: Mapping[str, str],
    lessons: Lessons,
) -> None:
    """The rule for the agent that made most of these rows; where nobody knows it, for the only one that has rules."""
    agents = Counter(agent for row in group.rows if (agent := makers.get(row.id)))
    agent = agents.most_common(1)[0][0] if agents else ""
    having = [script for script in scripts if not agent or script.agent == agent]
    number = len(group.rows)
    key = f"{group.rule.describe()} from now on"
    title = f"{key}, as you decided {number} of {number} times"
    if len(having) != 1:
        paths = [path for path in live if name_script(path) == agent]
        lessons.unwritten += [Unwritten(path, f"{group.table.name}: {title}") for path in paths if not having]
        return
    script = having[0]
    if all(script.table.find_value(row.values, group.target) == group.rule.value for row in group.rows):
        return
    past, others = group.count_past()
    how = f"{others} otherwise than they are" if others else "all as they are"
    says = f"{title}. {count_noun(past, 'row')} of {group.table.name} {'has' if past == 1 else 'have'} that, {how}."
    edit = partial(put_rule, rule=group.rule)
    lessons.improvements.append(Improvement(script.path, key, title, says, edit))


def _ask(groups: Sequence[_Group], learned: Sequence[_Group]) -> Iterator[OpenQuestion]:
    """About each column at most once: what most decided of one text, where no rule tells the others apart."""
    explained = {(group.target, row.id) for group in learned for row in group.rows}
    asked: set[str] = set()
    for group in sorted(groups, key=lambda each: -each.counts[0][1]):
        is_open = any((group.target, row.id) not in explained for row in group.rows)
        if not group.is_contradicted or group.target in asked or not is_open:
            continue
        asked.add(group.target)
        where = " and ".join(f"{value or 'nothing'} {count_noun(number, 'time')}" for value, number in group.counts[:3])
        about = f"{group.table.name}: where {group.column} is {group.text}, {group.target}"
        details: dict[str, Any] = {
            "table": group.table.name,
            "column": group.column,
            "text": group.text,
            "target": group.target,
            "most": group.counts[0][0],
            "last": group.rows[0].values[group.target],
            "decisions": [{"row": row.id, group.target: row.values[group.target]} for row in group.rows[:5]],
        }
        values = sorted(value for value, _ in group.counts)
        yield OpenQuestion(
            CONTRADICTION.name, f"{about} {values}", f"{about} was {where}: is one of them always right?", details
        )


def _read_answers(source: LessonSource) -> dict[tuple[str, ...], tuple[str, str]]:
    """What persons answered about contradictions: which rows and column → what it always is, and until when others do
    not count. A card may say anything: an answer only decides what is proposed."""
    answers: dict[tuple[str, ...], tuple[str, str]] = {}
    for card in source.cards.values():
        if card.kind == CONTRADICTION.name and card.status != "open" and card.resolution in ("most", "last"):
            about = tuple(card.details.get(name) for name in ("table", "column", "text", "target"))
            value = card.details.get(card.resolution)
            if all(isinstance(each, str) for each in (*about, value)) and card.resolved_at:
                answers[tuple(map(str, about))] = str(value), card.resolved_at
    return answers


def _find_useless(source: LessonSource, script: _Script, tables: Mapping[str, Table]) -> Iterator[Improvement]:
    """Rules that never count: an earlier one is about the same, or no row has their text, and that for long."""
    long_ago = source.host.clock.now() - timedelta(days=_UNUSED_DAYS)
    seen: set[tuple[str, str, str]] = set()
    for rule, _ in script.table.rules:
        title = f"No rule any more: {rule.describe()}"
        if rule.about in seen:
            why = "A rule before it is about the same rows."
        elif not _has_text(tables, rule) and _is_older(source, script.path, rule, long_ago):
            why = f"No row has {rule.column} {rule.text}."
        else:
            why = ""
        seen.add(rule.about)
        if why:
            yield Improvement(script.path, f"{title}.", title, f"{title}. {why}", partial(drop_rule, rule=rule))


def _has_text(tables: Mapping[str, Table], rule: Rule) -> bool:
    for table in tables.values():
        columns = list(table.schema.columns)
        if rule.column in columns and any(row[columns.index(rule.column)] == rule.text for row in table.rows.values()):
            return True
    return False


def _is_older(source: LessonSource, path: str, rule: Rule, day: datetime) -> bool:
    """Whether a version that was approved before that had the rule."""
    tables = (find_rule_table(text, path) for text in iter_older_texts(source.scripts, path, day))
    return any(rule == known for table in tables if table is not None for known, _ in table.rules)
