"""A candidate: changed files that are examined together, each compared with its approved version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import Place, UsageError
from cleared.base.safe_files import read_stable
from cleared.changes.host import Host
from cleared.gate.approved_tests import find_approved_digest, is_approved_test
from cleared.gate.file_kinds import Kind, file_kind
from cleared.runs.approved_scripts import MAX_SCRIPT_BYTES, Scripts
from cleared.sandbox.used_primitives import find_grants
from cleared.trust.approval_record import canonical_digest, digest_of
from cleared.trust.policy_in_force import settings_in_force
from cleared.workspace.location import name_script
from cleared.workspace.settings.loading import load_config
from cleared.workspace.settings.model import Config

MAX_CASE = 32 << 20


class Change(Struct, frozen=True):
    """One file. ``old``: as last approved (None: never). ``new``: as proposed (None: removed)."""

    path: str
    kind: Kind
    old: bytes | None
    new: bytes | None

    @property
    def name(self) -> str:
        """The stem of an agent or shared script, as commands take it."""
        return name_script(self.path)

    @property
    def digest(self) -> str:
        """Of the new text; empty where the file would be removed."""
        return "" if self.new is None else digest_of(self.new)


class Candidate(Struct, frozen=True):
    """Files that become live together or not at all. ``looked_at``: agents to examine though they do not change."""

    changes: tuple[Change, ...]
    agents_to_examine: tuple[str, ...] = ()
    config: Config | None = None
    """The new configuration, where ``config.yaml`` is among the changes."""
    texts: Mapping[str, bytes | None] = {}

    @property
    def fingerprint(self) -> str:
        """Digest of the change: the same change proposed twice has the same one."""
        return canonical_digest({c.path: c.digest for c in self.changes})

    def changes_of_kind(self, kind: Kind) -> list[Change]:
        return [c for c in self.changes if c.kind == kind]


def make_candidate(changes: Iterable[Change], looked_at: Iterable[str] = ()) -> Candidate:
    """A candidate of these changes. Raises ``ConfigError`` where the new configuration is not valid."""
    ordered = tuple(sorted(changes, key=lambda c: c.path))
    config = None
    for change in ordered:
        if change.kind == "config" and change.new is not None:
            config = load_config(change.new.decode("utf-8-sig", "replace"))
    texts = {c.path: c.new for c in ordered if c.kind in ("agent", "script")}
    return Candidate(ordered, tuple(looked_at), config, texts)


def gather_candidate(
    host: Host,
    scripts: Scripts,
    targets: Iterable[str],
    *,
    unchanged: bool = False,
    texts: Mapping[str, bytes | None] | None = None,
) -> Candidate:
    """A candidate of ``targets`` (names of agents, or paths) and the shared scripts they run.

    ``texts``: the proposed files (path → content, None: removed). With it the working copies are not looked at, and a
    file that is not among them is as approved. Without it the working copies are taken. ``unchanged``: agents that are
    as approved are examined too. Raises ``UsageError`` for a target that cannot be proposed or has no change.
    """
    files = _ProposedFiles(host, scripts, texts)
    changes: dict[str, Change] = {}
    looked_at = []
    for target in targets:
        path, kind = _parse_target(host, target)
        change = files.read_change(path, kind)
        committed = scripts.snapshot.read_file(path)
        if change.new is None and (change.old is None or (committed is None and kind != "case")):
            raise _unknown_target(host, target, path)
        if change.new is not None and committed is None:
            _refuse_name_of_another_case(scripts, path)
        if kind == "agent":
            looked_at.append(change.name)
        if change.old != change.new or (texts is None and _has_unapproved_settings(host, kind)):
            changes[path] = change
        elif not unchanged and texts is None and committed != change.new:
            raise UsageError(
                f"{path} is as it was approved, only not committed so",
                remedy=f'Commit it, and it runs: git add {path} && git commit -m "agent: {change.name}" -- {path}',
            )
        elif not unchanged:
            raise UsageError(
                f"{path} is as it was approved: there is nothing to propose", remedy="Edit it first, and save it."
            )
        if kind in ("agent", "script") and change.new is not None:
            for name in files.list_used_scripts(change):
                shared = files.read_change(host.layout.script_path(name), "script")
                if shared.new is not None and shared.old != shared.new:
                    changes[shared.path] = shared
    candidate = make_candidate(changes.values(), looked_at)
    if texts is None:
        return candidate
    examined = {
        host.layout.agent_path(name): files.read_change(host.layout.agent_path(name), "agent").new for name in looked_at
    }
    return replace(candidate, texts={**examined, **candidate.texts})


def _refuse_name_of_another_case(scripts: Scripts, path: str) -> None:
    """Refuse a new file whose name differs only in capitals from another: on macOS and Windows both are one file."""
    folder, _, name = path.rpartition("/")
    for other in scripts.snapshot.list_folder(folder):
        if other.casefold() == name.casefold() and other != name:
            raise UsageError(
                f"{path} differs from {folder}/{other} only in capitals, and is the same file on some computers",
                remedy="Choose another name.",
            )


def _parse_target(host: Host, text: str) -> tuple[str, Kind]:
    path = text.removeprefix("./").rstrip("/")
    kind = file_kind(path)
    return (path, kind) if kind is not None else (host.layout.agent_path(path), "agent")


class _ProposedFiles:
    """The files as they would become: ``texts`` over what is approved, or the working copies where it is None."""

    def __init__(self, host: Host, scripts: Scripts, texts: Mapping[str, bytes | None] | None) -> None:
        self._host, self._scripts, self._texts = host, scripts, texts
        self._sources = Scripts(host, scripts.snapshot, working_copy=texts is None, texts=texts)

    def read_change(self, path: str, kind: Kind) -> Change:
        """The file, compared with its approved version. Raises ``UsageError`` for a name that looks like another."""
        file_kind(path)
        old = approved_text(self._scripts, path, kind)
        if self._texts is None:
            return Change(path, kind, old, _read_working_copy(self._host.root / path, path, kind))
        new = self._texts.get(path, old)
        if new is not None and len(new) > _max_bytes(kind):
            raise UsageError(
                f"it is larger than {_max_bytes(kind)} bytes", place=Place(path), remedy="Make it smaller."
            )
        return Change(path, kind, old, new)

    def list_used_scripts(self, change: Change) -> list[str]:
        """Names of the shared scripts that a script runs, itself or through others."""
        source = (change.new or b"").decode("utf-8", "replace")
        return sorted(find_grants(source, change.path, self._host.registry, self._sources.read_shared_source)[1])


def _read_working_copy(full: Path, path: str, kind: Kind) -> bytes | None:
    if not full.is_symlink() and not full.exists():
        return None
    return read_stable(full, _max_bytes(kind), shown=path)[0]


def _max_bytes(kind: Kind) -> int:
    return MAX_CASE if kind == "case" else MAX_SCRIPT_BYTES * 8


def approved_text(scripts: Scripts, path: str, kind: Kind) -> bytes | None:
    """The file as it is approved now; None where it is not."""
    if kind in ("agent", "script", "text"):
        return scripts.approvals.approved_version(path)[0]
    return _approved_test(scripts, path) if kind == "case" else scripts.snapshot.read_file(path)


def _approved_test(scripts: Scripts, path: str) -> bytes | None:
    """The approved text of a test; empty where only its digest is known, as the committed text is another."""
    data, digest = scripts.snapshot.read_file(path), find_approved_digest(scripts.approvals, path)
    return data if not digest or is_approved_test(scripts.approvals, path, data) else b""


def _has_unapproved_settings(host: Host, kind: Kind) -> bool:
    """Whether ``config.yaml`` holds protected settings that are not approved, though it may be committed as it is."""
    if kind != "config":
        return False
    force = host.policy or settings_in_force(host.root, host.config)
    return bool(force.unapproved)


def _unknown_target(host: Host, target: str, path: str) -> UsageError:
    if path.startswith(f"{host.layout.agents_dir}/"):
        paths = [p for p in (host.root / host.layout.agents_dir).glob("*.py") if not p.name.startswith(".")]
        names = ", ".join(sorted(p.stem for p in paths)) or "none yet"
        return UsageError(f"there is no agent {target!r}", remedy=f"Known: {names}.")
    return UsageError("there is no such file", place=Place(path))
