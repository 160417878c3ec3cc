"""``loop_*``: jobs of the workspace's own loop: asking for them, and how they went."""

from __future__ import annotations

from cleared.base.errors import Place, PolicyError, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.ctx import LOOP_ENQUEUE_EVENT
from cleared.primitives.registry.dict_shapes import LoopAsked, LoopJob, LoopResult, LoopStatus
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Line, Whole


@primitive(effect=Effect.OUTBOX, grant="loop.enqueue")
def loop_enqueue(ctx: Context, kind: Line, target: Line | None = None) -> LoopAsked:
    """Ask the loop for a job of one of the kinds that the agent's header grants (``loop_enqueue:KIND``).

    It becomes part of the run's commit, and the loop takes it in afterwards; so it has no id yet, and a run that fails
    has asked for nothing. ``agent:NAME`` is short for the kind ``agent_run`` with the target ``NAME``; granted as
    ``loop_enqueue:agent:NAME``, it is for that agent alone.
    """
    job_type, aim = ctx.loop.resolve_job(kind, target)
    grants = [f"loop_enqueue:{job_type}"]
    if job_type == "agent_run":
        grants.append(f"loop_enqueue:agent:{aim}")
    if ctx.permissions.enqueue_grants.isdisjoint(grants):
        raise PolicyError(
            f"to enqueue {job_type} is not granted to this script",
            place=Place(field="kind"),
            remedy=f"Add {grants[-1]} to the grants: line of the agent's header, and have the change approved.",
        )
    request: LoopAsked = {"kind": job_type, "target": aim}
    ctx.stage_event(LOOP_ENQUEUE_EVENT, request)
    ctx.log_action("loop_enqueue", f"{job_type} {aim}".strip())
    return request


@primitive(effect=Effect.READ, grant="loop.read")
def loop_status(ctx: Context) -> LoopStatus:
    """How the workspace's own loop is; ``status`` is ``none`` where there has never been one."""
    return ctx.loop.read_status()


@primitive(effect=Effect.READ, grant="loop.read")
def loop_jobs(ctx: Context, limit: Whole = 25) -> list[LoopJob]:
    """Jobs, newest first: those that wait, the one that runs, those that have ended; at most 1,000."""
    if not 1 <= limit <= 1000:
        raise PrimitiveError(f"limit is {limit}", place=Place(field="limit"), remedy="Use 1 to 1000.")
    return ctx.loop.list_jobs(limit)


@primitive(effect=Effect.READ, grant="loop.read")
def loop_result(ctx: Context, job_id: Line) -> LoopResult:
    """How a job went, by its id; ``status`` is ``queued`` or ``running`` where it has not ended yet."""
    return ctx.loop.read_result(job_id)
