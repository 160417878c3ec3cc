"""A collector of spans on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
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
