"""What a browser is asked to do with a passkey, and reading what it answers."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.requests import Request

from cleared.base.errors import PolicyError, UsageError
from cleared.gate.proposals.passkey_registration import NewPasskey
from cleared.trust.passkey_assertions import decode_text, encode_bytes, format_assertion, format_passkey

WAIT_SECONDS: Final = 300.0
"""How long a question to a passkey counts."""
_MAX_WAITING: Final = 1_000
_ALGORITHMS: Final = (-7, -8, -257)
"""ES256, EdDSA, RS256."""


@dataclass
class Challenges:
    """Questions that were asked of browsers, each answered once. Thread-safe. ``now``: monotonic seconds."""

    now: Callable[[], float] = time.monotonic
    _waiting: dict[str, tuple[float, Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, about: Any) -> str:
        """Remember what a question is about; its id."""
        with self._lock:
            while len(self._waiting) >= _MAX_WAITING:
                del self._waiting[next(iter(self._waiting))]
            name = secrets.token_urlsafe(32)
            self._waiting[name] = (self.now() + WAIT_SECONDS, about)
        return name

    def take(self, name: str) -> Any:
        """What the question was about; None where it was answered, is too old, or was never asked."""
        with self._lock:
            until, about = self._waiting.pop(name, (0.0, None))
        return about if self.now() < until else None


@dataclass
class SignInQuestions:
    """Questions to whoever wants to sign in, each answered once. None is remembered before it was answered well, so
    that nobody can crowd out the others. Thread-safe. ``now``: monotonic seconds."""

    now: Callable[[], float] = time.monotonic
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _answered: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self) -> str:
        """A new question, which says itself until when it counts."""
        return self._seal(f"{secrets.token_hex(16)}.{self.now() + WAIT_SECONDS:.0f}")

    def is_open(self, question: str) -> bool:
        """Whether it was asked here, a while ago at most, and not answered yet."""
        text, _, _ = question.rpartition(".")
        if not hmac.compare_digest(self._seal(text).encode(), question.encode()):
            return False
        return self.now() < float(text.rpartition(".")[2]) and question not in self._answered

    def close(self, question: str) -> bool:
        """Note that it was answered; False where that was so already, or it is not open."""
        with self._lock:
            if not self.is_open(question):
                return False
            self._answered = {each: until for each, until in self._answered.items() if until > self.now()}
            self._answered[question] = self.now() + WAIT_SECONDS
            return True

    def _seal(self, text: str) -> str:
        return f"{text}.{hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()}"


def page_host(request: Request) -> str:
    """The name that passkeys of this page are bound to. Raises ``UsageError`` where it is an address."""
    host = (request.url.hostname or "").lower()
    if not host or host.replace(".", "").isdigit():
        raise UsageError(
            "a passkey belongs to a name, and this page was opened by an address",
            remedy="Open it as localhost, or by the name of the machine.",
        )
    return host


def creation_options(request: Request, name: str, challenge: bytes) -> str:
    """What navigator.credentials.create is given, as JSON; bytes are base64url."""
    host = page_host(request)
    return json.dumps(
        {
            "rp": {"id": host, "name": "cleared"},
            "user": {"id": encode_bytes(secrets.token_bytes(16)), "name": name, "displayName": name},
            "challenge": encode_bytes(challenge),
            "timeout": int(WAIT_SECONDS * 1000),
            "attestation": "none",
            "pubKeyCredParams": [{"type": "public-key", "alg": each} for each in _ALGORITHMS],
            "authenticatorSelection": {
                "residentKey": "required",
                "requireResidentKey": True,
                "userVerification": "required",
            },
        }
    )


def request_options(host: str, challenge: bytes, credential: str = "") -> str:
    """What navigator.credentials.get is given, as JSON. ``credential``: the only one that may answer."""
    allowed = [{"type": "public-key", "id": credential}] if credential else []
    return json.dumps(
        {
            "rpId": host,
            "challenge": encode_bytes(challenge),
            "timeout": int(WAIT_SECONDS * 1000),
            "userVerification": "required",
            "allowCredentials": allowed,
        }
    )


def read_created(request: Request, text: str, challenge: bytes) -> NewPasskey:
    """The passkey that a browser has made. Raises ``UsageError`` where it is none that can be taken."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from webauthn import verify_registration_response
    from webauthn.helpers import decode_credential_public_key, decoded_public_key_to_cryptography
    from webauthn.helpers.exceptions import WebAuthnException

    host = page_host(request)
    try:
        made = verify_registration_response(
            credential=text[:20_000],
            expected_challenge=challenge,
            expected_rp_id=host,
            expected_origin=request.headers.get("origin", ""),
            require_user_verification=True,
        )
        public = decoded_public_key_to_cryptography(decode_credential_public_key(made.credential_public_key))
        der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (WebAuthnException, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"this passkey cannot be taken: {str(error)[:200] or type(error).__name__}",
            remedy="Take a device that makes sure who uses it (PIN, finger, face), and ask for a new link.",
        ) from None
    return NewPasskey(format_passkey(host, der), encode_bytes(made.credential_id), made.sign_count)


def read_assertion(request: Request, text: str) -> tuple[str, str]:
    """The credential's id and the assertion in what a browser sent.

    Raises ``UsageError`` for anything else, ``PolicyError`` where another page had it made: one on another port of this
    machine has the same name, and could ask the passkey, too.
    """
    try:
        data = json.loads(text[:20_000])
        parts = [decode_text(data[name]) for name in ("authenticatorData", "clientDataJSON", "signature")]
        credential = data["id"]
        if not isinstance(credential, str) or len(parts[0]) < 37:
            raise ValueError("no credential")
        origin = json.loads(parts[1])["origin"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError("this is no answer of a passkey", remedy="Try again, in a browser that knows them.") from None
    if origin != request.headers.get("origin"):
        raise PolicyError(
            "what the passkey signed does not count: it was made on another page; nothing was decided",
            remedy="Load this page again, and see what else asked for the passkey.",
        )
    return credential, format_assertion(parts[0], parts[1], parts[2])
