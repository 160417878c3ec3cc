"""A mail server on loopback: takes what it is sent, refuses what it is told to."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import socketserver
import ssl
import threading
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate(folder: Path) -> Path:
    """Key and certificate for ``localhost`` in one file, which may be trusted as its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "localhost.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


class MailServer(socketserver.ThreadingTCPServer):
    """Listens from its making until ``close``. ``mails`` are those that it took, with envelope and login."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, *, pem: Path | None = None, at_once: bool = False, password: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.mails: list[EmailMessage] = []
        self.raw: list[bytes] = []
        self.envelopes: list[tuple[str, list[str]]] = []
        self.logins: list[str] = []
        self.refuse: dict[str, str] = {}
        """Verb → the reply to it."""
        self.hang_up_after_data = False
        self.password = password
        self.at_once = at_once
        self.tls = None
        if pem is not None:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(pem)
        self.port = self.server_address[1]
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news."""


class _Session(socketserver.BaseRequestHandler):
    server: MailServer

    def handle(self) -> None:
        server, tls, secure = self.server, self.server.tls, False
        if tls and server.at_once:
            self.request, secure = tls.wrap_socket(self.request, server_side=True), True
        file = self.request.makefile("rwb")
        sender, to = "", []

        def say(text: str) -> None:
            file.write(text.encode() + b"\r\n")
            file.flush()

        say("220 loopback")
        while line := file.readline():
            words = line.decode("utf-8", "replace").split()
            verb = words[0].upper() if words else ""
            if verb in server.refuse:
                say(server.refuse[verb])
            elif verb == "EHLO":
                say("250-loopback")
                if tls and not secure:
                    say("250-STARTTLS")
                say("250 AUTH PLAIN" if server.password else "250 8BITMIME")
            elif verb == "STARTTLS" and tls:
                say("220 go on")
                self.request, secure = tls.wrap_socket(self.request, server_side=True), True
                file = self.request.makefile("rwb")
            elif verb == "AUTH":
                _, user, password = base64.b64decode(words[2]).decode().split("\0")
                server.logins.append(user)
                say("235 welcome" if password == server.password else f"535 no: {password} is wrong")
            elif verb == "MAIL":
                sender, to = words[1], []
                say("250 ok")
            elif verb == "RCPT":
                to.append(words[1])
                say("250 ok")
            elif verb == "DATA":
                say("354 go on")
                data = b""
                while (line := file.readline()) not in (b".\r\n", b""):
                    data += line.removeprefix(b".") if line.startswith(b"..") else line
                server.raw.append(data)
                server.mails.append(message_from_bytes(data, policy=SMTP))  # type: ignore[arg-type]
                server.envelopes.append((sender, to))
                say("250 taken")
                if server.hang_up_after_data:
                    return
            elif verb == "QUIT":
                say("221 bye")
                return
            else:
                say("250 ok")
