"""Bank accounts: those there are, and adding one by a file that the bank gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from starlette.responses import Response

from cleared.base.errors import ClearedError, PolicyError, UsageError
from cleared.base.short_text import parse_count, quote_name
from cleared.base.temporary_folders import open_temporary_folder
from cleared.books.bank_files import ImportFileError
from cleared.books.bank_files.cell_values import DATE_FORMATS
from cleared.books.bank_files.file_reading import detect_format
from cleared.books.bank_files.preview import describe_file
from cleared.books.bank_files.unknown_table import ReadTable, read_table
from cleared.books.decisions.bank_adding import add_bank_accounts, refuse_unreadable
from cleared.books.decisions.bank_agreement import list_completeness
from cleared.books.importing.bank_setup import AccountChoices, BankSetup
from cleared.books.importing.handed_files import copy_to_drop_folder, sort_files
from cleared.books.importing.new_bank_files import (
    Understanding,
    choose_profile_name,
    plan_file,
    understand_file,
    write_setup,
)
from cleared.changes.decisions.shown_cards import digest_shown
from cleared.changes.host import Host
from cleared.web.form_answers import answer_form
from cleared.web.page import PageRequest
from cleared.web.unknown_files import UnknownFile
from cleared.web.upload import import_files
from cleared.workspace.process_lock import find_running_service

ROWS_SHOWN: Final = 5
COLUMN_FIELDS: Final = {
    "date": "Day",
    "description": "Text",
    "amount": "Amount",
    "debit": "Money out",
    "credit": "Money in",
    "more_description": "More text",
    "balance": "Balance",
    "fee": "Fee",
    "transaction_date": "Day it was made",
    "state": "Pending or posted",
    "direction": "In or out, as a word",
    "id": "The bank’s number of it",
    "type": "Kind",
    "currency": "Currency",
}
"""What a column may mean, and what that is called on the page."""
_ACCOUNT_TYPES: Final = {
    "checking": "Checking",
    "savings": "Savings",
    "credit_card": "Credit card",
    "processor": "Payment processor",
    "other": "Other",
}
_TEXTS: Final = ("date_format", "decimal", "sign", "fee", "delimiter", "encoding")
_MAX_COLUMNS: Final = 60
_SAMPLE_DAY: Final = date(2025, 12, 31)


class _Plan(Struct, frozen=True):
    """What is understood of a file, and what would be written for it."""

    table: ReadTable | None
    """Its columns; None where its format is known."""
    columns: dict[str, str]
    """Column → what it is taken for."""
    understanding: Understanding
    setup: BankSetup | None = None
    """None while something has to be said."""
    problem: str = ""

    def digest(self, file: UnknownFile) -> str:
        """The digest of all that is shown of it."""
        profile, setup = self.understanding.profile, self.setup
        return digest_shown([file.data.hex(), repr(profile), setup and [setup.new, setup.changes]])


def show_bank(page: PageRequest) -> Response:
    """The bank accounts, how far each is complete, and the files that wait to be described."""
    host = page.site.open_host()
    return page.render(
        "bank.html",
        accounts=host.config.bank_accounts,
        types=_ACCOUNT_TYPES,
        complete={each["account_id"]: each for each in list_completeness(host)},
        files=page.site.unknown_files.list_files(),
    )


def show_unknown_file(page: PageRequest, problem: str = "") -> Response:
    """A file as it is understood with what was said so far, and the form to say more."""
    host, file = page.site.open_host(), page.site.unknown_files.find(page.part("file"))
    plan = _make_plan(page, host, file)
    parsed = plan.understanding.parsed
    told = describe_file(parsed) if parsed is not None else None
    return page.render(
        "bank_file.html",
        file=file,
        problem=problem or plan.problem,
        questions=plan.understanding.questions,
        missing=plan.understanding.questions.get("--column", "").partition(" --")[0],
        table=plan.table,
        samples=_list_samples(plan.table),
        heads=digest_shown(plan.table.names) if plan.table is not None else "",
        columns=plan.columns,
        fields=COLUMN_FIELDS,
        profile=plan.understanding.profile,
        told=told,
        rows_shown=ROWS_SHOWN,
        setup=plan.setup,
        types=_ACCOUNT_TYPES,
        date_formats=[(form, f"{_SAMPLE_DAY:{form}}") for form in DATE_FORMATS],
        accounts=host.config.bank_accounts,
        digest=plan.digest(file),
        said=_list_said(page),
    )


def add_bank(page: PageRequest) -> Response:
    """Add the account, as it was shown, and import the file."""
    host, file = page.site.open_host(), page.site.unknown_files.find(page.part("file"))
    if page.form.get("choice") == "forget":
        page.site.unknown_files.forget(file.id)
        return page.go_to("/bank", f"{quote_name(file.name)} is not kept any more")

    def add() -> str:
        plan = _make_plan(page, host, file)
        if plan.problem or plan.setup is None or plan.understanding.parsed is None:
            raise UsageError(plan.problem or "the file does not say everything", remedy="Answer what is asked.")
        if plan.digest(file) != page.form.get("digest"):
            raise PolicyError(
                f"what {quote_name(file.name)} needs has changed since it was shown", remedy="Look at it again."
            )
        edit = partial(write_setup, profile=plan.understanding.profile, setup=plan.setup)
        with _placed(file) as path:
            if plan.understanding.profile is not None or plan.setup.changes:
                refuse_unreadable(host, path, edit)
            if plan.understanding.profile is not None or plan.setup.account_ids:
                add_bank_accounts(host, edit, plan.setup, plan.understanding.parsed.format)
            said = _import_file(page, path)
        page.site.unknown_files.forget(file.id)
        return said

    return answer_form(
        page, add, show_unknown_file, what=f"Add the bank account of {file.name}", back="/", is_long=True
    )


def _import_file(page: PageRequest, path: Path) -> str:
    host = page.site.open_host()  # by the settings as they are now
    handed, left = sort_files([path], host.config, host.decimal_places)
    if left:
        raise left[0].error
    names = copy_to_drop_folder(host.root, host.layout.import_dir, handed)
    if find_running_service(host.layout.state_dir) is not None:
        return f"{', '.join(map(quote_name, names))} is handed in"
    told = list(import_files(host, names))
    return "; ".join([", ".join(map(quote_name, names)), *(each.text for each in told)])


@contextmanager
def _placed(file: UnknownFile) -> Iterator[Path]:
    with open_temporary_folder("upload") as folder:
        path = folder / file.name
        path.write_bytes(file.data)
        yield path


def _make_plan(page: PageRequest, host: Host, file: UnknownFile) -> _Plan:
    known, table = _read_known(page, host, file)
    choices = _read_choices(page)
    types = {account.id: account.type for account in host.config.bank_accounts}
    kind = types.get(choices.existing or "", choices.type)
    name = choose_profile_name(host.config, choices.id, file.name)
    understood = Understanding(host.config)
    try:
        understood = understand_file(
            host.config, host.decimal_places, file.name, file.data, known, name, is_card=kind == "credit_card"
        )
        setup = (
            plan_file(host, file.name, understood.parsed, understood.config, choices)
            if understood.parsed is not None
            else None
        )
    except ClearedError as error:
        return _Plan(table, _name_columns(known, understood), understood, problem=" ".join(str(error).split()))
    return _Plan(table, _name_columns(known, understood), understood, setup)


def _read_known(page: PageRequest, host: Host, file: UnknownFile) -> tuple[dict[str, Any], ReadTable | None]:
    """What was said of the columns, and the columns themselves, where the file has no known format."""
    known: dict[str, Any] = {key: page.read_value(key)[:40] or None for key in _TEXTS}
    known["delimiter"] = "\t" if known["delimiter"] == "tab" else known["delimiter"]
    known["skip_lines"] = parse_count(page.read_value("skip_lines"), 3) if page.read_value("skip_lines") else None
    words = page.read_value("pending")[:300]
    pending = tuple(filter(None, map(str.strip, words.split(","))))
    known["pending"] = None if not words else () if pending == ("none",) else pending
    known["columns"] = {}
    if not any(known.values()) and not page.read_value("told"):
        try:
            detect_format(file.name, file.data, host.config)
        except ImportFileError:
            pass
        else:
            return known, None
    try:
        table = read_table(file.data, known)
    except ImportFileError:
        return known, None
    if page.read_value("told") == digest_shown(table.names):  # about these columns, and not those of another line
        chosen = {name: page.read_value(f"c{at}") for at, name in enumerate(table.names[:_MAX_COLUMNS])}
        known["columns"] = {field: name for name, field in chosen.items() if field in COLUMN_FIELDS}
        known["columns"].pop("more_description", None)
        known["more_description"] = tuple(name for name, field in chosen.items() if field == "more_description")
        known["unused"] = tuple(name for name, field in chosen.items() if not field)
    return known, table


def _name_columns(known: Mapping[str, Any], understood: Understanding) -> dict[str, str]:
    """Column → what it is taken for: as it is understood, else as somebody said."""
    found = understood.guessed or known
    columns = {name: field for field, name in found["columns"].items()}
    return columns | dict.fromkeys(found.get("more_description") or (), "more_description")


def _read_choices(page: PageRequest) -> AccountChoices:
    number = page.read_value("ledger_account")
    if number and parse_count(number, 9) is None:
        raise UsageError(f"{number[:20]!r} is no account’s number", remedy="Write digits, such as 1020.")
    kind = page.read_value("type")
    return AccountChoices(
        page.read_value("id")[:40] or None,
        page.read_value("name")[:100] or None,
        kind if kind in _ACCOUNT_TYPES else None,
        int(number) if number else None,
        page.read_value("account") or None,
    )


def _list_samples(table: ReadTable | None) -> dict[str, list[str]]:
    """Some of what stands in each column."""
    cells = table.cells.items() if table is not None else ()
    return {name: list(islice(filter(None, column), 3)) for name, column in cells}


def _list_said(page: PageRequest) -> list[tuple[str, str]]:
    """All that was said so far, to be sent along with the decision."""
    names = [*_TEXTS, "skip_lines", "pending", "id", "name", "type", "ledger_account", "account", "told"]
    names += [f"c{at}" for at in range(_MAX_COLUMNS)]
    return [(name, page.read_value(name)) for name in names if page.read_value(name)]
