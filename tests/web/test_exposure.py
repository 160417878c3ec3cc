"""From where the server can be reached: this machine; elsewhere with TLS and a passkey only. Row I4."""

from __future__ import annotations

import datetime
import http.client
import signal
import ssl
import subprocess
from pathlib import Path

import pytest
from harness import Workspace
from patience import PATIENCE
from program_client import Program, webhook_agent
from running import eventually
from soft_passkey import SoftPasskey, register_device
from web_client import Server

from cleared.base.errors import PolicyError
from cleared.changes.workspace_opening import open_workspace
from cleared.cli.machine_errors import as_refusal
from cleared.gate.proposals.passkey_registration import remove_passkey
from cleared.web.exposure import Exposure, refuse_exposure
from cleared.web.http_server import TlsFiles
from cleared.web.page_server import PageServer, serve_in_background
from cleared.web.passkey_invitations import invited


def make_certificate(folder: Path, name: str) -> TlsFiles:
    """A certificate that nobody signed, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(1))
        .not_valid_after(now + datetime.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = TlsFiles(folder / "cert.pem", folder / "key.pem")
    files.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def test_i4_another_address_needs_tls_or_a_proxy_and_then_a_passkey(ws: Workspace, tmp_path: Path) -> None:
    """Row I4: nothing listens before it is refused."""
    files = make_certificate(tmp_path, "books.test")
    tls = ("--tls-cert", str(files.certificate), "--tls-key", str(files.key))
    for argv, code, text in (
        (("--bind", "0.0.0.0", "--name", "books.test"), 3, "--tls-cert"),
        (("--bind", "127.0.0.2", "--name", "books.test", *tls), 3, "needs a registered passkey"),
        (("--behind-proxy", "--name", "books.test"), 3, "needs a registered passkey"),
        (("--bind", "127.0.0.2", *tls), 2, "--name"),
        (("--bind", "127.0.0.2", "--name", "a b"), 2, "no name of a machine"),
        (("--bind", "books.test"), 2, "no address"),
        (("--bind", "127.0.0.2", *tls[:2]), 2, "go together"),
        ((*tls[:3], str(tmp_path / "none.pem")), 2, "there is no file"),
    ):
        done = ws("server", "--port", "0", *argv)
        assert done.code == code and text in done.err and "answers" not in done.err, (argv, done)


def test_with_tls_it_answers_to_its_name_and_signs_nobody_in_with_a_code(ws: Workspace, tmp_path: Path) -> None:
    """Nor before there is a passkey, or somebody is invited to register one."""
    files = make_certificate(tmp_path, "books.test")
    reach = Exposure("127.0.0.2", "books.test", files)
    with pytest.raises(PolicyError, match="passkey"):
        PageServer([ws.root], open_workspace, as_refusal, 0, reach)
    with invited(ws.root, "Ana"):
        refuse_exposure(reach, [open_workspace(ws.root)])
    passkey = register_device(ws.root, SoftPasskey())
    server = PageServer([ws.root], open_workspace, as_refusal, 0, reach)
    with serve_in_background(server) as place:
        port = int(place["url"].rsplit(":", 1)[1])
        assert place == {"url": f"https://books.test:{port}", "link": f"https://books.test:{port}", "code": None}
        trust = ssl.create_default_context(cafile=str(files.certificate))

        class Connection(http.client.HTTPSConnection):
            def connect(self) -> None:
                import socket

                bare = socket.create_connection(("127.0.0.2", port), 20)
                self.sock = trust.wrap_socket(bare, server_hostname="books.test")

        for host, status in ((f"books.test:{port}", 200), ("evil.example", 400)):
            wire = Connection("books.test", port, timeout=PATIENCE)
            wire.request("GET", "/healthz", headers={"Host": host})
            assert wire.getresponse().status == status
            wire.close()
    remove_passkey(open_workspace(ws.root), passkey.id)
    with pytest.raises(PolicyError, match="passkey"):
        refuse_exposure(reach, [open_workspace(ws.root)])


def test_up_server_is_both_in_one_process_and_a_kill_loses_no_call(ws: Workspace) -> None:
    """Row C9: ``cleared up --server`` takes calls and runs them; killed before the run, it goes on after its start."""
    secret = webhook_agent(ws)

    def start() -> tuple[subprocess.Popen[bytes], Server]:
        import os

        environment = {k: v for k, v in os.environ.items() if k != "CLEARED_CLOCK"}
        process = ws.start("up", "--server", "--port", "0", env=environment)
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        url, _, code = line.split("Open: ")[1].strip().partition("/login#")
        return process, Server.at(url, code)

    process, server = start()
    status, answer = Program(server, secret=secret).hook("m1", query="?wait=30")
    assert status == 200 and answer["run"]["status"] == "succeeded"
    server.sign_in(server.code)
    assert "Today" in server.get("/").text
    assert Program(server, secret=secret).hook("m2")[0] == 202
    process.kill()
    process.communicate()
    process, server = start()
    try:
        assert Program(server, secret=secret).hook("m2")[0] == 409
        eventually(lambda: ws.git("log", "--format=%b").count("Event: webhook hook/m2") == 1)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0 and secret not in errors.decode()
        assert ws.git("log", "--format=%b").count("Event: webhook hook/m2") == 1
    finally:
        process.kill()
        process.communicate()
