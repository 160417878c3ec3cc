"""What lies beside the user's key: collected for a backup, and put in place on the machine that it is restored on.

Nothing that is there is overwritten. Where this machine has a key of its own, both count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import PolicyError, WorkspaceError
from cleared.base.safe_files import describe_os_error, read_stable, write_atomic, write_new
from cleared.changes.backup.manifest import BackupManifest
from cleared.trust import trust_store
from cleared.trust.keys import KEY, RUN_KEY, cleared_home, parse_key, read_key_file
from cleared.trust.workspace_pin import pins_of_workspace
from cleared.workspace.location import trust_folder
from cleared.workspace.stores import STORES, find_store

MAX_BYTES: Final = 16 << 20
MAX_FILES: Final = 100
_COUNTERS: Final = "passkey-counters.json"
_SECRET: Final = "-key"


def collect_home_files(workspace: str, mark: str) -> dict[str, bytes]:
    """Path → content of what this user's folder holds of these books. Raises ``WorkspaceError`` where one cannot be
    read, or is a key that others can read."""
    home = cleared_home()
    paths = sorted(p.relative_to(home).as_posix() for p in [*home.glob("*"), *home.glob("*/*")] if p.is_file())
    found = {}
    for path in paths:
        store = find_store("home", path, workspace, mark)
        if store is not None and store.is_carried:
            is_key = path.endswith(_SECRET)
            found[path] = read_key_file(home / path) if is_key else read_stable(home / path, MAX_BYTES)[0]
    return found


def public_half_of(files: Mapping[str, bytes], name: str) -> str:
    """The public half of one of the keys; empty where there is none. Raises ``WorkspaceError`` if damaged."""
    return parse_key(files[name], Path(name)).public if name in files else ""


def is_home_file(path: str, manifest: BackupManifest) -> bool:
    """Whether a backup of these books may have a file at this path of the folder."""
    store = find_store("home", path, manifest.workspace, manifest.mark)
    return store is not None and store.is_carried


class HomeRestoration(Struct):
    """What is to be put into this user's folder. ``files``: path → content, as the backup has it. ``keeps_key``:
    another key of this machine goes on. ``beside``: the old machine goes on too, so only what is the person's is taken.
    """

    manifest: BackupManifest
    files: Mapping[str, bytes]
    keeps_key: bool
    beside: bool
    kept: list[str] = []
    """What was left as it is on this machine, after ``install``."""
    _made: list[Path] = []

    def refuse_conflicts(self) -> None:
        """Raises ``PolicyError`` where this machine approves with another key, and nobody said that it may."""
        path = cleared_home() / KEY
        if KEY not in self.files or not path.exists() or self.keeps_key:
            return
        own, old = parse_key(read_key_file(path), path).public, public_half_of(self.files, KEY)
        if own != old:
            raise PolicyError(
                f"this machine has an approval key of its own, {path} ({own[:16]}…); the backup has another "
                f"({old[:16]}…); nothing was restored",
                remedy="To go on with this machine's key, and let count what the other approved: --keep-key. To have "
                "the other: name a new folder in CLEARED_HOME, now and whenever you work in these books; or, where "
                f"this machine's was only tried out, move {path} and {path}.pub away first.",
            )

    def secret_of(self, name: str) -> bytes | None:
        """The content of a key's file as it will be on this machine; None where there will be none."""
        path = cleared_home() / name
        return read_key_file(path) if path.exists() else self._select_files().get(name)

    def install(self) -> None:
        """Put the files in place, and trust what the backup's keys signed. ``undo`` takes it back.

        Raises ``WorkspaceError`` where that cannot be written.
        """
        home, is_known = cleared_home(), _is_known(self.manifest)
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path, data in self._select_files().items():
                target = home / path
                if target.exists():
                    if path == _COUNTERS:
                        _merge_counters(target, data)
                    elif target.read_bytes() != data:
                        self.kept.append(path)
                    continue
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                if write_new(target, data, mode=0o600):
                    self._made.append(target)
            self._trust_old_keys(is_known=is_known)
        except OSError as error:
            raise WorkspaceError(
                f"{home} cannot be written: {describe_os_error(error)}", remedy="Set CLEARED_HOME to a writable folder."
            ) from error

    def undo(self) -> None:
        """Remove what ``install`` has made."""
        for path in self._made:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _select_files(self) -> dict[str, bytes]:
        if not self.beside:
            return dict(self.files)
        personal = [store for store in STORES if store.place == "home" and store.is_personal]
        return {p: d for p, d in self.files.items() if any(store.matches(p) for store in personal)}

    def _trust_old_keys(self, *, is_known: bool) -> None:
        """What the old machine signed counts here, also where its keys do not come.

        ``is_known``: this machine has these books already, and a file from outside does not say who is trusted in them:
        that is for ``cleared trust``."""
        manifest, home = self.manifest, cleared_home()
        missing = {}
        for name, public in ((KEY, manifest.approval_key), (RUN_KEY, manifest.run_key)):
            path = home / name
            if public and (not path.exists() or parse_key(read_key_file(path), path).public != public):
                missing[name] = public
        if not missing or is_known or not manifest.is_pinned:
            return
        path = _trust_path(manifest)
        if not path.exists():
            self._made.append(path)
        trust = trust_store.load_trust(manifest.workspace)
        who = f"the machine of the backup of {manifest.made_at[:10]}"
        if KEY in missing:
            trust.keys.setdefault(missing[KEY], who)
        if RUN_KEY in missing:
            trust.runs.setdefault(missing[RUN_KEY], who)
        trust.save()


def _is_known(manifest: BackupManifest) -> bool:
    return _trust_path(manifest).exists() or bool(pins_of_workspace(manifest.workspace))


def _trust_path(manifest: BackupManifest) -> Path:
    return trust_folder() / f"{manifest.workspace}.json"


def _merge_counters(path: Path, data: bytes) -> None:
    """Each passkey's higher counter: one that was copied falls behind it."""
    try:
        here, there = ({str(k): int(v) for k, v in json.loads(text).items()} for text in (path.read_bytes(), data))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return
    merged = {key: max(here.get(key, 0), there.get(key, 0)) for key in {*here, *there}}
    if merged != here:
        write_atomic(path, (json.dumps(merged) + "\n").encode("ascii"), mode=0o600)
