"""``cleared why``: how an entry came about."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.terminal import print_fields, print_json


def explain_entry(
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="Such as 2025-01-015.")],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Say why an entry is as it is: bank line, run, line of the script, values, approval, later decisions."""
    from cleared.review.explanation import explain_entry as do

    found = do(open_host(workspace), entry)
    if json:
        print_json(found)
        return
    print_fields(_explanation_rows(found))


def _explanation_rows(found: dict[str, Any]) -> list[tuple[str, object]]:
    entry, line, call = found["entry"], found["bank_line"], found.get("call")
    from decimal import Decimal

    legs = "\n".join(f"{x['account_id']}  {x['debit'] if Decimal(x['debit']) else '-' + x['credit']}"
                     for x in entry["lines"])  # fmt: skip
    rows: list[tuple[str, object]] = [
        ("entry", f"{entry['entry_id']}  {entry['date']}  {entry['amount']}  {entry['description']}"),
        ("legs", legs), ("status", entry["status"]),
    ]  # fmt: skip
    if line:
        rows.append(("bank line", f"{line['file']}, row {line['row']}: {line['date']} {line['amount']} {line['text']}"))
    rows.append(("commit", f"{found['commit']['id'][:10]}  {found['commit']['at']}  {found['commit']['subject']}"))
    if found["run"]:
        rows += [("run", found["run"]), ("event", found["event"])]
        place = f", line {call['line']}, column {call['column']}" if call else ", which line is not known any more"
        rows.append(("script", f"{found['script']['file']}{place}"))
        if call:
            rows.append(("called", f"{call['primitive']}({call['arguments']})"))
        rows.append(("approval", (found["approval"] or {}).get("why")))
    else:
        rows.append(("decided by", found["by"]))
    rows += [("then", f"{d['at']}  {d['by']}: {d['what']}{_signature_note(d['signed'])}") for d in found["decisions"]]
    return rows


def _signature_note(by: str | None) -> str:
    if by is None:
        return ""
    return f" (signed by {by})" if by else " (its signature is wrong: cleared journal check)"
