"""``git_*``: the run's one commit, and the history."""

# Without annotations from __future__: each type would be a text, compiled when what a primitive takes is read.

from cleared.base.errors import Place, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.registry.dict_shapes import CommitInfo, CommitResult
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Line, Whole


@primitive(effect=Effect.STAGE, grant="git.commit")
def git_commit(ctx: Context, message: Line) -> CommitResult:
    """Check the draft and fix the commit's message (one line; a second call appends to it).

    The run's single commit is made when the script has ended well. ``commit_hash`` is ``run:<id>``, or None where
    nothing is staged: that is no error.
    """
    if not message.strip():
        raise PrimitiveError("the message is empty", place=Place(field="message"), remedy="Say what the run did.")
    if not ctx.has_changes:
        return {"success": True, "commit_hash": None}
    ctx.host.check_draft()
    ctx.commit_messages.append(message.strip()[:500])
    ctx.log_action("git_commit", message.strip()[:500])
    return {"success": True, "commit_hash": f"run:{ctx.run_id}"}


@primitive(effect=Effect.READ, grant="git.read")
def git_log(ctx: Context, limit: Whole = 10) -> list[CommitInfo]:
    """The newest commits, newest first; at most 1,000."""
    if not 1 <= limit <= 1000:
        raise PrimitiveError(f"limit is {limit}", place=Place(field="limit"), remedy="Use 1 to 1000.")
    return [
        {"commit_hash": c["commit_hash"], "date": c["date"], "author": c["author"], "message": c["message"]}
        for c in ctx.host.list_commits(limit)
    ]
