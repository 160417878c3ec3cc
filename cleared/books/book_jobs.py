"""Job types about the books. None of them decides anything."""

from __future__ import annotations

from typing import Final

from cleared.base.terminal import count_noun
from cleared.books.queries import count_entries
from cleared.changes.audit.record_violations import describe_violations
from cleared.changes.workspace_opening import open_for_job
from cleared.jobs.job_process import JobContext, JobFailed
from cleared.jobs.job_types import JobType

_MAX_LISTED: Final = 200


def books_check(job: JobContext) -> str:
    """As ``cleared check``. Raises ``JobFailed`` where anything is wrong."""
    host = open_for_job(job.root)
    violations = describe_violations(host)
    for v in violations[:_MAX_LISTED]:
        print(f"[{v['check']}] {v['place'] or ''} {v['record_id'] or ''} {v['message']}")  # noqa: T201  (a job's output)
    if violations:
        first = violations[0]["message"]
        raise JobFailed(f"{count_noun(len(violations), 'violation')}; the first: {first} (cleared check)")
    entries = count_entries(host)
    return f"the books are in order: {count_noun(entries, 'entry', 'entries')}, every invariant holds"


JOB_TYPES: Final = (
    JobType(
        "books_check",
        "Check every invariant of the books.",
        function="cleared.books.book_jobs:books_check",
        default_target="books",
        writes=(".cleared",),
        timeout=600.0,
    ),
)
