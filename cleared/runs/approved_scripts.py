"""Loads the scripts of a run: committed, approved, and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, Place, PolicyError, UsageError
from cleared.base.safe_files import read_stable
from cleared.changes.host import Host
from cleared.changes.noticed_history import read_noticed_trust
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import parse_header
from cleared.git import Snapshot, blob_id, history
from cleared.git.working_files import read_content_id
from cleared.sandbox import construct_lint, effective_limits
from cleared.sandbox import header as headers
from cleared.sandbox.finding import Finding, blocking_findings, split_findings
from cleared.sandbox.header import Header
from cleared.sandbox.used_primitives import (
    ENQUEUE,
    MODEL_PRIMITIVES,
    find_grants,
    granted_job_types,
    granted_model_budgets,
)
from cleared.trust.approval_record import digest_of
from cleared.trust.verification import Approvals, Verification, refusal_of
from cleared.workspace import template

MAX_SCRIPT_BYTES = 256 * 1024


class Script(Struct, frozen=True):
    """A script that passed the checks. ``grants``: the primitives it may call, those of its shared scripts too, and
    the job types that it may enqueue (``loop_enqueue:KIND``)."""

    name: str
    file: str
    source: str
    blob: str
    header: Header | None
    grants: frozenset[str] = frozenset()
    proposal: str = ""
    """What approved it; empty for starters, and for what is only tried."""


class Scripts:
    """Where a run takes its scripts from: the commit, if approved; in a dry run the working tree; ``texts`` (path →
    bytes, None: removed) come first, for the gate, which rehearses what nobody has approved yet."""

    def __init__(
        self,
        host: Host,
        snapshot: Snapshot,
        *,
        working_copy: bool = False,
        texts: Mapping[str, bytes | None] | None = None,
    ) -> None:
        self.host, self.snapshot, self.working_copy = host, snapshot, working_copy
        self.texts = texts or {}
        self._shared: dict[str, Script] = {}
        self._given: list[str] = []
        self.warnings: dict[str, tuple[Finding, ...]] = {}
        """File → what rules say that came later, of every script that was asked for."""
        noticed = partial(read_noticed_trust, host, snapshot.repo)
        self.approvals = Approvals(CommittedSource(snapshot), host.root, _Starters(self), noticed)

    def load_agent(self, name: str) -> Script:
        """The agent's script: as committed, whatever lies in the working tree. Raises ``UsageError`` for a bad or
        unknown name, ``PolicyError`` where it is not approved, is disabled, or fails the checks."""
        file = self.host.layout.agent_path(name)
        if file in self.texts or self.working_copy:
            return self._load_unapproved(name, file, "agent")
        committed = self.snapshot.read_file(file)
        if committed is None:
            raise self._uncommitted_error(name, file)
        standing = self.approvals.verify_agent(file, committed)
        if standing.state == "disabled":
            self.approvals.remember_disabling(file, format_iso(self.host.clock.now()))
        if not standing.may_run:
            raise refusal_of(file, name, standing)
        return self._load_approved(name, file, committed, "agent", standing)

    def list_edited(self) -> list[str]:
        """The files of the scripts that were given out as committed, and whose working copies are others."""
        hash_name = self.snapshot.hash_name
        return [
            f for f in self._given if read_content_id(self.host.root / f, hash_name) != self.snapshot.find_blob_id(f)
        ]

    def load_shared(self, name: str) -> Script:
        """A shared script for ``script_run``. Raises as ``agent`` does."""
        if name not in self._shared:
            self._shared[name] = self._find_shared(name)
        return self._shared[name]

    def _find_shared(self, name: str) -> Script:
        file = self.host.layout.script_path(name)
        data = self._read_text(file)
        if data is None:
            raise UsageError(f"there is no script {file}", remedy="script_run takes the name of a file in scripts/.")
        if file in self.texts or self.working_copy:
            return self._load_unapproved(name, file, "script")
        standing = self.require_approved(file, file, data)
        return self._load_approved(name, file, data, "script", standing)

    def require_approved(self, file: str, name: str, data: bytes) -> Verification:
        """What lets these bytes run. Raises ``PolicyError`` where nothing does; ``name`` is what the commands take."""
        standing = self.approvals.verify_version(file, data)
        if not standing.may_run:
            raise refusal_of(file, name, standing)
        return standing

    def _read_text(self, file: str) -> bytes | None:
        if file in self.texts:
            return self.texts[file]
        if self.working_copy:
            present = _read_working_copy(self.host, file)
            if present is not None:
                return present
        return self.snapshot.read_file(file)

    def _load_unapproved(self, name: str, file: str, kind: str) -> Script:
        data = self._read_text(file)
        if data is None:
            raise self._unknown_agent_error(name)
        script = self._check_script(name, file, data, kind)
        return replace(script, grants=self.find_script_grants(script.source, file))

    def _load_approved(self, name: str, file: str, data: bytes, kind: str, standing: Verification) -> Script:
        script = self._check_script(name, file, data, kind)
        self._given.append(file)
        record = standing.record
        if record is None:
            return replace(script, grants=self.find_script_grants(script.source, file))
        return replace(script, grants=frozenset(record.grants), proposal=record.proposal)

    def _check_script(self, name: str, file: str, data: bytes, kind: str) -> Script:
        script, later = _check_text(self.host, name, file, data, kind)
        self.warnings[file] = later
        return script

    def find_earlier_starter(self, path: str, but: bytes | None = None, digest: str = "") -> bytes | None:
        """The newest version in the history that came with the program, other than ``but``, and with this digest where
        one is given; None where none did."""
        rev = self.snapshot.commit or "HEAD"
        for commit in (
            history.read_log(self.host.root, None, [path], rev=rev) if template.was_path_shipped(path) else ()
        ):
            data = self.snapshot.at_commit(commit.id).read_file(path)
            if data is None or data == but or not template.was_shipped(path, data):
                continue
            if digest in ("", digest_of(data)):
                return data
        return None

    def find_script_grants(self, source: str, file: str) -> frozenset[str]:
        """The primitives that a text names, and those of the shared scripts it runs; with them the job types
        that an agent's header lets it enqueue, and what it may spend on language models."""
        used_grants, _ = find_grants(source, file, self.host.registry, self.read_shared_source)
        is_agent = file.startswith(f"{self.host.layout.agents_dir}/")
        if not is_agent or used_grants.isdisjoint((ENQUEUE, *MODEL_PRIMITIVES)):
            return used_grants
        header, _ = parse_header(source, file)
        given = frozenset((header.grants or ()) if header else ())
        jobs = granted_job_types(given) if ENQUEUE in used_grants else frozenset()
        budgets = {grant for grant in given if used_grants.intersection(granted_model_budgets([grant]))}
        return used_grants | jobs | budgets

    def read_shared_source(self, name: str) -> tuple[str, str] | None:
        """File and text of a shared script, unchecked; None where there is none."""
        try:
            file = self.host.layout.script_path(name)
        except UsageError:
            return None
        data = self._read_text(file)
        return None if data is None else (file, data.decode("utf-8", "replace"))

    def _uncommitted_error(self, name: str, file: str) -> ClearedError:
        present = _read_working_copy(self.host, file)
        if present is None:
            return self._unknown_agent_error(name)
        if self.approvals.verify_version(file, present).may_run:
            return PolicyError(
                "the script is as it was approved, but not committed; it was not run",
                place=Place(file),
                remedy=f'Commit it: git add {file} && git commit -m "agent: {name}" -- {file}',
            )
        return PolicyError(
            "the script was never approved; it was not run",
            place=Place(file),
            remedy=f"Have it checked and approved: cleared agent propose {name}. "
            f"Try it with cleared agent run {name} --dry-run.",
        )

    def _unknown_agent_error(self, name: str) -> UsageError:
        agent_names = sorted(
            p.removeprefix("agents/").removesuffix(".py") for p in self.snapshot.list_entries("agents")
        )
        shown = [k for k in agent_names if "/" not in k and not k.startswith(".")]
        return UsageError(f"there is no agent {name!r}", remedy=f"Known: {', '.join(shown) or 'none yet'}.")


class _Starters(Mapping[str, bytes]):
    """Path → the starter that these books had last, which may be an earlier version than the installed package's."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._today: dict[str, bytes] | None = None
        self._texts: dict[str, bytes] = {}

    def __getitem__(self, path: str) -> bytes:
        if path not in self._texts:
            starter = self._scripts.find_earlier_starter(path)
            self._texts[path] = self.installed[path] if starter is None else starter
        return self._texts[path]

    @property
    def installed(self) -> dict[str, bytes]:
        """The installed package's."""
        if self._today is None:
            self._today = template.starter_files()
        return self._today

    def __iter__(self) -> Iterator[str]:
        return iter(self.installed)

    def __len__(self) -> int:
        return len(self.installed)


def _read_working_copy(host: Host, file: str) -> bytes | None:
    path = host.root / file
    if not path.is_symlink() and not path.exists():
        return None
    return read_stable(path, MAX_SCRIPT_BYTES, shown=file)[0]


def _check_text(host: Host, name: str, file: str, data: bytes, kind: str) -> tuple[Script, tuple[Finding, ...]]:
    """The script, and what rules say that came later. Raises ``PolicyError`` where it does not pass the others."""
    try:
        source = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise PolicyError(
            f"byte {e.start} is not UTF-8",
            place=Place(file, data.count(b"\n", 0, e.start) + 1),
            remedy="Save it as UTF-8.",
        ) from None
    header, findings = parse_header(source, file, kind="agent" if kind == "agent" else "script")
    switched = host.config.gate.rules
    findings += [
        *construct_lint.lint_script(source, file),
        *effective_limits.check_caps(header, host.config.sandbox, file),
    ]
    rules = {**headers.RULES, **construct_lint.RULES, **effective_limits.RULES}
    findings, later = split_findings(dict.fromkeys(findings), rules, switched)
    findings = blocking_findings(findings, switched)
    if findings:
        raise findings_error(file, findings)
    return Script(name, file, source, blob_id(data, "sha1"), header), tuple(later)


def findings_error(file: str, findings: list[Finding]) -> PolicyError:
    """One error for all findings of a script."""
    shown = "\n".join(f"  {f.place}: [{f.rule}] {f.message}. {f.remedy}" for f in findings[:20])
    more = f"\n  … and {len(findings) - 20} more" if len(findings) > 20 else ""
    return PolicyError(
        f"the script does not pass the checks; it was not run:\n{shown}{more}",
        place=Place(file, findings[0].place.line),
    )
