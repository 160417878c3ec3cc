"""Agent scripts and shared scripts as a run finds them: committed (or, in a dry run, as they lie there), checked."""

from __future__ import annotations

from dataclasses import dataclass

from cleared.errors import Place, PolicyError, UsageError
from cleared.runs.host import Host
from cleared.sandbox.finding import Finding
from cleared.sandbox.header import Header, parse_header
from cleared.sandbox.limits import Limits
from cleared.sandbox.lint import lint
from cleared.vcs import Snapshot, blob_id
from cleared.workspace.files import read_stable

MAX_SCRIPT = 256 * 1024


@dataclass(frozen=True, slots=True)
class Script:
    """A script that passed the checks."""

    name: str
    file: str
    source: str
    blob: str
    header: Header | None


def load_agent(host: Host, snapshot: Snapshot, name: str, *, working_copy: bool) -> Script:
    """The agent's script. ``working_copy``: as it lies in the working tree (dry runs), else as committed.

    Raises ``UsageError`` for a bad or unknown name, ``PolicyError`` where the working copy differs from the commit
    or the script fails the checks.
    """
    file = host.layout.agent_path(name)
    committed = snapshot.read(file)
    present = _working(host, file)
    if committed is None and present is None:
        known = sorted(p.removeprefix("agents/").removesuffix(".py") for p in snapshot.entries("agents"))
        raise UsageError(
            f"there is no agent {name!r}",
            remedy=f"Known: {', '.join(k for k in known if '/' not in k and not k.startswith('.')) or 'none yet'}.",
        )
    if working_copy:
        data = present if present is not None else committed
    else:
        if committed is None:
            raise PolicyError(
                "the script is not committed yet",
                place=Place(file),
                remedy=f"Try it with cleared agent run {name} --dry-run, then commit it: git add {file} && git commit.",
            )
        if present != committed:
            state = "is missing" if present is None else "differs from the committed script"
            raise PolicyError(
                f"the working copy {state}; only committed scripts are run",
                place=Place(file),
                remedy=f"Try it with cleared agent run {name} --dry-run; then commit it (git commit {file}) "
                f"or drop the change (git checkout -- {file}).",
            )
        data = committed
    return _checked(host, name, file, data or b"", "agent")


def load_script(host: Host, snapshot: Snapshot, name: str, *, working_copy: bool) -> Script:
    """A shared script for ``script_run``. Raises as ``load_agent`` does."""
    file = host.layout.script_path(name)
    data = snapshot.read(file)
    if working_copy:
        data = _working(host, file) or data
    if data is None:
        raise UsageError(f"there is no script {file}", remedy="script_run takes the name of a file in scripts/.")
    return _checked(host, name, file, data, "script")


def _working(host: Host, file: str) -> bytes | None:
    path = host.root / file
    if not path.is_symlink() and not path.exists():
        return None
    return read_stable(path, MAX_SCRIPT, shown=file)[0]


def _checked(host: Host, name: str, file: str, data: bytes, kind: str) -> Script:
    try:
        source = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise PolicyError(
            f"byte {e.start} is not UTF-8",
            place=Place(file, data.count(b"\n", 0, e.start) + 1),
            remedy="Save it as UTF-8.",
        ) from None
    header, findings = parse_header(source, file, kind="agent" if kind == "agent" else "script")
    findings = [*findings, *lint(source, file)]
    if findings:
        raise refused(file, findings)
    return Script(name, file, source, blob_id(data, "sha1"), header)


def refused(file: str, findings: list[Finding]) -> PolicyError:
    """One error for all findings of a script."""
    shown = "\n".join(f"  {f.place}: [{f.rule}] {f.message}. {f.remedy}" for f in findings[:20])
    more = f"\n  … and {len(findings) - 20} more" if len(findings) > 20 else ""
    return PolicyError(
        f"the script does not pass the checks; it was not run:\n{shown}{more}",
        place=Place(file, findings[0].place.line),
    )


def limits_of(host: Host, header: Header | None) -> Limits:
    """The configured limits, where the header does not set its own."""
    sandbox = host.config.sandbox
    seconds = header.timeout if header and header.timeout else sandbox.timeout
    memory = header.memory_mb if header and header.memory_mb else sandbox.memory_mb
    calls = header.max_calls if header and header.max_calls else sandbox.max_calls
    return Limits(
        seconds=seconds, memory_bytes=memory << 20, max_calls=calls, max_output_bytes=sandbox.max_output_kb << 10
    )
