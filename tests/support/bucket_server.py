"""A bucket that speaks as much of S3's protocol as a store of files needs: put, get, list and delete, each signed."""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

KEY, SECRET = "key-of-the-fleet", "secret-of-the-fleet"
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})")


class Bucket(NamedTuple):
    """``variables``: name its address and the key to it. ``kept``: what lies in it, by path."""

    variables: Mapping[str, str]
    kept: dict[str, bytes]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def handle_any(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.is_signed(data):
            return self.answer(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
        path, query = unquote(urlsplit(self.path).path), parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        kept = self.bucket.kept
        if self.command == "PUT":
            kept[path] = data
            return self.answer(200)
        if self.command == "DELETE":
            kept.pop(path, None)
            return self.answer(204)
        if "delete" in query:
            names = re.findall(r"<Key>(.*?)</Key>", data.decode())
            for name in names:
                kept.pop(f"{path.rstrip('/')}/{name}", None)
            done = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
            return self.answer(200, f"<DeleteResult>{done}</DeleteResult>".encode())
        if "list-type" in query:
            return self.answer(200, self.list_objects(path, query["prefix"][0]))
        if path in kept:
            return self.answer(200, kept[path])
        return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    do_GET = do_PUT = do_POST = do_DELETE = handle_any

    def list_objects(self, bucket: str, prefix: str) -> bytes:
        begin = f"{bucket.rstrip('/')}/{prefix}"
        found = [path for path in self.bucket.kept if path.startswith(begin)]
        rows = "".join(
            f"<Contents><Key>{escape(path[len(begin) - len(prefix) :])}</Key><ETag>1</ETag>"
            f"<LastModified>2025-02-10T06:00:00.000Z</LastModified><Size>{len(self.bucket.kept[path])}</Size></Contents>"
            for path in sorted(found)
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode()

    def is_signed(self, data: bytes) -> bool:
        """Whether the request is signed with the bucket's key, by version 4 of that protocol."""
        found = _SIGNED.fullmatch(self.headers.get("Authorization", ""))
        digest = self.headers.get("x-amz-content-sha256", "")
        if found is None or found[1] != KEY or digest not in (hashlib.sha256(data).hexdigest(), "UNSIGNED-PAYLOAD"):
            return False
        url = urlsplit(self.path)
        query = "&".join(sorted(each if "=" in each else f"{each}=" for each in url.query.split("&") if each))
        headers = "".join(f"{name}:{self.headers[name].strip()}\n" for name in found[3].split(";"))
        request = "\n".join((self.command, url.path, query, headers, found[3], digest))
        key = f"AWS4{SECRET}".encode()
        for part in found[2].split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        hashed = hashlib.sha256(request.encode()).hexdigest()
        text = "\n".join(("AWS4-HMAC-SHA256", self.headers["x-amz-date"], found[2], hashed))
        return hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex(), found[4])

    def answer(self, status: int, data: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve_bucket() -> Iterator[Bucket]:
    """A bucket on loopback. A request that is not signed with its key is refused."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "eu-central-1",
    }
    bucket = Bucket(variables, {})
    server.RequestHandlerClass = type("Handler", (_Handler,), {"bucket": bucket})
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield bucket
    finally:
        server.shutdown()
        server.server_close()
