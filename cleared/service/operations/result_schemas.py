"""JSON Schemas of what operations give. Amounts are texts of digits, times UTC ISO 8601.

A schema names what can be relied on; objects may hold more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cleared.books.ledger.entry import STATUSES

Schema = Mapping[str, Any]


def _nullable(schema: Schema) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


def _list_of(items: Schema) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


def _object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT: Final = {"type": "string"}
INTEGER: Final = {"type": "integer"}
FLAG: Final = {"type": "boolean"}
OBJECT: Final = {"type": "object"}
TEXTS: Final = _list_of(TEXT)
MAYBE_TEXT: Final = _nullable(TEXT)
MAYBE_INTEGER: Final = _nullable(INTEGER)
COUNTS: Final = {"type": "object", "additionalProperties": INTEGER}

FINDING: Final = _object_of(
    rule=TEXT,
    message=TEXT,
    why=TEXT,
    file=MAYBE_TEXT,
    line=MAYBE_INTEGER,
    column=MAYBE_INTEGER,
    field=MAYBE_TEXT,
    remedy=TEXT,
)
STAGES: Final = {
    "type": "object",
    "description": "File → the result of each check, in their order.",
    "additionalProperties": _list_of(
        _object_of(
            stage=TEXT,
            status={"enum": ["passed", "failed", "skipped"]},
            reason=MAYBE_TEXT,
            findings=_list_of(FINDING),
            warnings=_list_of(FINDING),
        )
    ),
}
CHECK_REPORT: Final = _object_of(passed=FLAG, stages=STAGES, findings=_list_of(FINDING))

_AGENT_FIELDS: Final[dict[str, Schema]] = {
    "name": TEXT,
    "title": MAYBE_TEXT,
    "description": MAYBE_TEXT,
    "trigger": TEXTS,
    "schedule": MAYBE_TEXT,
    "watch": TEXTS,
    "event": TEXTS,
    "file": TEXT,
    "state": TEXT | {"description": "approved, starter, disabled, not approved, not trusted, quarantined …"},
    "edited": FLAG | {"description": "Whether its working copy is another."},
    "approval": MAYBE_TEXT,
    "findings": _list_of(_object_of(rule=TEXT, message=TEXT, place=TEXT, remedy=MAYBE_TEXT)),
}
AGENTS: Final = _list_of(_object_of(**_AGENT_FIELDS))
AGENT: Final = _object_of(**_AGENT_FIELDS, source=TEXT)
AGENT_HISTORY: Final = _list_of(_object_of(at=TEXT, event=TEXT, proposal=TEXT, by=TEXT, version=TEXT, about=TEXT))

ENTRY: Final = _object_of(
    entry_id=TEXT,
    date=TEXT,
    description=TEXT,
    amount=TEXT,
    status={"enum": list(STATUSES)},
    counterparty=TEXT,
    reference=TEXT,
    confidence=TEXT,
    evidence=TEXT,
    tags=TEXTS,
    notes=TEXT,
    lines=_list_of(_object_of(leg_id=TEXT, account_id=INTEGER, debit=TEXT, credit=TEXT)),
)
_CARD_FIELDS: Final[dict[str, Schema]] = {
    "id": TEXT,
    "kind": TEXT,
    "entry_id": MAYBE_TEXT,
    "title": TEXT,
    "status": {"enum": ["open", "resolved"]},
    "created_at": TEXT,
    "run_id": MAYBE_TEXT,
    "agent": MAYBE_TEXT,
    "details": OBJECT,
    "resolved_at": MAYBE_TEXT,
    "resolved_by": MAYBE_TEXT,
    "resolution": MAYBE_TEXT,
    "agreed": _list_of(OBJECT),
}
CARD: Final = _object_of(
    **_CARD_FIELDS, overdue=FLAG, held=MAYBE_TEXT | {"description": "Why a question cannot be answered now."}
)
CARDS: Final = _list_of(CARD)

RUN_SUMMARIES: Final = _list_of(
    _object_of(
        run_id=TEXT,
        agent=TEXT,
        status=TEXT,
        started_at=TEXT,
        duration_ms=MAYBE_INTEGER,
        message=MAYBE_TEXT,
        commits=TEXTS,
        entries=MAYBE_INTEGER,
        cards=MAYBE_INTEGER,
        error=MAYBE_TEXT,
    )
)
RUN: Final = _object_of(
    run_id=TEXT,
    agent=TEXT,
    status=TEXT,
    started_at=TEXT,
    message=MAYBE_TEXT,
    calls=_list_of(OBJECT),
    more_calls=_list_of(OBJECT),
)
RUN_RESULT: Final = _object_of(
    run_id=TEXT,
    agent=TEXT,
    status={"enum": ["succeeded", "failed", "dry_run", "interrupted", "waiting"]},
    result={"description": "What the script gave back."},
    commits=TEXTS,
    entries=_list_of(ENTRY),
    cards=_list_of(_object_of(**_CARD_FIELDS)),
    messages=_list_of(OBJECT),
    duration_ms=INTEGER,
    error={
        "anyOf": [
            {"type": "null"},
            _object_of(
                type=TEXT, message=TEXT, file=MAYBE_TEXT, line=MAYBE_INTEGER, primitive=MAYBE_TEXT, remedy=MAYBE_TEXT
            ),
        ]
    },
    edited=TEXTS,
    warnings=TEXTS,
)

_IMPACT_FIELDS: Final[dict[str, Schema]] = {
    "runs": INTEGER,
    "changed": INTEGER,
    "added": INTEGER,
    "removed": INTEGER,
    "entries": _list_of(
        _object_of(
            run=TEXT,
            change={"enum": ["changed", "added", "removed"]},
            entry_id=MAYBE_TEXT,
            date=TEXT,
            description=TEXT,
            amount=TEXT,
            before=_nullable(OBJECT),
            after=_nullable(OBJECT),
        )
    ),
    "not_comparable": TEXTS,
    "failed": TEXTS,
    "before": COUNTS,
    "after": COUNTS,
    "new_primitives": TEXTS,
}
IMPACT: Final = _object_of(**_IMPACT_FIELDS, warnings=TEXTS)

_PROPOSAL_FIELDS: Final[dict[str, Schema]] = {
    "id": TEXT,
    "status": {"enum": ["open", "approved", "rejected", "stale", "superseded"]},
    "title": TEXT,
    "card_id": TEXT,
}
NEW_PROPOSAL: Final = _object_of(
    **_PROPOSAL_FIELDS,
    is_new=FLAG | {"description": "False: this change was proposed before."},
    card=TEXTS | {"description": "What the person who decides reads."},
    files=TEXTS,
    warnings=TEXTS,
    next=TEXT,
)
_AUTHOR: Final = _object_of(name=TEXT, human=FLAG)
PROPOSALS: Final = _list_of(
    _object_of(
        **_PROPOSAL_FIELDS,
        author=_AUTHOR,
        created_at=TEXT,
        files=TEXTS,
        decided_by=MAYBE_TEXT,
        decided_at=MAYBE_TEXT,
        reason=MAYBE_TEXT,
    )
)
PROPOSAL: Final = _object_of(
    **_PROPOSAL_FIELDS,
    author=_AUTHOR,
    created_at=TEXT,
    message=TEXT,
    card=TEXTS,
    files=_list_of(_object_of(path=TEXT, kind=TEXT, old=TEXT, digest=TEXT)),
    checks=_object_of(passed=FLAG, stages=STAGES),
    behaviour=_object_of(history=_object_of(**_IMPACT_FIELDS), synthetic=OBJECT, warnings=TEXTS),
    decided_by=MAYBE_TEXT,
    decided_at=MAYBE_TEXT,
    reason=MAYBE_TEXT,
    code={"type": "object", "description": "Path → unified diff.", "additionalProperties": TEXT},
)

ENTRIES: Final = _list_of(ENTRY)
BALANCES: Final = _list_of(_object_of(account_id=INTEGER, account_name=TEXT, account_type=TEXT, balance=TEXT))
VIOLATIONS: Final = _list_of(
    _object_of(check=TEXT, message=TEXT, remedy=TEXT, place=MAYBE_TEXT, entry_id=MAYBE_TEXT, account_id=MAYBE_INTEGER)
)
ACCOUNTS: Final = _list_of(
    _object_of(
        account_id=INTEGER,
        account_name=TEXT,
        account_type=TEXT,
        parent_id=MAYBE_INTEGER,
        tax_line=TEXT,
        description=TEXT,
        status=TEXT,
    )
)
PRIMITIVES: Final = _list_of(
    _object_of(name=TEXT, signature=TEXT, effect=TEXT, grant=TEXT, doc=TEXT, params=OBJECT, result=OBJECT)
)
PERIODS: Final = _list_of(_object_of(through=MAYBE_TEXT, state=TEXT, by=TEXT, at=TEXT, reason=TEXT, digest=TEXT))
EXPLANATION: Final = _object_of(
    entry=ENTRY,
    bank_line=_nullable(OBJECT),
    commit=_object_of(id=TEXT, at=TEXT, subject=TEXT),
    run=MAYBE_TEXT,
    decisions=_list_of(_object_of(commit=TEXT, by=MAYBE_TEXT, at=MAYBE_TEXT, what=TEXT, signed=MAYBE_TEXT)),
)
