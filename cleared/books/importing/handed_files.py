"""Files that a person hands in: which are bank files, of which accounts, and copying them into the drop folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from msgspec import Struct

from cleared.base.errors import ClearedError, Place, UsageError
from cleared.base.safe_files import read_stable, write_atomic
from cleared.base.safe_names import mend_name
from cleared.base.short_text import quote_name
from cleared.books.bank_files import ImportFileError
from cleared.books.bank_files.account_matching import resolve_accounts
from cleared.books.bank_files.file_reading import detect_format, read_file
from cleared.books.importing.bank_file import check_currency
from cleared.books.ledger.bank_row import ParsedFile
from cleared.workspace.settings.model import Config
from cleared.workspace.watched_names import is_ready_name


class HandedFile(Struct, frozen=True):
    """A file that can be imported. ``name``: what it will be called, relative to the drop folder; that differs from the
    source's where no script could be given that."""

    source: Path
    name: str
    data: bytes
    parsed: ParsedFile
    accounts: tuple[str, ...]
    """The ids of its bank accounts."""


class LeftFile(Struct, frozen=True):
    """A file that is left where it is, and why. ``is_bank_file``: its format is known."""

    source: Path
    error: ClearedError
    is_bank_file: bool

    def describe(self) -> str:
        """The file, by its name alone, and the reason, in a sentence."""
        place = self.error.place
        reason = str(self.error).removeprefix(f"{place}: ") if place is not None else str(self.error)
        field = f" ({place.field})" if place is not None and place.field else ""
        at = f"line {place.line}{field}: " if place is not None and place.line else ""
        return f"{quote_name(self.source.name)} was not imported: {at}{reason}"


def sort_files(sources: Iterable[Path], config: Config, places: int) -> tuple[list[HandedFile], list[LeftFile]]:
    """Which files can be imported, and which are left. Folders among several files are passed over.

    Raises ``ClearedError`` for a file that cannot be opened, and where two have one name.
    """
    given = list(sources)
    handed: list[HandedFile] = []
    left: list[LeftFile] = []
    for source in given:
        if len(given) > 1 and source.is_dir():
            continue
        data, _ = read_stable(source.resolve(), config.import_.max_bytes, shown=str(source))
        try:
            handed.append(_recognise_file(source, data, config, places))
        except ClearedError as error:
            left.append(LeftFile(source, error, _has_known_format(source.name, data, config)))
    named: dict[str, str] = {}
    for file in handed:
        name, other = file.source.name, named.setdefault(file.name, file.source.name)
        if other != name:
            raise UsageError(
                f"{other!r} and {name!r} would have the same name once made plain, {file.name!r}",
                remedy="Rename one of them.",
            )
    if len(named) < len(handed):
        raise UsageError("two of the files have the same name", remedy="Import them one after the other.")
    return handed, left


def _recognise_file(source: Path, data: bytes, config: Config, places: int) -> HandedFile:
    """A file of an account that has a folder of its own is called after it."""
    plain = mend_name(source.name, "file")
    if not is_ready_name(plain):
        raise UsageError(
            "its name is that of a file which a program has not finished, and nothing would read it",
            place=Place(str(source), field="name"),
            remedy="Wait until it is finished, or rename it.",
        )
    folders = dict.fromkeys(account.match.folder for account in config.bank_accounts)
    names = [plain, *(f"{folder.strip('/').removeprefix('import/')}/{plain}" for folder in folders if folder)]
    parsed = read_file(plain, data, config, places)
    failure: ImportFileError | None = None
    for name in names:
        try:
            accounts = resolve_accounts(name, parsed, config)
        except ImportFileError as error:
            failure = failure or error
        else:
            for account, statements in accounts:
                check_currency(str(source), statements, account, config.business.currency)
            return HandedFile(source, name, data, parsed, tuple(account.id for account, _ in accounts))
    assert failure is not None
    raise failure.of_file(str(source))


def _has_known_format(name: str, data: bytes, config: Config) -> bool:
    try:
        detect_format(name, data, config)
    except ClearedError:
        return False
    return True


def find_readers(agents: Iterable[Mapping[str, Any]], paths: Collection[str]) -> list[str]:
    """The names of the agents that may run and watch for one of the files (of ``read_agents``)."""
    approved = (agent for agent in agents if agent["state"] in ("approved", "starter"))
    return [a["name"] for a in approved if any(_watches(w, path) for w in a["watch"] for path in paths)]


def _watches(watched: str, path: str) -> bool:
    return path.startswith(f"{watched.rstrip('/')}/") or fnmatch(path, watched)


def copy_to_drop_folder(root: Path, import_dir: str, files: Iterable[HandedFile]) -> list[str]:
    """Copy files into the drop folder, each atomically, so that no watcher sees half of one; the names they got.

    One that waits there already stays: a command that was killed is said again. Raises ``UsageError`` where another
    file has the name; then nothing was copied.
    """
    given = list(files)
    for file in given:
        target = root / import_dir / file.name
        if target.exists() and not (target.is_file() and target.read_bytes() == file.data):
            raise UsageError(
                f"{import_dir}/{file.name} is waiting there already", remedy="Run the agent first, or rename the file."
            )
    for file in given:
        target = root / import_dir / file.name
        target.parent.mkdir(exist_ok=True)
        if not target.exists():
            write_atomic(target, file.data)
    return [file.name for file in given]
