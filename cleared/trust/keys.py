"""The key a person approves with (Ed25519). It lies outside every repository, readable by its owner alone.

A confined program changes no key and no list of trust; one that runs with the user's rights can take their permissions
away, and so lock the person out. So the right to read them is given back.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleared.base.errors import PolicyError, WorkspaceError
from cleared.base.safe_files import describe_os_error, write_atomic, write_new
from cleared.trust import passphrase, sealed_key
from cleared.trust.clone_marks import KEY as KEY
from cleared.trust.clone_marks import RUN_KEY as RUN_KEY
from cleared.trust.clone_marks import find_other_home, is_inside, pins_folder
from cleared.trust.passkey_assertions import is_passkey, verify_assertion
from cleared.workspace.location import cleared_home as cleared_home
from cleared.workspace.location import trust_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def restore_access() -> list[Path]:
    """Give the owner's rights back to what ``cleared`` keeps of this user; what it was given back to.

    Rights of others are left as they are: a key that others can read is refused, with what to do about it.
    """
    given = []
    for folder in (cleared_home(), trust_folder(), pins_folder()):
        given += _restore_mode(folder, stat.S_IRWXU)
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if folder != cleared_home() or "-key" in entry.name:
                    given += _restore_mode(Path(entry.path), stat.S_IRUSR | stat.S_IWUSR)
    return given


def _restore_mode(path: Path, wanted: int) -> list[Path]:
    with suppress(OSError):
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        ours = os.name == "posix" and status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode)
        if ours and mode & wanted != wanted:
            path.chmod(mode | wanted)
            return [path]
    return []


PREFIX: Final = "ed25519:"
TASK_KEY: Final = "task-key"
"""What this machine signs with which tasks a person has taken. It approves nothing."""
PUBLIC: Final = (f"{KEY}.pub", f"{RUN_KEY}.pub", f"{TASK_KEY}.pub")
"""Their public halves, for a job, which must tell whose approvals count and must not be able to approve."""


class Key:
    """A private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PREFIX + base64.b64encode(key.public_key().public_bytes_raw()).decode("ascii")

    def sign(self, data: bytes) -> str:
        """The signature over ``data``. Raises ``KeyLocked`` where a passphrase must be typed first."""
        return base64.b64encode(self._key.sign(data)).decode("ascii")

    def require_unlocked(self) -> None:
        """Raises ``KeyLocked`` where a passphrase must be typed before it signs."""

    def unlock(self) -> None:
        """Ask for the passphrase, where there is one and it is not remembered. Raises ``PolicyError`` where nobody can
        be asked, or all tries were wrong."""


class ProtectedKey(Key):
    """A private key with a passphrase. ``data``: the content of its file, which names its public half."""

    def __init__(self, data: bytes, shown: str) -> None:
        self._data, self._shown = data, shown
        self.public = sealed_key.read_public_half(data, shown)

    def sign(self, data: bytes) -> str:
        self.require_unlocked()
        secret = passphrase.recall_secret(self._data)
        if secret is None:
            raise KeyLocked(self)
        return _key_of(secret).sign(data)

    def require_unlocked(self) -> None:
        if passphrase.recall_secret(self._data) is None:
            raise KeyLocked(self)

    def unlock(self) -> None:
        if passphrase.recall_secret(self._data) is not None:
            return
        for attempt in range(1, passphrase.TRIES + 1):
            prompt = "Passphrase of the approval key: " if attempt == 1 else "Wrong. Passphrase of the approval key: "
            try:
                secret = sealed_key.open_sealed_key(self._data, passphrase.ask_passphrase(prompt), self._shown)
            except sealed_key.WrongPassphrase:
                if attempt == passphrase.TRIES:
                    raise
                continue
            if public_half(secret) != self.public:
                raise WorkspaceError(f"the approval key {self._shown} is not the one whose public half it names")
            passphrase.remember_secret(self._data, secret)
            return


class KeyLocked(PolicyError):
    """A key with a passphrase is to sign, and the passphrase was not typed."""

    def __init__(self, key: Key) -> None:
        super().__init__(
            "the approval key has a passphrase, which was not typed; nothing was signed",
            remedy="Run the command in a terminal of your own.",
        )
        self.key = key


def is_passphrase_protected() -> bool:
    """Whether this user's approval key has a passphrase; False where there is no key, or it cannot be read."""
    try:
        with (cleared_home() / KEY).open("rb") as file:
            return sealed_key.is_sealed(file.read(64))
    except OSError:
        return False


def warning_of_open_key() -> str | None:
    """What to tell whoever has a model work on this machine, where the approval key has no passphrase."""
    if is_passphrase_protected():
        return None
    return (
        "The approval key has no passphrase: a model that may run commands as you could approve its own proposals. "
        "Give it one: cleared key protect"
    )


def unlock_own_key(root: Path) -> None:
    """Ask for the passphrase of this user's key, where it has one: before a lock is taken and long work begins.

    Raises ``PolicyError`` where nobody can be asked, or all tries were wrong, and what ``own_key`` raises.
    """
    own = own_key(root)
    if own is not None:
        own.unlock()


def describe_approval_key() -> dict[str, Any]:
    """Where this user's approval key lies, its public half, and whether it has a passphrase. Raises ``WorkspaceError``
    where it is damaged or others can read it."""
    path = cleared_home() / KEY
    exists = path.exists()
    return {
        "file": str(path),
        "exists": exists,
        "passphrase": is_passphrase_protected(),
        "public": _read_key(path).public if exists else None,
    }


def own_key(root: Path, *, create: bool = False) -> Key | None:
    """This user's key; ``create`` makes one where there is none. ``root``: the workspace it is used for.

    Raises ``WorkspaceError`` where the key lies inside the workspace, others can read it, or it is damaged.
    """
    return _load_key(root, KEY, create)


def run_key(root: Path, *, create: bool = False) -> Key | None:
    """The key of this machine's runs, as ``own_key`` gives the user's. Raises ``WorkspaceError`` as that does."""
    return _load_key(root, RUN_KEY, create)


def task_key(root: Path, *, create: bool = False) -> Key | None:
    """The key of this machine's tasks, likewise."""
    return _load_key(root, TASK_KEY, create)


def _load_key(root: Path, name: str, create: bool) -> Key | None:
    refuse_inside(root, name)
    path = cleared_home() / name
    if not path.exists():
        if create:
            if elsewhere := find_other_home(root):
                raise elsewhere
            _refuse_lost_key(path)
        return _make_key(cleared_home(), path) if create else None
    return _read_key(path)


def _refuse_lost_key(path: Path) -> None:
    """Raises ``WorkspaceError`` where the key was taken away: another is not made behind somebody's back."""
    public = path.with_name(f"{path.name}.pub")
    if public.exists():
        anew = "approve again with a new key" if path.name == KEY else "trust what it signed: cleared trust"
        raise WorkspaceError(
            f"the {_key_title(path.name)} {path} is gone, and its public half is still there; no other key is made",
            remedy=f"Put the key back. If it is lost: remove {public}, and {anew}.",
        )


def refuse_inside(root: Path, name: str = KEY) -> None:
    """Raises ``WorkspaceError`` where keys and trust would lie inside the workspace."""
    if is_inside(root, name):
        raise WorkspaceError(
            f"the {_key_title(name)} would lie inside the workspace ({cleared_home()})",
            remedy="Set CLEARED_HOME to a folder outside of it: whoever can write here must not be able to approve.",
        )


def _key_title(name: str) -> str:
    return name.replace("-", " ")


def own_public_key(root: Path) -> str:
    """The public half of this user's key; empty where there is none. Raises ``WorkspaceError`` as ``own_key`` does."""
    return _public_half(root, KEY)


def own_key_mark() -> str:
    """A text that changes once this user's key is another, or others may read its file; empty where there is none."""
    path = cleared_home() / KEY
    try:
        return f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError:
        return ""


def run_public_key(root: Path) -> str:
    """The public half of the key of this machine's runs, likewise."""
    return _public_half(root, RUN_KEY)


def task_public_key(root: Path) -> str:
    """The public half of the key of this machine's tasks, likewise."""
    return _public_half(root, TASK_KEY)


def _public_half(root: Path, name: str) -> str:
    try:
        (cleared_home() / name).open("rb").close()
    except PermissionError:
        try:
            return (cleared_home() / f"{name}.pub").read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return ""
    except OSError:
        pass
    own = _load_key(root, name, create=False)
    return own.public if own else ""


def publish_keys(root: Path) -> None:
    """Put the public halves of this user's and this machine's keys beside them, as far as there are such. Raises
    ``WorkspaceError``."""
    for name in (KEY, RUN_KEY, TASK_KEY):
        key, public = cleared_home() / name, cleared_home() / f"{name}.pub"
        with suppress(OSError):
            if key.exists() and not (public.exists() and public.stat().st_mtime_ns >= key.stat().st_mtime_ns):
                write_atomic(public, f"{_public_half(root, name)}\n".encode("ascii"))


def verify_signature(public: str, signature: str, data: bytes) -> bool:
    """Whether the signature over ``data`` is that key's. False for anything malformed, never an exception."""
    if is_passkey(public):
        return verify_assertion(public, signature, data)
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(_decode_exactly(public.removeprefix(PREFIX)))
        key.verify(_decode_exactly(signature), data)
    except (ValueError, InvalidSignature):
        return False
    return public.startswith(PREFIX)


def _decode_exactly(text: str) -> bytes:
    """Base64 in its one spelling: the last character of others has bits that say nothing. Raises ``ValueError``."""
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode("ascii") != text:
        raise ValueError("not in its one spelling")
    return data


def new_secret() -> bytes:
    """The 32 secret bytes of a new key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_half(secret: bytes) -> str:
    """The public half of the key with these secret bytes."""
    return _key_of(secret).public


def render_plain(secret: bytes) -> bytes:
    """The content of the file of a key that has no passphrase."""
    return base64.b64encode(secret) + b"\n"


def _key_of(secret: bytes) -> Key:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Key(Ed25519PrivateKey.from_private_bytes(secret))


def _make_key(folder: Path, path: Path) -> Key:
    secret = new_secret()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not write_new(path, render_plain(secret), mode=0o600):
            return _read_key(path)  # two commands made it at once
        if path.name == RUN_KEY:  # all that is done with it is lost with it, so that it is missed
            write_atomic(folder / f"{RUN_KEY}.pub", f"{public_half(secret)}\n".encode("ascii"))
    except OSError as e:
        raise WorkspaceError(
            f"no {_key_title(path.name)} can be made in {folder}: {describe_os_error(e)}",
            remedy="Set CLEARED_HOME to a writable folder.",
        ) from None
    return _key_of(secret)


def read_key_file(path: Path) -> bytes:
    """The content of a key's file. Raises ``WorkspaceError`` where it cannot be read, or others can read it."""
    try:
        mode = path.stat().st_mode
        data = path.read_bytes()
    except OSError as e:
        raise WorkspaceError(f"the {_key_title(path.name)} {path} cannot be read: {describe_os_error(e)}") from None
    if sys.platform != "win32" and mode & 0o077:
        raise WorkspaceError(
            f"others can read the {_key_title(path.name)} {path}", remedy=f"Close it: chmod 600 {path}"
        )
    return data


def read_plain_secret(path: Path) -> bytes:
    """The secret bytes of a key that has no passphrase. Raises ``WorkspaceError`` as ``own_key``."""
    return _parse_plain(read_key_file(path), path)._key.private_bytes_raw()


def _read_key(path: Path) -> Key:
    key = parse_key(read_key_file(path), path)
    if path.name == RUN_KEY:
        _refuse_other_half(key, path)
    return key


def _refuse_other_half(key: Key, path: Path) -> None:
    """Raises ``WorkspaceError`` where a key is not the one whose public half was written when it was made: any 32 bytes
    are a key, and with another one nothing counts that was signed."""
    public = path.with_name(f"{path.name}.pub")
    try:
        written = public.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return
    if written != key.public:
        raise WorkspaceError(
            f"the {_key_title(path.name)} {path} is damaged: it is not the one whose public half is in {public.name}",
            remedy=f"Put the key back from a backup. Where you have put another in its place: rm {public}, and trust "
            "what the one before signed: cleared trust.",
        )


def parse_key(data: bytes, path: Path) -> Key:
    """The key that a file of this content at ``path`` holds. Raises ``WorkspaceError`` where it is damaged."""
    if path.name == KEY and sealed_key.is_sealed(data):
        return ProtectedKey(data, str(path))
    return _parse_plain(data, path)


def _parse_plain(data: bytes, path: Path) -> Key:
    try:
        return _key_of(base64.b64decode(data.strip(), validate=True))
    except ValueError:
        raise WorkspaceError(
            f"the {_key_title(path.name)} {path} is damaged",
            remedy=f"Restore it, or delete it and {'approve' if path.name == KEY else 'ask'} again with a new one.",
        ) from None
