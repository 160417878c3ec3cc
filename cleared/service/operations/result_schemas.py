"""JSON Schemas of what operations give. Amounts are texts of digits, times UTC ISO 8601.

A schema names what can be relied on; objects may hold more.
"""

from __future__ import annotations

from typing import Final

from cleared.base.schema_parts import (
    COUNTS,
    FLAG,
    INTEGER,
    MAYBE_INTEGER,
    MAYBE_TEXT,
    OBJECT,
    TEXT,
    TEXTS,
    Schema,
    list_of,
    nullable,
    object_of,
)
from cleared.domains.installed_domains import load_domains

FINDING: Final = object_of(
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
    "additionalProperties": list_of(
        object_of(
            stage=TEXT,
            status={"enum": ["passed", "failed", "skipped"]},
            reason=MAYBE_TEXT,
            findings=list_of(FINDING),
            warnings=list_of(FINDING),
        )
    ),
}
CHECK_REPORT: Final = object_of(
    passed=FLAG,
    stages=STAGES,
    findings=list_of(FINDING),
    limit=MAYBE_TEXT | {"description": "What keeps a program from proposing it now; null: nothing."},
)

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
    "remedy": TEXT | {"description": "What to do so that it may run; empty where it may."},
    "findings": list_of(object_of(rule=TEXT, message=TEXT, place=TEXT, remedy=MAYBE_TEXT)),
}
AGENTS: Final = list_of(object_of(**_AGENT_FIELDS))
AGENT: Final = object_of(**_AGENT_FIELDS, source=TEXT, certificate=TEXT)
AGENT_HISTORY: Final = list_of(object_of(at=TEXT, event=TEXT, proposal=TEXT, by=TEXT, version=TEXT, about=TEXT))

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
    "agreed": list_of(OBJECT),
}
CARD: Final = object_of(
    **_CARD_FIELDS, overdue=FLAG, held=MAYBE_TEXT | {"description": "Why it cannot be decided now."}
)
CARDS: Final = list_of(CARD)

VIOLATIONS: Final = list_of(object_of(check=TEXT, message=TEXT, remedy=TEXT, place=MAYBE_TEXT, record_id=MAYBE_TEXT))
EXPLANATION: Final = object_of(
    commit=object_of(id=TEXT, at=TEXT, subject=TEXT),
    run=MAYBE_TEXT,
    decisions=list_of(
        object_of(
            commit=TEXT,
            by=MAYBE_TEXT,
            at=MAYBE_TEXT,
            what=TEXT,
            signed=MAYBE_TEXT,
            git_revert=MAYBE_TEXT | {"description": "What became of it, where git took it back."},
            by_hand=FLAG | {"description": "Whether it is a commit that no run and no decision made."},
        )
    ),
)

RUN_SUMMARIES: Final = list_of(
    object_of(
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
RUN: Final = object_of(
    run_id=TEXT,
    agent=TEXT,
    status=TEXT,
    started_at=TEXT,
    message=MAYBE_TEXT,
    calls=list_of(OBJECT),
    more_calls=list_of(OBJECT),
)
RUN_RESULT: Final = object_of(
    run_id=TEXT,
    agent=TEXT,
    status={"enum": ["succeeded", "failed", "dry_run", "interrupted", "waiting"]},
    result={"description": "What the script gave back."},
    commits=TEXTS,
    **{domain.record_noun[1]: list_of(domain.record_schema()) for domain in load_domains()},
    cards=list_of(object_of(**_CARD_FIELDS)),
    messages=list_of(OBJECT),
    duration_ms=INTEGER,
    error={
        "anyOf": [
            {"type": "null"},
            object_of(
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
    "entries": list_of(
        object_of(
            run=TEXT,
            change={"enum": ["changed", "added", "removed"]},
            entry_id=MAYBE_TEXT,
            date=TEXT,
            description=TEXT,
            amount=TEXT,
            before=nullable(OBJECT),
            after=nullable(OBJECT),
        )
    ),
    "not_comparable": TEXTS,
    "failed": TEXTS,
    "before": COUNTS,
    "after": COUNTS,
    "new_primitives": TEXTS,
}
IMPACT: Final = object_of(**_IMPACT_FIELDS, warnings=TEXTS)

_PROPOSAL_FIELDS: Final[dict[str, Schema]] = {
    "id": TEXT,
    "status": {"enum": ["open", "approved", "rejected", "stale", "superseded"]},
    "title": TEXT,
    "card_id": TEXT,
}
NEW_PROPOSAL: Final = object_of(
    **_PROPOSAL_FIELDS,
    is_new=FLAG | {"description": "False: this change was proposed before."},
    card=TEXTS | {"description": "What the person who decides reads."},
    files=TEXTS,
    warnings=TEXTS,
    next=TEXT,
)
_AUTHOR: Final = object_of(name=TEXT, human=FLAG)
PROPOSALS: Final = list_of(
    object_of(
        **_PROPOSAL_FIELDS,
        author=_AUTHOR,
        created_at=TEXT,
        files=TEXTS,
        decided_by=MAYBE_TEXT,
        decided_at=MAYBE_TEXT,
        reason=MAYBE_TEXT,
    )
)
PROPOSAL: Final = object_of(
    **_PROPOSAL_FIELDS,
    author=_AUTHOR,
    created_at=TEXT,
    message=TEXT,
    card=TEXTS,
    files=list_of(object_of(path=TEXT, kind=TEXT, old=TEXT, digest=TEXT)),
    checks=object_of(passed=FLAG, stages=STAGES),
    behaviour=object_of(history=object_of(**_IMPACT_FIELDS), synthetic=OBJECT, warnings=TEXTS),
    decided_by=MAYBE_TEXT,
    decided_at=MAYBE_TEXT,
    reason=MAYBE_TEXT,
    code={"type": "object", "description": "Path → unified diff.", "additionalProperties": TEXT},
)

PRIMITIVES: Final = list_of(
    object_of(name=TEXT, signature=TEXT, effect=TEXT, grant=TEXT, doc=TEXT, params=OBJECT, result=OBJECT)
)
