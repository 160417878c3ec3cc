"""What persons' decisions teach the agents that have a vendor table: rows to add, rows to take out, and decisions that
contradict each other.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import structs

from cleared.base.terminal import count_noun
from cleared.books.ledger.all_booked_lines import AllBookedLines, GroupKey
from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.booked_lines import DECIDED, BookedLine
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.standing_entries import list_standing_entries
from cleared.books.staged_books import ledger_accounts, open_books
from cleared.books.teaching.decided_rows import (
    UNATTESTED,
    Contradiction,
    DecidedHistory,
    LearnedRow,
    find_common_words,
    row_verdict,
)
from cleared.books.teaching.rule_chain import adapt_row, drop_branch, find_rule_chain, put_branch
from cleared.books.teaching.table_listing import RowUse, count_uses, iter_lines
from cleared.books.teaching.table_scripts import (
    ChainScript,
    TableScript,
    list_chain_scripts,
    list_table_scripts,
    read_approved,
)
from cleared.books.teaching.vendor_table import (
    VendorRow,
    find_vendor_table,
    read_confidence,
    teach_row,
)
from cleared.cards.card import Card
from cleared.cards.kinds import CONTRADICTION
from cleared.changes.decisions.attested_decisions import list_decided_records
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.agent_stats import list_makers
from cleared.gate.dead_branches import find_dead_branches
from cleared.gate.improvements import Improvement, Lessons, LessonSource, OpenQuestion, Unwritten, iter_older_texts
from cleared.git import Snapshot
from cleared.sandbox.script_source import parse_script
from cleared.sandbox.source_edits import remove_item
from cleared.workspace.location import name_script

_UNUSED_DAYS: Final = 400
"""So long a row has counted for no line before it is proposed to take it out: what comes once a year has come."""
_TEXT_LENGTH: Final = 60


def find_lessons(source: LessonSource) -> Lessons:
    """What the books teach. Raises ``WorkspaceError`` where they cannot be read."""
    host = source.host
    scripts, chains = list_table_scripts(source.scripts), list_chain_scripts(source.scripts)
    having: list[TableScript | ChainScript] = [*scripts, *chains]
    books, bank = open_books(host.layout, CommittedSource(source.snapshot))
    banks = ledger_accounts(host.config)
    standing = list(list_standing_entries(books.iter_entries()))
    decided = AllBookedLines.join(_mark_unattested(host, source.snapshot, standing), banks.values())
    history = DecidedHistory(decided, read_answers(source.cards.values()))
    today, enough = host.clock.now().date(), host.config.thresholds.auto_confirm
    live = {name_script(path): path for path in read_approved(source.scripts)}
    makers = {record_id: agent for record_id, agent in _list_makers(source) if agent in live}
    lessons = Lessons()
    for key in decided.decided_keys:
        for learned in history.learn_rows(key):
            if books.chart.why_not_postable(learned.row.account, today) is not None:
                continue
            agents = Counter(agent for line in learned.decisions if (agent := makers.get(line.entry_id)))
            agent = agents.most_common(1)[0][0] if agents else ""
            script = _find_maker(having, agent)
            found = None
            if isinstance(script, ChainScript):
                found = _propose_branch(script, learned, history, makers, enough)
            elif script is not None:
                found = [] if _is_known(script, learned, enough) else [_propose_row(script, learned, history)]
            if found is not None:
                lessons.improvements += found
            elif agent and _is_unanswered(source, live[agent], learned):
                lessons.unwritten.append(Unwritten(live[agent], learned.title))
        if (contradiction := history.find_contradiction(key)) is not None:
            lessons.questions.append(_ask_about(contradiction, history.find_group(key)))
    for each in having:
        lessons.improvements += _find_useless(source, each, bank, banks, today)
    return lessons


def _mark_unattested(host: Host, snapshot: Snapshot, standing: Sequence[Entry]) -> Iterator[Entry]:
    """The entries, where a status that no attested decision of a person gave counts as none: anybody may write one."""
    said = [each.entry_id for each in standing if each.status in DECIDED]
    decided = list_decided_records(host, snapshot, said)
    for each in standing:
        is_forged = each.status in DECIDED and each.entry_id not in decided
        yield structs.replace(each, status=UNATTESTED) if is_forged else each


def _list_makers(source: LessonSource) -> Iterator[tuple[str, str]]:
    """Each record that a run of this machine made, or that a card asks about, and the agent that did."""
    yield from list_makers(source.host).items()
    yield from ((card.record_id, card.agent) for card in source.cards.values() if card.record_id and card.agent)


def _find_maker(scripts: Sequence[TableScript | ChainScript], agent: str) -> TableScript | ChainScript | None:
    """The script that takes what is learned: that of the agent which made most of the lines; where nobody knows of one
    that is live, the only one. A table takes what is narrowed."""
    having = [each for each in scripts if isinstance(each, ChainScript) or each.table.has_limits]
    if agent:
        having = [each for each in having if each.agent == agent]
    return having[0] if len(having) == 1 else None


def _is_unanswered(source: LessonSource, path: str, learned: LearnedRow) -> bool:
    """Whether no version of the script was approved since the last of these decisions: a newer one may have it."""
    wanted = {line.entry_id for line in learned.decisions}
    last = max((card.resolved_at or "" for card in source.cards.values() if card.record_id in wanted), default="")
    return all(each.at <= last for each in source.scripts.approvals.list_versions(path))


def _is_known(script: TableScript, learned: LearnedRow, enough: float) -> bool:
    """Whether the table books all these lines so already, without asking."""

    def is_booked_so(line: BookedLine) -> bool:
        for row, node in script.table.rows:
            if row.fits(line.text, line.amount, line.bank):
                return read_confidence(node) >= enough and row_verdict(row) == row_verdict(learned.row)
        return False

    return all(map(is_booked_so, learned.decisions))


def _propose_row(script: TableScript, learned: LearnedRow, history: DecidedHistory) -> Improvement:
    row = learned.row
    is_named = row.account in _list_numbers(script.source)
    doubt = history.find_doubt(row) if is_named else f"{script.path} does not name {row.account} yet"
    return Improvement(
        script.path,
        f"{row.describe()} from now on",
        learned.title,
        f"{learned.title}. {history.describe_past(row)}",
        lambda text: put_row(text, row),
        {} if doubt else history.list_confirmed(row),
        doubt,
    )


def _propose_branch(
    script: ChainScript, learned: LearnedRow, history: DecidedHistory, makers: Mapping[str, str], enough: float
) -> list[Improvement] | None:
    """One branch more; none where the chain has it. None where no branch can say it, or where the script did not ask
    about all these lines and no branch that is understood took them: what other branches do is not known. It is code,
    so a person looks at it."""
    row = adapt_row(learned.row, learned.decisions, tuple(history.lines))
    if row is None:
        return None
    taken = [(line, script.chain.find_branch(line.text, line.amount)) for line in learned.decisions]
    if any(branch is None and makers.get(line.entry_id) != script.agent for line, branch in taken):
        return None
    wanted = learned.row.account
    if all(each is not None and each.row.account == wanted and each.confidence >= enough for _, each in taken):
        return []
    key, says = f"{learned.row.describe()} from now on", f"{learned.title}. {history.describe_past(row)}"
    return [Improvement(script.path, key, learned.title, says, lambda text: put_branch(text, row))]


def _list_numbers(source: str) -> set[int]:
    """The numbers that a script names, its accounts among them: where it may post is not widened without a person."""
    nodes = ast.walk(ast.parse(source))
    return {n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is int}


def put_row(source: str, row: VendorRow) -> str:
    """The script with this row in its table, in the place of those that said the same of fewer amounts."""
    table = find_vendor_table(source)
    narrower = [node for known, node in table.rows if _is_widened(known, row)] if table is not None else []
    for _ in narrower:
        again = find_vendor_table(source)
        assert again is not None
        source = remove_item(source, next(node for known, node in again.rows if _is_widened(known, row)))
    table = find_vendor_table(source)
    return source if table is None else teach_row(source, table, row)


def _is_widened(known: VendorRow, row: VendorRow) -> bool:
    same_words = normalise_description(known.words) == normalise_description(row.words)
    same_lines = (known.limits.money, known.limits.bank) == (row.limits.money, row.limits.bank)
    is_plain = not known.limits.split and not row.limits.split
    is_smaller = known.limits.is_within(row.limits) and known.limits != row.limits
    return same_words and same_lines and is_plain and is_smaller and known.account == row.account


def read_answers(cards: Iterable[Card]) -> dict[GroupKey, dict[int, date]]:
    """What persons answered about contradictions: group → account that it always is → until when others do not count.

    A card may say anything: an answer only decides what is proposed.
    """
    answers: dict[GroupKey, dict[int, date]] = {}
    for card in cards:
        if card.kind != CONTRADICTION.name or card.status == "open" or card.resolution not in ("most", "last"):
            continue
        account, payee, money = (card.details.get(name) for name in (card.resolution, "payee", "money"))
        if type(account) is int and isinstance(payee, str) and money in ("in", "out") and card.resolved_at:
            until = datetime.fromisoformat(card.resolved_at).date()
            answers.setdefault(GroupKey(payee, money), {})[account] = until
    return answers


def _ask_about(found: Contradiction, lines: list[BookedLine]) -> OpenQuestion:
    payee = _show_text(find_common_words([line.text for line in lines]) or found.key.payee)
    where = " and ".join(f"{count_noun(number, 'time')} to {account}" for account, number in found.counts[:3])
    newest = lines[-5:][::-1]
    details: dict[str, Any] = {
        "payee": found.key.payee,
        "money": found.key.money,
        "most": found.counts[0][0],
        "last": lines[-1].account,
        "decisions": [
            {"entry": line.entry_id, "date": line.day.isoformat(), "amount": str(line.amount), "account": line.account}
            for line in newest
        ],
    }
    accounts = sorted(account for account, _ in found.counts)
    title = f"{payee} (money {found.key.money}) went {where}: is one of them always right?"
    return OpenQuestion(CONTRADICTION.name, f"{found.key.payee} {found.key.money} {accounts}", title, details)


def _show_text(text: str) -> str:
    """A bank's text as a card's title has it."""
    return "".join(c for c in text if c.isprintable())[:_TEXT_LENGTH]


class _Rule(NamedTuple):
    """A row or branch that may be of no use. ``covering``: the one before it that takes all its lines."""

    noun: str
    row: VendorRow
    covering: VendorRow | None
    use: RowUse
    edit: Callable[[str], str]


def _list_rules(script: TableScript | ChainScript, bank: BankBook, banks: Mapping[str, int]) -> Iterator[_Rule]:
    """The rows of a table; or the understood branches of a chain, but for those that its text alone shows to be dead:
    the gate finds these."""
    if isinstance(script, TableScript):
        rows = [row for row, _ in script.table.rows]
        for at, (row, use) in enumerate(zip(rows, count_uses(rows, bank, banks), strict=True)):
            covering = next((each for each in rows[:at] if row.is_same_rule(each) or row.is_more_special(each)), None)
            yield _Rule("row", row, covering, use, partial(_drop_row, row=row, is_last=covering is not None))
        return
    branches = script.chain.branches
    tree = parse_script(script.source, script.path)
    dead = {b.node.lineno for b, _ in find_dead_branches(tree)} if isinstance(tree, ast.Module) else set()
    for at, (branch, use) in enumerate(zip(branches, count_uses(branches, bank, banks), strict=True)):
        first = next((each.row for each in branches[:at] if each.covers(branch)), None)
        if branch.node.lineno not in dead:
            drop = partial(drop_branch, row=branch.row, is_last=first is not None)
            yield _Rule("branch", branch.row, first, use, drop)


def _find_useless(
    source: LessonSource, script: TableScript | ChainScript, bank: BankBook, banks: Mapping[str, int], today: date
) -> Iterator[Improvement]:
    """What never counts: an earlier one takes all its lines, or no line has had its words for long."""
    days = [line.posted_date for _, line in iter_lines(bank, banks)]
    first, newest = min(days, default=today), max(days, default=today)
    long_ago, long_unused = (day - timedelta(days=_UNUSED_DAYS) for day in (today, newest))
    for noun, row, covering, use, edit in _list_rules(script, bank, banks):
        title = f"No {noun} any more: {row.describe()}"
        key = f"{title}."
        if covering is not None and not use.lines:
            says = f"{key} The {noun} {covering.describe()} stands before it and takes all its lines."
        elif (
            first <= long_ago
            and (use.fitted is None or use.fitted <= long_unused)  # where nothing has come at all, that says nothing
            and _is_older(source, script.path, row, long_ago)
        ):
            says = f"{key} No line has had its words since {use.fitted or first}."
        else:
            continue
        if edit(script.source) != script.source:
            yield Improvement(script.path, key, title, says, edit)


def _drop_row(source: str, row: VendorRow, *, is_last: bool) -> str:
    """The script without this row; of equal ones the first, or the last."""
    table = find_vendor_table(source)
    nodes = [node for known, node in table.rows if known == row] if table is not None else []
    return remove_item(source, nodes[-1 if is_last else 0]) if nodes else source


def _is_older(source: LessonSource, path: str, row: VendorRow, day: date) -> bool:
    """Whether a version approved before that day had the row; where none was ever approved, it is a starter's."""
    if not source.scripts.approvals.list_versions(path):
        return True
    end_of_day = datetime.combine(day, time.max, UTC)
    return any(row in _list_rows(text) for text in iter_older_texts(source.scripts, path, end_of_day))


def _list_rows(source: str) -> list[VendorRow]:
    """What a script books by: the rows of its table, else its branches."""
    table = find_vendor_table(source)
    if table is not None:
        return [row for row, _ in table.rows]
    chain = find_rule_chain(source)
    return [each.row for each in chain.branches] if chain is not None else []
