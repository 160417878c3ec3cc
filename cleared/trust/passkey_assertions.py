"""Verifying what a passkey (WebAuthn) has signed, with ``cryptography`` alone.

A passkey's key is written ``passkey:HOST:KEY``: the name it is bound to, and its public key (DER, base64url). What it
signs is written as three base64url parts: authenticator data, client data, signature. The challenge in the client data
is a digest of what is meant to be signed, so an assertion counts for exactly those bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

PASSKEY: Final = "passkey:"
LOCAL: Final = "localhost"
_DOMAIN: Final = b"cleared passkey 1\n"
"""Part of what is signed, so that no assertion for something else can be taken for one of a decision."""
_USER_PRESENT, _USER_VERIFIED = 0x01, 0x04
_MAX_TEXT: Final = 8_000
_MAX_RSA_BITS: Final = 4_096
_KEY: Final = r"passkey:([a-z0-9.-]{1,253}):([A-Za-z0-9_-]{40,1000})"


def encode_bytes(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_text(text: str) -> bytes:
    """The inverse of ``encode_bytes``. Raises ``ValueError`` for anything else."""
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if encode_bytes(data) != text:
        raise ValueError("not base64url")
    return data


def format_passkey(host: str, public: bytes) -> str:
    """The text of a passkey's key. ``public``: as DER (SubjectPublicKeyInfo)."""
    return f"{PASSKEY}{host}:{encode_bytes(public)}"


def is_passkey(key: str) -> bool:
    """Whether a key is written as that of a passkey."""
    return key.startswith(PASSKEY)


def host_of(key: str) -> str:
    """The name that a passkey is bound to; empty for any other key."""
    match = re.fullmatch(_KEY, key)
    return match[1] if match else ""


def make_challenge(data: bytes) -> bytes:
    """What the browser is asked to sign for these bytes."""
    return hashlib.sha256(_DOMAIN + data).digest()


def format_assertion(authenticator_data: bytes, client_data: bytes, signature: bytes) -> str:
    """What a passkey has signed, as text."""
    return ".".join(map(encode_bytes, (authenticator_data, client_data, signature)))


def read_counter(assertion: str) -> int:
    """How often the passkey has signed, by what it says itself (0: it does not count). Raises ``ValueError``."""
    return int.from_bytes(_split(assertion)[0][33:37])


def find_assertion_problem(key: str, assertion: str, data: bytes) -> str:
    """Why the assertion is not that of this passkey over ``data``, in words; empty where it is. Never an exception."""
    match = re.fullmatch(_KEY, key)
    if match is None:
        return "the key is not one of a passkey"
    host = match[1]
    try:
        authenticator, client, signature = _split(assertion)
        about: Any = json.loads(client)
        public = _load_public_key(decode_text(match[2]))
    except (ValueError, RecursionError):
        return "it cannot be read"
    if not isinstance(about, dict) or about.get("type") != "webauthn.get":
        return "it was made for something else"
    if about.get("challenge") != encode_bytes(make_challenge(data)):
        return "it was made for other content"
    if about.get("crossOrigin") not in (None, False) or not is_origin_of(host, about.get("origin")):
        return "it was made on another page"
    if authenticator[:32] != hashlib.sha256(host.encode("ascii")).digest():
        return "it was made for another name"
    if not authenticator[32] & _USER_PRESENT:
        return "nobody was there"
    if not authenticator[32] & _USER_VERIFIED:
        return "the device did not make sure who used it"
    return "" if _is_signed(public, signature, authenticator + hashlib.sha256(client).digest()) else "it is forged"


def verify_assertion(key: str, assertion: str, data: bytes) -> bool:
    """Whether the assertion is that of this passkey over ``data``."""
    return not find_assertion_problem(key, assertion, data)


def is_origin_of(host: str, origin: object) -> bool:
    """Whether pages of this origin are those of the host: by TLS, or on this machine."""
    if not isinstance(origin, str) or len(origin) > 300:
        return False
    try:
        parts = urlsplit(origin)
        plain = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port is not None else "")
    except ValueError:
        return False
    return origin == plain and (parts.scheme == "https" or (parts.scheme == "http" and host == LOCAL))


def _split(assertion: str) -> tuple[bytes, bytes, bytes]:
    if len(assertion) > _MAX_TEXT:
        raise ValueError("too long")
    authenticator, client, signature = map(decode_text, assertion.split("."))
    if len(authenticator) < 37:
        raise ValueError("too short")
    return authenticator, client, signature


def _load_public_key(der: bytes) -> PublicKeyTypes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        return load_der_public_key(der)
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from None


def _is_signed(public: PublicKeyTypes, signature: bytes, data: bytes) -> bool:
    """ES256, EdDSA (Ed25519) and RS256; nothing else."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        if isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1):
            public.verify(signature, data, ec.ECDSA(SHA256()))
        elif isinstance(public, ed25519.Ed25519PublicKey):
            public.verify(signature, data)
        elif isinstance(public, rsa.RSAPublicKey) and 2_048 <= public.key_size <= _MAX_RSA_BITS:
            public.verify(signature, data, padding.PKCS1v15(), SHA256())
        else:
            return False
    except (InvalidSignature, ValueError):
        return False
    return True
