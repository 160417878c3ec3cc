"""Reading one bank file: recognise its format, decode it, parse it, hold it against the limits (B6, B10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from cleared.base import money
from cleared.base.clock import DeadlineExceeded, check_deadline
from cleared.base.errors import Place
from cleared.books.bank_files.account_matching import lies_in
from cleared.books.bank_files.base import (
    SAMPLE_BYTES,
    Fault,
    Faults,
    Importer,
    ImportFileError,
    Sample,
    is_windows_text,
    quote_text,
)
from cleared.books.bank_files.cell_values import find_places
from cleared.books.bank_files.csv_table import quote_columns, read_header, too_many_rows_error
from cleared.books.bank_files.plugins import BUILT_IN, load_bank_presets, load_importers
from cleared.books.bank_files.text_decoding import decode_text, refuse_binary, refuse_nul
from cleared.books.ledger.bank_row import BankRow, ParsedFile
from cleared.workspace.settings.model import Config, Limits


def read_file(name: str, data: bytes, config: Config, places: int, format: str | None = None) -> ParsedFile:
    """The rows of the bank file ``name`` (relative to ``import/``), all of them or an ``ImportFileError``.

    ``places``: decimals of the account's currency. ``format``: an importer's or profile's name; None detects
    it. Rows of amount zero are kept: whether they matter is not the file's business.

    Raises ``ImportFileError`` for anything wrong with the file: faults of up to 20 lines at once, the first
    one in a row each. Raises ``WorkspaceError`` for importers that cannot be set up.
    """
    sample = Sample(name, data[:SAMPLE_BYTES])
    importers = load_importers(config, sample, format)
    try:
        if format is None:
            format = _detect_among(sample, data, config, importers)
        else:
            _refuse_outright(data, config)
            if format not in importers and format not in load_bank_presets(config):
                known = sorted({*BUILT_IN, *importers, *load_bank_presets(config)})
                raise ImportFileError(
                    f"there is no import format {quote_text(format)}; known are {', '.join(known)}",
                    place=Place(field="format"),
                    remedy="Use one of these, or add a profile under import.profiles in config.yaml",
                )
        importer = importers[format] if format in importers else load_bank_presets(config)[format]
        encoding = _find_encoding(importer, data)
        text = decode_text(data, encoding, format if format in config.import_.profiles else None)
        if not text.strip():
            raise _empty_file_error()
        return _parse_text(importer, text, places, config)
    except ImportFileError as error:
        raise error.of_file(name) from error.__cause__


def detect_format(name: str, data: bytes, config: Config) -> str:
    """The name of the one format that recognises the file. Raises as ``read_file`` does.

    Where several do, the one that ``format:`` of a bank account names wins, among the accounts whose folder
    the file may lie in; more than one is refused.
    """
    sample = Sample(name, data[:SAMPLE_BYTES])
    try:
        return _detect_among(sample, data, config, load_importers(config, sample))
    except ImportFileError as error:
        raise error.of_file(name) from error.__cause__


def _detect_among(sample: Sample, data: bytes, config: Config, importers: Mapping[str, Importer]) -> str:
    name = sample.name
    _refuse_outright(data, config)
    matching = _ask_importers(sample, config, importers)
    if not matching and is_windows_text(sample.data, "utf-8"):  # its column heads may have accents
        matching = _ask_importers(Sample(name, sample.view("cp1252").encode()), config, importers)
    named = {
        format for account in config.bank_accounts if lies_in(name, account.match.folder) for format in account.formats
    }
    variants = {format for format in named if getattr(importers.get(format), "variant_of", None) in matching}
    if len(matching) == 1 and len(variants) == 1:
        return variants.pop()
    if len(matching) > 1:
        declared = [n for n in matching if n in named]
        matching = declared if len(declared) == 1 else matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise ImportFileError(
            f"the formats {' and '.join(matching)} both match" + " it" * (len(matching) == 2),
            place=Place(field="format"),
            remedy="Set `format:` of its bank account in config.yaml to the one that is right, such as "
            f"{matching[0]}, or remove the other from import.profiles. A script can say it, too: importer_parse(name, "
            "format=…)",
        )
    refuse_nul(data)
    header = read_header(sample.text) or (1, [])
    raise ImportFileError(
        f"no known format has its columns, {quote_columns(header[1]) or 'which cannot be made out'}",
        place=Place(line=header[0]),
        remedy="Say what they mean: cleared bank add FILE",
    )


def _refuse_outright(data: bytes, config: Config) -> None:
    allowed = config.import_.max_bytes
    if len(data) > allowed:
        raise ImportFileError(
            f"the file has {len(data)} bytes; {allowed} are allowed",
            remedy="Split the file, or raise `max_bytes:` under import in config.yaml",
        )
    if not data.strip(b" \t\r\n\xef\xbb\xbf"):
        raise _empty_file_error()
    refuse_binary(data)


def _empty_file_error() -> ImportFileError:
    return ImportFileError("the file is empty", remedy="Download it again")


def _ask_importers(sample: Sample, config: Config, importers: Mapping[str, Importer]) -> list[str]:
    """The names of the formats that recognise the file: a bank's preset only where no other does."""
    matching = [name for name, importer in importers.items() if _ask_importer(importer, sample)]
    return matching or [name for name, preset in load_bank_presets(config).items() if _ask_importer(preset, sample)]


def _ask_importer(importer: Importer, sample: Sample) -> bool:
    beginnings = getattr(importer, "beginnings", "")
    if hasattr(importer, "variant_of") or (beginnings and sample.first not in beginnings):
        return False
    try:
        return importer.identify(sample)
    except Exception as error:  # somebody else's code
        raise _importer_error(importer, error) from error


def _parse_text(importer: Importer, text: str, places: int, config: Config) -> ParsedFile:
    faults = Faults()
    parsed: ParsedFile | None = None
    rows: Sequence[BankRow]
    try:
        try:
            parsed = importer.parse(text, places)
            rows = parsed.rows
        except ImportFileError as error:
            if not error.faults:
                raise
            rows = error.rows
            faults = Faults(list(error.faults), error.more)
        if len(rows) > config.import_.max_rows:
            raise too_many_rows_error(config.import_.max_rows)
        _check_statements(importer, parsed, rows, config.limits, places, faults)
    except (ImportFileError, DeadlineExceeded):
        raise
    except Exception as error:  # a plug-in is somebody else's code: its file is left out, without a traceback
        raise _importer_error(importer, error) from error
    if faults or parsed is None:
        raise faults.error(remedy="Correct the file or download it again; nothing of it was taken")
    if all(statement.says_nothing for statement in parsed.statements):
        raise ImportFileError(
            "the file has column headers and no rows",
            remedy="Remove it, or download it for a period that has transactions",
        )
    return parsed


def _importer_error(importer: Importer, error: Exception) -> ImportFileError:
    return ImportFileError(
        f"the importer {importer.name} failed on it: {type(error).__name__}: {error}",
        remedy="Report this to the importer's author, or choose another format",
    )


def _find_encoding(importer: Importer, data: bytes) -> str:
    declares = getattr(importer, "find_encoding", None)
    if declares is None:
        return getattr(importer, "encoding", None) or "utf-8"
    try:
        return str(declares(data))
    except ImportFileError:
        raise
    except Exception as error:  # somebody else's code
        raise _importer_error(importer, error) from error


def _check_statements(
    importer: Importer, parsed: ParsedFile | None, rows: Sequence[BankRow], limits: Limits, places: int, faults: Faults
) -> None:
    """Add to ``faults`` every row and balance outside the configured limits; one fault a row."""
    numbered = bool(getattr(importer, "numbers_rows", False))
    if parsed is None:
        check_rows(rows, limits, places, faults, numbered)
        return
    for statement in parsed.statements:
        own = find_places(statement.currency, places)
        check_rows(statement.rows, limits, own, faults, numbered)
        for name, balance in (("opening", statement.opening), ("closing", statement.closing)):
            if balance is not None and (reason := _check_amount(balance.amount, limits.max_amount, own)):
                faults.add(0, f"the {name} balance: {reason}")
        for text in (statement.account, statement.bank):
            if reason := _check_text(text, limits.max_text_bytes):
                faults.add(0, f"the account's number: {reason}")


def check_rows(
    rows: Sequence[BankRow], limits: Limits, places: int, faults: Faults, are_numbered: bool = False
) -> None:
    """Add to ``faults`` every row outside the configured limits; one fault a row. ``are_numbered``: ``row`` is no
    line of the file."""
    for row in check_deadline(rows):
        reason = _check_row(row, limits, find_places(row.currency, places))
        if reason and are_numbered:
            faults.add(0, f"transaction {row.row} ({reason[1]}): {reason[0]}")
        elif reason:
            faults.extend([Fault(row.row, *reason)])


def _check_row(row: BankRow, limits: Limits, places: int) -> tuple[str, str] | None:
    for day, field in ((row.posted_date, "date"), (row.transaction_date, "transaction_date")):
        if day is not None and not limits.min_date <= day <= limits.max_date:
            return f"{day} is outside {limits.min_date} to {limits.max_date}", field
    for amount, field in ((row.amount, "amount"), (row.balance, "balance"), (row.fee, "fee")):
        if amount is not None and (reason := _check_amount(amount, limits.max_amount, places)):
            return reason, field
    texts = ((row.description, "description"), (row.type, "type"), (row.bank_id, "id"), (row.corrects, "corrects"))
    for text, field in texts:
        if text and (reason := _check_text(text, limits.max_text_bytes)):
            return reason, field
    return None


def _check_amount(amount: Decimal, most: Decimal, places: int) -> str | None:
    if type(amount) is Decimal and amount.same_quantum(money.quantum(places)) and amount.copy_abs() <= most:
        return None
    try:
        exact = money.decode(amount, places)
    except ValueError as error:
        return str(error)
    # copy_abs: abs() would round to the ambient precision.
    if exact.copy_abs() > most:
        return f"{money.format_amount(exact)} is beyond the largest amount allowed, {money.format_amount(most)}"
    return None


def _check_text(text: str, most: int) -> str | None:
    try:
        size = len(text) if text.isascii() else len(text.encode("utf-8"))
    except UnicodeEncodeError:
        return "the text holds half a character (a lone surrogate)"
    if size > most:
        return f"the text has {size} bytes; {most} are allowed"
    return "the text holds a NUL character" if "\0" in text else None
