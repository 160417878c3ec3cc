"""``cleared why``: how a record came about."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cleared.base.terminal import print_fields, print_json
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.review.explanation import explain_record


def explain_one_record(
    record: Annotated[
        str,
        typer.Argument(metavar="RECORD", help="Its id, such as 2025-01-015, or that of the bank line it posts."),
    ],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Say why a record is as it is: what it was made from, run, line of the script, approval, later decisions."""
    explanation = explain_record(open_host(workspace), record)
    if json:
        print_json(explanation.data)
        return
    print_fields([*explanation.words, *_origin_rows(explanation.data)])


def _origin_rows(explanation: dict[str, Any]) -> list[tuple[str, object]]:
    call, rows = explanation.get("call"), list[tuple[str, object]]()
    rows.append(
        (
            "commit",
            f"{explanation['commit']['id'][:10]}  {explanation['commit']['at']}  {explanation['commit']['subject']}",
        )
    )
    if explanation["run"]:
        rows += [("run", explanation["run"]), ("event", explanation["event"])]
        place = f", line {call['line']}, column {call['column']}" if call else ", which line is not known any more"
        rows.append(("script", f"{explanation['script']['file']}{place}"))
        if call:
            arguments = "…" if call["arguments"] is None else call["arguments"]
            rows.append(("called", f"{call['primitive']}({arguments})"))
        rows.append(("approval", (explanation["approval"] or {}).get("why")))
    else:
        rows.append(("decided by", explanation["by"]))
    for decision in explanation["decisions"]:
        reverted = f", which was {decision['git_revert']}" if decision["git_revert"] else ""
        what = f"{decision['what']}{_signature_note(decision['signed'])}{reverted}"
        by = f"{decision['by']}, by hand" if decision["by_hand"] else decision["by"]
        rows.append(("then", f"{decision['at']}  {by}: {what}"))
        rows += [("", f"{c['field']}: {c['old'] or '(none)'} → {c['new'] or '(none)'}") for c in decision["changed"]]
    return rows


def _signature_note(by: str | None) -> str:
    if by is None:
        return ""
    return f" (signed by {by})" if by else " (its signature is wrong: cleared check)"
