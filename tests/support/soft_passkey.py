"""A passkey in software: what a phone does when a page asks it, and what a bad one might do."""

from __future__ import annotations

import hashlib
import html
import json
import re
import secrets
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from web_client import Page, Server

from cleared.base.clock import SystemClock
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.proposals.passkey_registration import SHOWN, NewPasskey, register_passkey
from cleared.trust.device_signing import AssertionNeeded, DeviceSigning, PasskeyKey, signing_with
from cleared.trust.passkey_assertions import decode_text, encode_bytes, format_assertion, format_passkey
from cleared.trust.passkey_records import Passkey

T = TypeVar("T")
PRESENT, VERIFIED, WITH_KEY = 0x01, 0x04, 0x40


class SoftPasskey:
    """One device. ``counts``: whether it counts its signatures; ``flags``: what it says of the person."""

    def __init__(self, kind: str = "es256", counts: bool = True) -> None:
        self.kind, self.counts, self.counter, self.flags = kind, counts, 0, PRESENT | VERIFIED
        self.credential = secrets.token_bytes(16)
        self.key: Any = {
            "es256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "eddsa": ed25519.Ed25519PrivateKey.generate,
            "rs256": lambda: rsa.generate_private_key(65537, 2048),
        }[kind]()

    @property
    def id(self) -> str:
        return encode_bytes(self.credential)

    def create(self, options: dict[str, Any], origin: str) -> str:
        """What ``navigator.credentials.create`` gives, as the page sends it."""
        client = self._client("webauthn.create", options["challenge"], origin)
        made = len(self.credential).to_bytes(2) + self.credential + cbor2.dumps(self._cose())
        data = self._data(options["rp"]["id"], self.flags | WITH_KEY) + bytes(16) + made
        object_ = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        response = {"clientDataJSON": encode_bytes(client), "attestationObject": encode_bytes(object_)}
        return json.dumps({"id": self.id, "rawId": self.id, "type": "public-key", "response": response})

    def get(self, options: dict[str, Any], origin: str, host: str = "") -> str:
        """What ``navigator.credentials.get`` gives. ``host``: the name that it says it is for."""
        assert self.id in [each["id"] for each in options["allowCredentials"]] or not options["allowCredentials"]
        client = self._client("webauthn.get", options["challenge"], origin)
        data = self._data(host or options["rpId"], self.flags)
        signature = self.sign(data + hashlib.sha256(client).digest())
        return json.dumps(
            {
                "id": self.id,
                "authenticatorData": encode_bytes(data),
                "clientDataJSON": encode_bytes(client),
                "signature": encode_bytes(signature),
            }
        )

    def sign(self, data: bytes) -> bytes:
        if self.kind == "es256":
            return bytes(self.key.sign(data, ec.ECDSA(hashes.SHA256())))
        return bytes(
            self.key.sign(data) if self.kind == "eddsa" else self.key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        )

    def _data(self, host: str, flags: int) -> bytes:
        self.counter += self.counts
        return hashlib.sha256(host.encode()).digest() + bytes([flags]) + self.counter.to_bytes(4)

    def _client(self, kind: str, challenge: str, origin: str) -> bytes:
        decode_text(challenge)
        return json.dumps({"type": kind, "challenge": challenge, "origin": origin, "crossOrigin": False}).encode()

    def _cose(self) -> dict[int, Any]:
        public = self.key.public_key()
        if self.kind == "es256":
            numbers = public.public_numbers()
            return {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
        if self.kind == "eddsa":
            return {1: 1, 3: -8, -1: 6, -2: public.public_bytes_raw()}
        numbers = public.public_numbers()
        return {1: 3, 3: -257, -1: numbers.n.to_bytes(256), -2: numbers.e.to_bytes(3)}


def options_of(page: Page) -> dict[str, Any]:
    """What a page asks of a passkey."""
    match = re.search(r'data-options="([^"]*)"', page.body)
    assert match is not None, page.text
    return dict(json.loads(html.unescape(match[1])))


def is_asked(page: Page) -> bool:
    return 'data-passkey="get"' in page.body


def fields_of(page: Page) -> list[tuple[str, str]]:
    """The hidden fields of the page's form, but for the answer."""
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page.body)
    return [(name, html.unescape(value)) for name, value in found if name != "answer"]


def sign_in(server: Server, device: SoftPasskey, **how: str) -> Page:
    """Sign in with a passkey, as a fresh browser."""
    server.forget()
    page = server.get("/login")
    answer = device.get(options_of(page), how.pop("origin", server.url), **how)
    return server.keep(server.send("POST", "/login", [("question", page.fields("question")[0]), ("answer", answer)]))


def answer(server: Server, device: SoftPasskey, page: Page, path: str = "/queue", **how: str) -> Page:
    """Have the passkey sign what the page asks for, once."""
    assert is_asked(page), page.text
    given = device.get(options_of(page), how.pop("origin", server.url), **how)
    return server.follow(server.send("POST", path, [*fields_of(page), ("answer", given)]))


def confirm(server: Server, device: SoftPasskey, page: Page, path: str = "/queue") -> Page:
    """Have it sign as often as it is asked."""
    for _ in range(4):
        if not is_asked(page):
            break
        page = answer(server, device, page, path)
    return page


# -- without a page ---------------------------------------------------------------------------------------------------


def register_device(root: Path, device: SoftPasskey, name: str = "Ana") -> Passkey:
    """Registered as ``cleared passkey add`` does it, once the page has checked what the browser made."""
    der = device.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    new = NewPasskey(format_passkey("localhost", der), device.id, device.counter)
    with expecting({SHOWN: new.digest_for(name)}):
        return register_passkey(open_workspace(root), name, new)


def decide_with(device: SoftPasskey, passkey: Passkey, action: Callable[[], T], *, later: int = 0) -> T:
    """Make a decision that the device signs, as a program of one's own could: no page looks at what it says.
    ``later``: seconds after now."""
    assertions: dict[bytes, str] = {}
    seed, now = secrets.token_hex(16), SystemClock().now() + timedelta(seconds=later)
    for _ in range(4):
        key = PasskeyKey(passkey.key, assertions)
        try:
            with signing_with(DeviceSigning(key, passkey.name, now, seed)):
                return action()
        except AssertionNeeded:
            assert key.wanted is not None
            options = {"rpId": passkey.host, "challenge": encode_bytes(key.wanted), "allowCredentials": []}
            given = json.loads(device.get(options, "http://localhost:8765"))
            parts = (given[each] for each in ("authenticatorData", "clientDataJSON", "signature"))
            assertions[key.wanted] = format_assertion(*map(decode_text, parts))
    raise AssertionError("it asks without end")
