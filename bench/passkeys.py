"""What a passkey costs beside what is decided: each decision is made twice, and its assertion verified."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from bench.measure import Result, compare
from bench.review import book_month
from bench.workspaces import host
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host_cache import HostCache
from cleared.gate.proposals.passkey_registration import SHOWN, NewPasskey, register_passkey
from cleared.review.card_decisions import confirm_records
from cleared.review.queue_cards import read_cards
from cleared.trust.device_signing import AssertionNeeded, DeviceSigning, PasskeyKey, signing_with
from cleared.trust.passkey_assertions import encode_bytes, format_assertion, format_passkey

CARDS = 100


def signed_decision(quick: bool) -> Result:
    """One confirmation that a passkey signs, against the same without one."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    root = book_month(CARDS)
    secret = ec.generate_private_key(ec.SECP256R1())
    public = format_passkey(
        "localhost", secret.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    )
    new = NewPasskey(public, "YQ", 0)
    with expecting({SHOWN: new.digest_for("Ana")}):
        register_passkey(host(root), "Ana", new)
    session = HostCache(lambda: host(root))
    waiting = iter([c["id"] for c in read_cards(session())])

    def answer(challenge: bytes) -> str:
        about = {"type": "webauthn.get", "challenge": encode_bytes(challenge), "origin": "http://localhost:8765"}
        client, data = json.dumps(about).encode(), hashlib.sha256(b"localhost").digest() + b"\x05\0\0\0\0"
        return format_assertion(data, client, secret.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256())))

    def decide_signed(name: str) -> None:
        assertions: dict[bytes, str] = {}
        now = session().clock.now()
        for _ in range(2):
            key = PasskeyKey(public, assertions)
            with signing_with(DeviceSigning(key, "Ana", now, name)):
                try:
                    confirm_records(session(), [name])
                except AssertionNeeded:
                    assert key.wanted is not None
                    assertions[key.wanted] = answer(key.wanted)

    def ours() -> Callable[[], object]:
        name = next(waiting)
        return lambda: decide_signed(name)

    def theirs() -> Callable[[], object]:
        name = next(waiting)
        return lambda: confirm_records(session(), [name])

    return compare("a decision that a passkey signs / the same without one", ours, theirs, 2.2, 5 if quick else 25)
