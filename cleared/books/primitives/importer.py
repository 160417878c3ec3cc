"""``importer_*``: bank files in, transactions out."""

# Without annotations from __future__: each type would be a text, compiled when what a primitive takes is read.

from cleared.base.clock import check_deadline, format_iso
from cleared.base.errors import Place, PrimitiveError
from cleared.books.importing.bank_file import ImportFile, find_entry_day
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.primitives.book_shapes import BankFile, Processed, Transaction
from cleared.books.staged_books import books_of
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Json, Line, Text, Whole


@primitive(effect=Effect.STAGE, grant="importer.read")
def importer_scan(ctx: Context) -> list[BankFile]:
    """The files in ``import/`` that can be read, by name, with their format and account.

    Every file is parsed once here; one that is refused stays where it is, gets a card, and is left out.
    """
    return [
        {
            "name": f.name,
            "path": f"{books_of(ctx).imports.layout.import_dir}/{f.file_name}",
            "size": len(f.data),
            "format": f.format,
            "account": f.account.id,
            "ledger_account": f.account.ledger_account,
        }
        for f in books_of(ctx).imports.scan_folder()
    ]


@primitive(effect=Effect.STAGE, grant="importer.read")
def importer_parse(
    ctx: Context, filename: Line, format: Line | None = None, offset: Whole = 0, limit: Whole | None = None
) -> list[Transaction]:
    """The new transactions of a file, in file order.

    Rows that are in the books already are left out and recorded with the line they repeat; pending rows are
    recorded and left out; rows in another currency than the account's, and those whose day is closed, are held with a
    card each. ``amount`` is negative for money out. Each dict's ``reference`` identifies the line: pass
    it on when posting; ``bank_id`` is the bank's own id, empty where the file has none; ``fee`` is what a processor
    kept (negative; the gross is ``amount - fee``), None where the file does not say. Every row given must be posted,
    held or ignored before the file can be marked processed. Of a large file, ``offset`` and ``limit`` give a part at a
    time, so that a script never holds all of it: ``limit`` of them after the first ``offset``; none are left where the
    list is empty.
    """
    for name, number in (("offset", offset), ("limit", limit or 0)):
        if number < 0:
            raise PrimitiveError(f"{name} is {number}", place=Place(field=name), remedy="Count from 0.")
    file = books_of(ctx).imports.take_new_rows(filename, format)
    if not offset:
        held = f", {len(file.held)} held" if file.held else ""
        said = f"{filename}: {len(file.new)} new, {len(file.duplicates)} known{held}"
        ctx.log_action("importer_parse", "; ".join([said, *file.notes])[:500])
    lines = file.moving_lines()[offset : None if limit is None else offset + limit]
    return [_to_transaction(file, line) for line in check_deadline(lines)]


def _to_transaction(file: ImportFile, line: BankLine) -> Transaction:
    return {
        "date": find_entry_day(file.account, line).isoformat(),
        "description": line.description,
        "amount": line.amount,
        "reference": line.line_id,
        "bank_id": line.bank_id,
        "type": line.type,
        "currency": line.currency,
        "balance": line.balance_after,
        "fee": file.find_fee(line),
        "state": line.state,
        "account": file.account.id,
        "ledger_account": file.account.ledger_account,
    }


@primitive(effect=Effect.STAGE, grant="importer.write")
def importer_mark_processed(ctx: Context, filename: Line) -> Processed:
    """The file is done: it moves to ``import/processed/`` in the run's commit, or after 500 imports to a folder
    of the month in there.

    The run's commit is refused where a row of the file is neither posted, held nor ignored.
    """
    file = books_of(ctx).imports.mark_processed(filename, format_iso(ctx.now), ctx.run_id)
    ctx.log_action("importer_mark_processed", f"{filename} → {file.processed_as}")
    return {
        "name": file.name,
        "path": file.processed_as or "",
        "new": len(file.new),
        "duplicates": len(file.duplicates),
    }


@primitive(effect=Effect.STAGE, grant="importer.write")
def importer_ignore(ctx: Context, reference: Line, reason: Text) -> None:
    """Set a bank line aside for good, with a reason. Refused for a line that is posted."""
    line = books_of(ctx).bank.resolve_reference(reference)
    if line is None:
        raise PrimitiveError(
            f"{reference[:60]!r} is not the reference of a bank line",
            place=Place(field="reference"),
            remedy="Pass the reference of a dict that importer_parse returned.",
        )
    if not reason.strip():
        raise PrimitiveError("ignoring a line needs a reason", place=Place(field="reason"), remedy="Say why.")
    if books_of(ctx).bank.posted_amount(reference):
        raise PrimitiveError(
            f"the line {reference} is posted", place=Place(field="reference"), remedy="Void its entry instead."
        )
    books_of(ctx).bank.set_line_aside(reference, "ignored", reason)
    ctx.log_action("importer_ignore", f"{reference}: {reason}"[:500])


@primitive(effect=Effect.READ, grant="importer.read")
def importer_deduplicate(ctx: Context, txns: list[Json]) -> list[Json]:
    """The transactions of a list that are not in the books yet, each once, in order.

    A dict is known by its ``reference``; one that names no bank line is refused.
    """
    seen: set[str] = set()
    out = []
    for i, txn in enumerate(check_deadline(txns)):
        reference = txn.get("reference") if isinstance(txn, dict) else None
        line = books_of(ctx).bank.resolve_reference(reference) if isinstance(reference, str) else None
        if line is None or not isinstance(reference, str):
            raise PrimitiveError(
                f"txns[{i}] has no reference of a bank line",
                place=Place(field=f"txns[{i}]"),
                remedy="Pass dicts that importer_parse returned.",
            )
        if (
            reference in seen
            or books_of(ctx).bank.is_accounted(line[1], books_of(ctx).bank.posted_amount(reference))
            or reference not in books_of(ctx).bank.new_lines
        ):
            continue
        seen.add(reference)
        out.append(txn)
    return out
