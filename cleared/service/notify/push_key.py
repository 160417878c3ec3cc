"""The key that messages to phones are signed with (VAPID, RFC 8292). A phone takes messages of this key alone.

It lies beside the user's other keys, outside of every repository. It signs messages, and approves nothing.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import describe_os_error, is_open_to_others, read_stable, write_new
from cleared.trust.keys import cleared_home, refuse_inside

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

KEY_NAME: Final = "push-key"
_MAX_BYTES: Final = 10_000


def read_push_key(root: Path) -> EllipticCurvePrivateKey:
    """The key; made where there is none yet. ``root``: the workspace it is used for.

    Raises ``WorkspaceError`` where it would lie in the workspace, others can read it, or it is damaged.
    """
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    refuse_inside(root, KEY_NAME)
    path = cleared_home() / KEY_NAME
    try:
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_new(path, _make_key(), mode=0o600)  # where two make it at once, the first wins
    except OSError as error:
        raise WorkspaceError(
            f"the key of messages to phones cannot be made: {describe_os_error(error)}",
            place=Place(str(path)),
            remedy="Set CLEARED_HOME to a folder of yours that can be written to.",
        ) from None
    data = read_private_file(path, _MAX_BYTES, "the key of messages to phones")
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise WorkspaceError(
            "the key of messages to phones is damaged",
            place=Place(str(path)),
            remedy="Put it back from a backup; or delete it, and have each phone ask for messages again.",
        )
    return key


def read_private_file(path: Path, most: int, what: str) -> bytes:
    """The content of a file that is its owner's alone. Raises ``WorkspaceError`` where others may read it."""
    data, status = read_stable(path, most)
    if is_open_to_others(status):
        raise WorkspaceError(
            f"others can read {what}",
            place=Place(str(path)),
            remedy="Delete the file, and have each phone ask for messages again.",
        )
    return data


def render_public_key(key: EllipticCurvePrivateKey) -> str:
    """Its public half as a browser takes it: base64url of the point."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64.urlsafe_b64encode(point).rstrip(b"=").decode("ascii")


def _make_key() -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    made = ec.generate_private_key(ec.SECP256R1())
    return made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
