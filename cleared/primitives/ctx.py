"""``ctx_*``: the run itself: its log, its clock, its event."""

# Without annotations from __future__: each type would be a text, compiled when what a primitive takes is read.

from typing import Final

from cleared.base.clock import format_iso
from cleared.base.errors import Place, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.model_requests import MODEL_ANSWER_EVENT
from cleared.primitives.registry.dict_shapes import EventInfo
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Json, Line, Text
from cleared.sandbox.header_values import is_event_name

BUILT_IN_EVENTS: Final = (
    "run.succeeded",
    "run.failed",
    "proposal.approved",
    "card.resolved",
    "import.new",
    "loop.job_finished",
)
"""Events that the program itself tells of; no script and no person can."""
LOOP_ENQUEUE_EVENT: Final = "loop.enqueue"
"""What ``loop_enqueue`` emits, and nothing else can: the loop takes it for an order."""
NOTIFY_SEND_EVENT: Final = "notify.send"
"""What ``notify_send`` emits, and nothing else can: its payload is sent as a message."""
ORDER_EVENTS: Final = (LOOP_ENQUEUE_EVENT, NOTIFY_SEND_EVENT, MODEL_ANSWER_EVENT)
"""Events that the program itself stages and reads; no ``ctx_emit`` and no person can make one."""


@primitive(effect=Effect.READ, grant="ctx.log")
def ctx_log(ctx: Context, message: Text) -> None:
    """Write a line to the agent log (``logs/agent-log-YYYY-MM.csv``) and to whoever watches the run."""
    ctx.log_action("log", message)
    ctx.host.show_log_line(message)


@primitive(effect=Effect.READ, grant="ctx.read")
def ctx_dry_run(ctx: Context) -> bool:
    """Whether this is a dry run, of which nothing will be kept."""
    return ctx.dry_run


@primitive(effect=Effect.OUTBOX, grant="ctx.emit")
def ctx_emit(ctx: Context, event_name: Line, payload: Json = None) -> None:
    """Emit an event for other agents; it becomes part of the run's commit and is delivered afterwards."""
    emit_event(ctx, event_name, payload)


def emit_event(ctx: Context, event_name: str, payload: Json) -> None:
    """Stage an event. Raises ``PrimitiveError`` where its name is not one, or its payload too large."""
    if event_name in BUILT_IN_EVENTS or event_name in ORDER_EVENTS:
        raise PrimitiveError(
            f"{event_name} is told by the program itself",
            place=Place(field="event_name"),
            remedy="Choose a name of your own.",
        )
    if not is_event_name(event_name):
        raise PrimitiveError(
            f"{event_name[:60]!r} is not an event name",
            place=Place(field="event_name"),
            remedy="Small letters, digits and _, with . or - or single spaces between: transactions.imported, or "
            "new transactions imported.",
        )
    ctx.stage_event(event_name, payload)
    ctx.log_action("ctx_emit", event_name)


@primitive(effect=Effect.READ, grant="ctx.read")
def ctx_today(ctx: Context) -> str:
    """Today in ``business.timezone``, ``YYYY-MM-DD``. It does not change during a run."""
    return ctx.today.isoformat()


@primitive(effect=Effect.READ, grant="ctx.read")
def ctx_now(ctx: Context) -> str:
    """The instant the run began, UTC: ``YYYY-MM-DDTHH:MM:SSZ``. It does not change during a run."""
    return format_iso(ctx.now)


@primitive(effect=Effect.READ, grant="ctx.read")
def ctx_event(ctx: Context) -> EventInfo:
    """Why the run happens: ``{"id", "kind", "name", "payload"}``; kind is on_demand, schedule, file_watch, event
    or webhook."""
    event = ctx.event
    return {"id": event["id"], "kind": event["kind"], "name": event["name"], "payload": event["payload"]}
