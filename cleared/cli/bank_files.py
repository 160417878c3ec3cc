"""``cleared import``: files that a bank gave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import asdict

from cleared.base.errors import Interrupted, PrimitiveError
from cleared.base.safe_files import read_stable
from cleared.base.terminal import count_noun, print_fields, print_json, print_line, print_message, print_table
from cleared.books.bank_files import ImportFileError
from cleared.books.bank_files.account_matching import resolve_account
from cleared.books.bank_files.file_reading import read_file
from cleared.books.bank_files.preview import describe_file, describe_statement, list_notes
from cleared.books.decisions.import_undoing import undo_import
from cleared.books.importing.bank_file import check_currency
from cleared.books.importing.handed_files import HandedFile, LeftFile, copy_to_drop_folder, find_readers, sort_files
from cleared.books.importing.held_rows import mark_foreign_rows
from cleared.books.importing.kept_bank_files import refuse_altered_bank_files
from cleared.books.ledger.bank_row import ParsedFile
from cleared.books.queries import open_committed_books
from cleared.changes.host import Host
from cleared.cli.agent import print_run
from cleared.cli.command_groups import DefaultingGroup
from cleared.cli.options import JsonOption, ReasonOption, WorkspaceOption, open_host, open_host_once
from cleared.gate.manual_runs import run_command
from cleared.runs.run_queries import read_agents
from cleared.sandbox.worker_pool import share_processor
from cleared.workspace.process_lock import find_running_service


class ImportGroup(DefaultingGroup):
    """``cleared import FILE…`` is ``cleared import files FILE…``."""

    default = "files"


app = typer.Typer(cls=ImportGroup, rich_markup_mode=None)


@app.command("files")
def import_bank_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Bank files, recognised by their content.")],
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what is understood of one file; write nothing.")
    ] = False,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Run the agents that watch import/.")] = True,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> None:
    """Import bank files: copy those that are recognised into import/, and run the agents that watch it.

    The word files may be left out: cleared import FILE….

    What is no bank file, or of no known account, stays where it is, and is named. --preview --json prints
    {format, notes, statements: [{account, bank, currency, opening, closing, rows}]}; it exits with 1 for a refused
    file.
    """
    host = open_host(workspace) if preview else open_host_once(workspace, json=json)
    if preview:
        if len(files) != 1:
            raise typer.BadParameter("--preview takes one file")
        preview_bank_file(host, files[0], json=json)
        return
    refuse_altered_files(host, files)
    handed, left = sort_files(files, host.config, host.decimal_places)
    names = copy_to_drop_folder(host.root, host.layout.import_dir, handed)
    import_handed_files(host, handed, names, left, run=run, json=json)


def refuse_altered_files(host: Host, files: Sequence[Path]) -> None:
    """Raises ``PolicyError`` for a file that was imported, and that a commit has altered since."""
    with host.open_last_commit() as snapshot:
        refuse_altered_bank_files(host.layout, snapshot, files)


def preview_bank_file(host: Host, path: Path, *, json: bool) -> None:
    """Print what is understood of a file. Raises ``ImportFileError`` where it is refused."""
    data, _ = read_stable(path.resolve(), host.config.import_.max_bytes, shown=str(path))
    parsed = read_file(path.name, data, host.config, host.decimal_places)
    if json:
        print_json(describe_file(parsed))
    else:
        print_statements(host, path.name, parsed)


def print_statements(host: Host, name: str, parsed: ParsedFile) -> None:
    """Each statement and its rows and which bank account it goes to."""
    for note in list_notes(parsed):
        print_message(f"cleared: {name}: {note}")
    base = host.config.business.currency
    for each in parsed.statements:
        statement = each
        try:
            account = resolve_account(name, parsed, host.config, statement)
            target = f"{account.id} ({account.ledger_account})"
            check_currency(name, [statement], account, base)
            (statement,) = mark_foreign_rows([statement], account.currency or base)
        except ImportFileError as error:
            target = f"none yet: {error.message}"
        except PrimitiveError as error:
            target += f", which does not take it: {error.message}"
        shown = describe_statement(statement)
        rows: list[dict[str, Any]] = shown["rows"]
        fields = {
            "format": parsed.format,
            "account": shown["account"],
            "bank": shown["bank"] or None,
            "currency": shown["currency"],
            "opening": shown["opening"],
            "closing": shown["closing"],
            "rows": len(rows),
            "goes to": target,
        }
        print_fields((key, value) for key, value in fields.items() if value is not None)
        print_table(
            ["date", "amount", "description", "bank id", "state"],
            ((r["date"], r["amount"], r["description"], r["bank_id"], r["state"]) for r in rows),
            wrap=["description"],
            empty="It has no rows.",
        )


def import_handed_files(
    host: Host,
    handed: Sequence[HandedFile],
    names: Sequence[str],
    left: Sequence[LeftFile],
    *,
    run: bool,
    json: bool,
    needs_files: bool = True,
) -> None:
    """Run the agents that watch the drop folder, for files that were copied there; say what became of each.

    Exits with 1 where nothing could be imported (and ``needs_files``), a bank file was left, or a run failed.
    """
    paths = [f"{host.layout.import_dir}/{name}" for name in names]
    for file in left:
        print_message(f"cleared: {file.describe()}")
    if not json:
        for path, copied in zip(paths, handed, strict=True):
            print_line(f"{path}  {copied.parsed.format} → {', '.join(copied.accounts)}")
    for handed_file in handed:
        for note in handed_file.parsed.notes:
            print_message(f"cleared: {handed_file.name}: {note}")
    _name_known_files(host, handed)
    try:
        runs = _run_watching_agents(host, paths) if run and paths else []
    except (Interrupted, KeyboardInterrupt):
        if left_over := [path for path in paths if (host.root / path).exists()]:
            print_message(f"cleared: the next import takes these, unless you delete them: {', '.join(left_over)}")
        raise
    if json:
        print_json(
            {
                "files": [
                    {"file": path, "format": f.parsed.format, "accounts": list(f.accounts)}
                    for path, f in zip(paths, handed, strict=True)
                ],
                "left": [{"file": str(f.source), "reason": str(f.error)} for f in left],
                "runs": [each.to_json_object() for each in runs],
            }
        )
    elif paths and not run:
        print_message("Next: cleared agent run NAME")
    failed = False
    for each in runs:
        if _print_outcome(each, json=json):
            failed = True
            folder = f"{host.layout.import_dir}/"
            print_message(f"cleared: the files stay in {folder}. Once that is mended: cleared agent run {each.agent}")
    waiting = [path for path in paths if runs and not failed and (host.root / path).exists()]
    for path in waiting:
        print_message(f"cleared: {path} was not imported. Its card says why: cleared queue list")
    if failed or waiting or (needs_files and not handed) or any(file.is_bank_file for file in left):
        raise typer.Exit(1)


def _name_known_files(host: Host, handed: Sequence[HandedFile]) -> None:
    """Say of which files every byte came before: their runs post nothing."""
    from hashlib import sha256

    if not handed:
        return
    with open_committed_books(host) as (_repo, _snapshot, _books, bank):
        known = {record.file_sha256: record for record in bank.imports}
    for file in handed:
        if (same := known.get(sha256(file.data).hexdigest())) is not None:
            print_message(
                f"cleared: {file.name} is the same file as {same.name}, imported {same.imported_at[:10]}: "
                "nothing of it is new"
            )


def _run_watching_agents(host: Host, paths: Sequence[str]) -> list[Any]:
    """Run each approved agent that watches for one of the files; where cleared up is at work, it does so."""
    if find_running_service(host.layout.state_dir) is not None:
        print_message("cleared up is at work here: it imports them")
        return []
    agents = find_readers(read_agents(host), paths)
    if not agents:
        print_message(f"No approved agent watches {host.layout.import_dir}/. Next: cleared agent run NAME")
    with share_processor():
        return [run_command(host, name) for name in agents]


def _print_outcome(result: Any, *, json: bool) -> bool:
    """How a run ended; whether it failed."""
    try:
        print_run(result, json=False, quiet=json)
    except typer.Exit:
        return True
    return False


@app.command("undo")
def undo_bank_import(
    name: Annotated[str, typer.Argument(metavar="RUN|FILE", help="The run, or the file's name or path.")],
    reason: ReasonOption = "",
    despite: Annotated[
        str, typer.Option("--despite", metavar="REASON", help="Why to take back what somebody has decided, too.")
    ] = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Take back a whole import, in one commit: void its entries and release its lines, so that the file can come again.

    Lines that another imported file has, too, stay. Refused where a day of it is closed, and where somebody has
    confirmed, corrected or reconciled what it brought.
    """
    done = undo_import(open_host(workspace), name, reason=reason, despite=despite)
    if json:
        print_json(asdict(done))
        return
    entries, lines = count_noun(len(done.entries), "entry", "entries"), count_noun(len(done.lines), "bank line")
    print_line(f"Undone: {', '.join(done.files)}; {entries} voided, {lines} released ({done.commit[:10]}).")
    if done.kept:
        stay = "stays as it is" if len(done.kept) == 1 else "stay as they are"
        print_message(f"{count_noun(len(done.kept), 'bank line')} that another file has, too, {stay}")
