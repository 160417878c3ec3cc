"""What ``cleared revert`` does to the books: the entries of a run are voided, an import is undone, but for what people
have decided about."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from shlex import quote

from cleared.base.errors import PolicyError
from cleared.base.safe_names import choose_free_name, mend_name
from cleared.books.decisions.import_undoing import ImportUndoing, UndoneFiles, describe_decided
from cleared.books.entry_comparison import EntryComparison
from cleared.books.importing.kept_bank_files import digest_file, find_kept_files
from cleared.books.primitives.voiding import void_with_corrections
from cleared.books.staged_books import books_of, open_books
from cleared.changes.record_sources import CommittedSource
from cleared.primitives.context import Context
from cleared.review.record_review import RevertCase


def find_import_run(context: Context, name: str) -> str | None:
    """The one run whose import of a file that is called so stands."""
    runs = {record.run for record in books_of(context).bank.imports if Path(name).name == record.name}
    return runs.pop() if len(runs) == 1 else None


def stage_run_revert(case: RevertCase) -> None:
    """Stage that what a run imported or posted is not there any more, but for what people have decided about."""
    if any(record.run == case.run.run for record in books_of(case.context).bank.imports):
        _undo_import(case)
    else:
        _void_entries(case)


def _undo_import(case: RevertCase) -> None:
    host, result = case.decision_context.host, UndoneFiles()
    undoing = ImportUndoing(host, case.decision_context, case.name, "", result)
    case.run.kept += undoing.stage(case.reason, keeps_decided=True)
    case.run.voided += result.entries
    case.run.again += _list_ways_again(case)


def _list_ways_again(case: RevertCase) -> Iterator[str]:
    """How each file of the import is imported again: from where it lies, else as the run's commit has it, else from
    elsewhere."""
    layout = case.decision_context.host.layout
    names = {r.file_sha256: r.name for r in books_of(case.context).bank.all_imports if r.run == case.run.run}
    here, chosen = find_kept_files(layout, names), set[str]()
    paths = (path for path in case.commit.files or () if path.startswith(f"{layout.processed_dir}/"))
    drop_folder = layout.root / layout.import_dir

    def is_taken(name: str) -> bool:  # what waits in the folder under this name is not to be lost
        return name in chosen or os.path.lexists(drop_folder / name)

    committed = {digest_file(case.after.read_file(path) or b""): path for path in paths}
    for digest, name in names.items():
        if digest in here:
            yield f"cleared import {quote(here[digest])}"
        elif digest in committed:
            shown = quote(f"{case.commit.short}:{committed[digest]}")
            wanted = mend_name(PurePosixPath(name).name, "file")  # whatever name somebody pushed
            place = choose_free_name(wanted, is_taken)
            chosen.add(place)
            yield f"git show {shown} > {quote(f'{layout.import_dir}/{place}')} && cleared agent run {case.run.agent}"
        else:
            yield f"put {name} into {layout.import_dir}/ once more; no copy of it is kept here"


def _void_entries(case: RevertCase) -> None:
    before, after = CommittedSource(case.before), CommittedSource(case.after)
    layout, books = case.decision_context.host.layout, books_of(case.context).books
    made, _ = open_books(layout, after)
    for entry_id in EntryComparison().read_added(layout, before, after, case.commit.files or ()):
        entry = books.find_entry(entry_id)
        if entry is None or entry.status == "voided" or not entry.is_same_posting(made.find_entry(entry_id)):
            continue
        if describe_decided(books, entry):
            case.run.kept.append(entry_id)
            continue
        if books.periods.is_closed(entry.date):
            raise PolicyError(
                f"{entry_id} of {entry.date} lies in a period that is closed (through {books.periods.closed_through})",
                remedy=f"Reopen it first: cleared period reopen {entry.date} --reason …",
            )
        void_with_corrections(case.context, entry_id, case.reason)
        case.run.voided.append(entry_id)
    if case.run.voided:
        case.run.again.append(f"cleared agent run {case.run.agent}")
