"""A bucket that speaks as much of S3's protocol as a store of files needs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serve_bucket(key: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Its address, and what lies in it by path. A request that is not signed with ``key`` is refused."""
    kept: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status: int, data: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Mon, 10 Feb 2025 06:00:00 GMT")
            self.end_headers()
            self.wfile.write(data)

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if f"Credential={key}/" not in self.headers.get("Authorization", ""):
                return self.answer(403)
            kept[self.path] = data
            return self.answer(200)

        def do_GET(self) -> None:
            if f"Credential={key}/" not in self.headers.get("Authorization", ""):
                return self.answer(403)
            return self.answer(200, kept[self.path]) if self.path in kept else self.answer(404)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", kept
    finally:
        server.shutdown()
        server.server_close()
