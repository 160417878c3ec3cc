"""A collector of spans on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Collector(BaseHTTPRequestHandler):
    """Keeps what is posted; the packets are protobuf, in which texts stand as they are."""

    received: list[bytes]

    def do_POST(self) -> None:
        self.received.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        return


def read_parents(received: Sequence[bytes], workspace: str) -> set[tuple[str, str]]:
    """Each span of a workspace with the one in which it lies, by their names; what lies in none, in the empty text."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    groups = [group for each in received for group in ExportTraceServiceRequest.FromString(each).resource_spans]
    names = {}
    for group in groups:
        about = {each.key: each.value.string_value for each in group.resource.attributes}
        assert about["cleared.workspace"] == workspace, about
        names.update({(s.trace_id, s.span_id): s for scope in group.scope_spans for s in scope.spans})
    parents = {(span.trace_id, span.parent_span_id) for span in names.values() if span.parent_span_id}
    assert parents <= names.keys(), "a span that lies in one that was not sent"
    return {
        (span.name, names[span.trace_id, span.parent_span_id].name if span.parent_span_id else "")
        for span in names.values()
    }


@contextmanager
def collecting() -> Iterator[tuple[Mapping[str, str], list[bytes]]]:
    """The variables that name a collector, and what it has been sent."""
    received: list[bytes] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Collector", (_Collector,), {"received": received}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield (
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        },
        received,
    )
    server.shutdown()
    server.server_close()
