"""The chart of accounts of two clones: what each did to accounts of its own."""

from __future__ import annotations

from cleared.base.csv_text import read_records
from cleared.base.file_source import FileSource
from cleared.books.decisions.account_changes import find_place, render_chart
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.chart import HEADER, OPTIONAL, Account, Chart, parse_chart
from cleared.books.staged_books import open_books
from cleared.domains.renamed_records import WorkConflict
from cleared.workspace.location import Layout


def join_chart(
    layout: Layout, source: FileSource, path: str, old: bytes | None, mine: bytes | None, theirs: bytes | None
) -> bytes | None:
    """See ``Domain.join_file``."""
    if path != locate_books(layout).chart or None in (old, mine, theirs):
        return None
    was, now, there = (parse_chart(data, path) for data in (old, mine, theirs))
    rows = [row for _, row in read_records(theirs or b"", HEADER, optional=OPTIONAL)]
    own = {int(row[0]): row for _, row in read_records(mine or b"", HEADER, optional=OPTIONAL)}
    before = {int(row[0]): row for _, row in read_records(old or b"", HEADER, optional=OPTIONAL)}
    touched = [number for number in {**before, **own} if before.get(number) != own.get(number)]
    for number in touched:
        at = next((n for n, row in enumerate(rows) if int(row[0]) == number), None)
        found = rows[at] if at is not None else None
        if found == own.get(number):
            continue
        if found != before.get(number):
            raise WorkConflict(f"the account {number} is another one there: {there.name_account(number)}")
        if at is not None:
            del rows[at]
        if number in own:
            _refuse_namesake(now.accounts[number], was, there)
            rows.insert(at if at is not None else find_place(rows, number), own[number])
    data = render_chart(rows, theirs or b"") if theirs != old else mine or b""
    chart = parse_chart(data, path)
    bound = {*touched, *(chart.accounts[n].parent_id for n in touched if n in chart.accounts)}
    for entry in open_books(layout, source)[0].iter_entries():
        for leg in entry.legs:
            why = chart.why_not_postable(leg.account_id, entry.date) if leg.account_id in bound else None
            if why is not None:
                raise WorkConflict(f"others have posted {entry.entry_id} {entry.description[:60]}, and {why[0]}")
    return data


def _refuse_namesake(account: Account, was: Chart, there: Chart) -> None:
    """Raises ``WorkConflict`` where others have given another account the name that this one gets."""
    name = account.account_name.casefold()
    for other in there.accounts.values():
        if other.account_name.casefold() == name and other.account_id != account.account_id:
            before = was.find_account(other.account_id)
            if before is None or before.account_name.casefold() != name:
                raise WorkConflict(f"others have called {other.account_id} {other.account_name}, too")
