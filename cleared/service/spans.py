"""OpenTelemetry spans of the service's runs and their calls, where the environment names a collector.

The variables are OpenTelemetry's own (``OTEL_EXPORTER_OTLP_ENDPOINT`` …); the packages are the extra ``[otel]``. Spans
tell names, places and times, never arguments or results: those are the books.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from cleared.base.clock import Clock
from cleared.base.errors import UsageError
from cleared.runs.attempt import Attempt
from cleared.runs.outcome import RunResult

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider

ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
MAX_CALL_SPANS: Final = 1_000
"""Calls of one run that get a span of their own."""
_FLUSH_MS: Final = 2_000


class SpanExporter:
    """Sends spans to the collector from a thread of its own; what cannot be sent is dropped."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("cleared")
        self._job: Context | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], workspace: str = "") -> SpanExporter | None:
        """Spans as the environment says; None where it names no collector, or ``OTEL_SDK_DISABLED`` is set.
        ``workspace``: its name, in a fleet.

        Raises ``UsageError`` where the packages are missing.
        """
        has_collector = any(environment.get(name) for name in ENDPOINT_VARIABLES)
        if not has_collector or environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return None
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            raise UsageError(
                f"{ENDPOINT_VARIABLES[1]} is set, but the packages for spans are missing",
                remedy="In the checkout: pip install '.[otel]'; or unset it.",
            ) from None
        service = {} if environment.get("OTEL_SERVICE_NAME") else {"service.name": "cleared"}
        named = {"cleared.workspace": workspace} if workspace else {}
        provider = TracerProvider(resource=Resource.create({**service, **named}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=10)))
        return cls(provider)

    @contextmanager
    def spanning(self, name: str, clock: Clock, about: Mapping[str, str]) -> Iterator[None]:
        """A span over what is done meanwhile, in which the runs and spans of that lie."""
        from opentelemetry import trace

        before = self._job
        span = self._tracer.start_span(
            name, context=before, start_time=_epoch_nanoseconds(clock.now()), attributes=about
        )
        self._job = trace.set_span_in_context(span)
        try:
            yield
        finally:
            self._job = before
            span.end(_epoch_nanoseconds(clock.now()))

    def record_run(self, attempt: Attempt, result: RunResult) -> None:
        """The spans of a run that has ended."""
        from opentelemetry import trace

        host = attempt.host
        now, ended = host.clock.now(), host.clock.monotonic()

        def to_nanoseconds(moment: float) -> int:
            return _epoch_nanoseconds(now) - round((ended - moment) * 1e9)

        event = attempt.event
        about: dict[str, Any] = {
            "cleared.run": result.run_id,
            "cleared.agent": result.agent,
            "cleared.status": result.status,
            "cleared.event.kind": event["kind"],
            "cleared.event.id": event["id"],
            "cleared.calls": attempt.calls.total,
            "cleared.script": f"{attempt.script.file}@{attempt.script.blob}",
        }
        if result.commits:
            about["cleared.commit"] = result.commits[0]
        run = self._tracer.start_span(
            f"run {result.agent}",
            context=self._job,
            start_time=to_nanoseconds(attempt.started),
            attributes=about,
        )
        if result.error is not None:
            run.set_status(trace.StatusCode.ERROR, host.redactor.redact_text(str(result.error))[:1_000])
        inside = trace.set_span_in_context(run)
        for call in islice(attempt.calls, MAX_CALL_SPANS):
            span = self._tracer.start_span(
                call.name,
                context=inside,
                start_time=to_nanoseconds(call.started),
                attributes={
                    "code.filepath": call.place.file or "",
                    "code.lineno": call.place.line or 0,
                    "cleared.depth": call.depth,
                },
            )
            if call.error is not None:
                span.set_status(trace.StatusCode.ERROR, host.redactor.redact_text(call.error)[:1_000])
            span.end(to_nanoseconds(call.started + call.duration))
        run.end(_epoch_nanoseconds(now))

    def close(self) -> None:
        """Send what is left, for two seconds at most."""
        self._provider.force_flush(_FLUSH_MS)


def _epoch_nanoseconds(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000_000) * 1_000
