"""A push service on loopback, over TLS, and the phone behind it: it verifies who sends, and decrypts what it gets."""

from __future__ import annotations

import base64
import json
import os
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mailserver import certificate
from py_vapid import Vapid02


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Phone:
    """What a browser keeps of a subscription. ``secret``: what decrypts."""

    def __init__(self, service: PushService, name: str) -> None:
        self.endpoint = f"https://localhost:{service.port}/push/{name}"
        self._key, self._shared = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
        self.keys = {
            "p256dh": encode(self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)),
            "auth": encode(self._shared),
        }
        self.path = f"/push/{name}"

    @property
    def subscription(self) -> str:
        """As a browser says it."""
        return json.dumps({"endpoint": self.endpoint, "expirationTime": None, "keys": self.keys})

    def read(self, body: bytes) -> dict[str, Any]:
        text = http_ece.decrypt(body, private_key=self._key, auth_secret=self._shared, version="aes128gcm")
        found = json.loads(text)
        assert isinstance(found, dict)
        return found


class PushService(ThreadingHTTPServer):
    """Listens from its making until ``close``; ``answers``: path → the status that it says instead of 201."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pem = certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pem)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.port = self.server_address[1]
        self.host = f"localhost:{self.port}"
        self.answers: dict[str, int] = {}
        self.taken: list[tuple[str, Mapping[str, str], bytes]] = []
        self._phones: dict[str, Phone] = {}
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def phone(self, name: str = "ana") -> Phone:
        return self._phones.setdefault(f"/push/{name}", Phone(self, name))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What the phones show, in the order in which it came."""
        return [self._phones[path].read(body) for path, _, body in self.taken]

    def claims(self, number: int = -1) -> tuple[dict[str, Any], str]:
        """What the sender of a message has signed, and the key that it is signed with."""
        authorization = self.taken[number][1]["authorization"]
        assert Vapid02.verify(authorization)
        parts = dict(part.split("=", 1) for part in authorization.removeprefix("vapid ").split(","))
        body = parts["t"].split(".")[1]
        return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))), parts["k"]

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: PushService

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.answers.get(self.path, 201)
        if status < 300:
            self.server.taken.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        self.send_response(status)
        if status in (301, 307):
            self.send_header("Location", f"https://localhost:{self.server.port}/push/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...
