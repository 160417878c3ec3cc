"""``cleared doctor``: what this machine and this workspace are fit for, each thing with its remedy.

A check never stops the others: what it cannot find out is itself a row.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from cleared.cli import doctor_history
from cleared.cli.machine_errors import as_refusal
from cleared.errors import ClearedError, ExitCode, WorkspaceError

if TYPE_CHECKING:
    from cleared.changes.host import Host

Status = Literal["ok", "warn", "fail"]
MIN_GIT: Final = (2, 28)
_LOW_SPACE, _TOO_FEW_BYTES, _LARGE_TRACE = 1 << 30, 64 << 20, 1 << 30
_TEMPORARY: Final = re.compile(r"\.cleared-seal-[0-9a-f]+\.tmp|\..+\.[0-9a-f]{12}\.tmp")
_MEND_FIRST: Final = "Put that right, then look again."
_REBUILD: Final = "Run: cleared doctor --rebuild."


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was looked at. ``remedy`` is empty where there is nothing to do."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


def print_doctor(workspace: Path | None, as_json: bool, rebuild: bool = False) -> None:
    """Look, and print a row for each thing. Exits 4 where one of them fails.

    ``rebuild`` completes a commit that was interrupted, and begins the trace database anew; the old one is kept.
    Raises ``WorkspaceError`` where there is no workspace to do that in.
    """
    from cleared.terminal import print_json, print_line, print_message

    done = _rebuild_state(workspace) if rebuild else []
    rows = [*_check_machine(), *done, *_check_workspace(workspace)]
    failed = [row for row in rows if row.status == "fail"]
    if as_json:
        print_json({"ok": not failed, "checks": [asdict(row) for row in rows]})
    else:
        width = max(len(row.name) for row in rows)
        for row in rows:
            first, *more = row.detail.split("\n")
            print_line(f"{row.status:<4}  {row.name:<{width}}  {first}")
            for line in [*more, *([row.remedy] if row.remedy else [])]:
                print_line(f"{'':<{width + 8}}{line}")
        warned = sum(row.status == "warn" for row in rows)
        print_message(
            f"{len(rows)} checks: {len(failed)} failed, {warned} to look at" if failed or warned else "All is well."
        )
    if failed:
        import typer

        sys.stdout.flush()
        raise typer.Exit(int(ExitCode.UNUSABLE))


def _run_check(name: str, look: Callable[[], Row]) -> Row:
    try:
        return look()
    except Exception as error:
        e = as_refusal(error)
        if e is None:
            raise
        said = f"{e.place}: {e.message}" if e.place and e.place.file else e.message
        return Row(name, "fail", said, e.remedy or _MEND_FIRST)


# --- the machine --------------------------------------------------------------------------------------------


def _check_machine() -> Iterator[Row]:
    import platform

    from cleared import __version__

    new = sys.version_info >= (3, 11)
    yield Row("python", "ok" if new else "fail", f"{platform.python_version()} ({sys.executable})",
              "" if new else "Use Python 3.11 or newer.")  # fmt: skip
    yield Row("platform", "ok", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Row("cleared", "ok", __version__)
    yield _run_check("dependencies", _check_dependencies)
    yield _run_check("git", _check_git)
    yield from _check_sandbox()
    yield _run_check("temporary files", _check_temporary_files)


def _check_dependencies() -> Row:
    from importlib.metadata import PackageNotFoundError, requires, version

    found, wrong = [], []
    for text in requires("cleared") or []:
        spec, _, marker = text.partition(";")
        if "extra" in marker or ("win32" in marker and sys.platform != "win32"):
            continue
        name = re.split(r"[<>=!~ \[]", spec.strip())[0]
        try:
            have = version(name)
        except PackageNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        found.append(f"{name} {have}")
        wanted = re.search(r"(==|>=)\s*([0-9.]+)", spec)
        if wanted and not (
            _version_numbers(have) >= _version_numbers(wanted[2]) if wanted[1] == ">=" else have == wanted[2]
        ):
            wrong.append(f"{name} is {have}, not {wanted[1]} {wanted[2]}")
    if wrong:
        return Row("dependencies", "fail", "; ".join(wrong), "Install again: pip install --upgrade cleared.")
    return Row("dependencies", "ok", ", ".join(found))


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version)[:3])


def _check_git() -> Row:
    from cleared.vcs.git_process import NOT_INSTALLED, Git, find_git

    path = find_git()
    said = Git(Path.cwd()).run("version").decode("utf-8", "replace").strip().removeprefix("git version ")
    if _version_numbers(said)[:2] < MIN_GIT:
        return Row("git", "fail", f"{said} ({path}) is too old", NOT_INSTALLED)
    return Row("git", "ok", f"{said} ({path})")


def _check_sandbox() -> Iterator[Row]:
    from cleared.clock import SystemClock
    from cleared.sandbox.limits import Limits
    from cleared.sandbox.monty import Sandbox

    clock = SystemClock()
    try:
        with Sandbox(confine="best") as sandbox:
            began = clock.monotonic()
            answer = sandbox.run(
                "1 + 1", file="doctor", call=lambda *_: None, names=(), limits=Limits(), now=clock.now(), seed="doctor"
            )
            took = (clock.monotonic() - began) * 1000
            level = sandbox.level
    except ClearedError as e:
        yield Row("sandbox", "fail", e.message, e.remedy or "Install again: pip install --upgrade cleared.")
        return
    if answer != 2:
        yield Row("sandbox", "fail", f"it says that 1 + 1 is {answer!r}", "Install again: pip install cleared.")
        return
    yield Row("sandbox", "ok", f"a worker started and ran 1 + 1 in {took:.0f} ms")
    if level.is_full:
        yield Row("confinement", "ok", f"{level} (Landlock ABI {level.landlock}), read back from a live worker")
        return
    remedy = (
        "Use a kernel with Landlock (5.13 or newer) and seccomp; in a container, allow both."
        if sys.platform == "linux"
        else "Only Linux has it. Scripts stay inside the interpreter all the same."
    )
    yield Row("confinement", "warn", f"{level}: beneath the interpreter, a worker is not fully confined", remedy)


def _check_temporary_files() -> Row:
    folder = Path(tempfile.gettempdir())
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")
    return _check_space("temporary files", folder)


def _check_space(name: str, folder: Path) -> Row:
    free = shutil.disk_usage(folder).free
    shown = f"{folder}: {_size_text(free)} free"
    if free < _LOW_SPACE:
        return Row(name, "fail" if free < _TOO_FEW_BYTES else "warn", shown, "Make room on the disk.")
    return Row(name, "ok", shown)


def _size_text(number: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


# --- the workspace ------------------------------------------------------------------------------------------


def _check_workspace(workspace: Path | None) -> Iterator[Row]:
    from cleared.cli import options
    from cleared.config.loading import ConfigError
    from cleared.workspace import location

    try:
        root = location.find_workspace(options.chosen_workspace(workspace))
    except WorkspaceError as e:
        asked = options.chosen_workspace(workspace) is not None
        yield Row("workspace", "fail" if asked else "ok", f"none: {e.message}", e.remedy or "")
        return
    yield Row("workspace", "ok", str(root))
    said: list[str] = []
    try:
        host = options.open_host(workspace)
    except ClearedError as e:
        remedy = "Correct config.yaml; nothing else works before." if isinstance(e, ConfigError) else ""
        yield Row("config", "fail", str(e), remedy)
        return
    host.show_message = said.append
    summary = (
        f"{host.layout.config_file} is valid; {len(host.config.bank_accounts)} bank accounts, "
        f"{host.config.business.timezone}, confine: {host.config.sandbox.confine}"
    )
    yield Row("config", "ok", summary + _name_reserved(host))
    rows: dict[str, Callable[[], Row]] = {
        "writer lock": lambda: _check_lock(host),
        "service": lambda: _check_service(host),
        "repository": lambda: _check_repository(host),
        "history": lambda: doctor_history.check_history(host),
        "branch": lambda: doctor_history.check_branch(host),
        "interrupted commit": lambda: _check_interrupted(host, said),
        "managed files": lambda: _check_managed_files(host),
        "approvals": lambda: _check_approvals(host),
        "stale files": lambda: _check_stale_files(host),
        "trace database": lambda: _check_traces(host),
        "import folder": lambda: _check_import_folder(host),
        "disk": lambda: _check_space("disk", host.root),
        "writable": lambda: _check_writable(host),
    }
    for name, look in rows.items():
        yield _run_check(name, look)


def _name_reserved(host: Host) -> str:
    """The reserved settings that are not as shipped, as a line of the ``config`` row; empty where there are none."""
    from cleared.config.setting_keys import list_reserved_in_use

    keys = list_reserved_in_use(host.config)
    return f"\nnothing reads yet: {', '.join(keys)}" if keys else ""


def _check_lock(host: Host) -> Row:
    from cleared.workspace.lock import read_holder

    found = read_holder(host.layout.state_dir)
    if found is None:
        return Row("writer lock", "ok", "free")
    return Row("writer lock", "warn", f"held by {found}", "Wait until it is done; it lets go even when it is killed.")


def _check_service(host: Host) -> Row:
    from cleared.service.process_lock import find_running_service

    found = find_running_service(host.layout.state_dir)
    return Row("service", "ok", f"up since {found.since} (process {found.pid})" if found else "not up: cleared up")


def _check_repository(host: Host) -> Row:
    from cleared.vcs import Repository

    with Repository.open(host.root, for_writing=True) as repo:
        return Row("repository", "ok", f"{repo.branch.short_name} at {repo.read_head()[:10]}")


def _check_interrupted(host: Host, said: list[str]) -> Row:
    """A commit that was killed half-way: opening the repository for reading completes it, as every command does."""
    from cleared.vcs.commit_intent import intent_file

    name = "interrupted commit"
    intent = intent_file(host.layout.state_dir)
    if not intent.exists():
        return Row(name, "ok", "none")
    with host.open_for_reading():
        pass
    if not intent.exists():
        return Row(name, "ok", "there was one; " + (" ".join(said) or "it is completed"))
    if _check_lock(host).status != "ok":
        return Row(name, "warn", "a commit is under way", "Look again when the other command is done.")
    return Row(name, "fail", "a commit was interrupted and cannot be completed yet: " + (" ".join(said) or intent.name),
               "Put right what the other rows say; the next command then completes it.")  # fmt: skip


def _check_managed_files(host: Host) -> Row:
    from cleared.changes.session import compare_with_commit, refuse_differences

    with compare_with_commit(host, "doctor") as (_, snapshot, different):
        refuse_differences(different)
        count = sum(len(snapshot.list_entries(prefix)) for prefix in host.layout.managed_prefixes())
    return Row("managed files", "ok", f"{count} files as committed; cleared journal check looks inside")


def _check_approvals(host: Host) -> Row:
    """Whether every agent may run, and whose approvals do not count here."""
    from cleared.approvals.keys import cleared_home, own_key
    from cleared.proposals.clone_trust import list_signatories, read_identity
    from cleared.queries import read_agents

    found = read_agents(host)
    barred = [a["name"] for a in found if a["state"] not in ("approved", "starter")]
    strangers = [s for s in list_signatories(host) if not s.trusted]
    key = "your key is" if own_key(host.root) else "no key of yours yet"
    detail = f"{len(found) - len(barred)} of {len(found)} agents may run; {key} in {cleared_home()}"
    if host.policy is not None and host.policy.problem is not None:
        return Row("approvals", "warn", f"{detail}; {host.policy.problem.message}", host.policy.problem.remedy or "")
    here = read_identity(host)
    if here.id and not here.pinned:
        return Row("approvals", "warn", f"{detail}; this clone is not trusted on this machine", "See: cleared trust.")
    if strangers:
        return Row("approvals", "warn", f"{detail}; approvals by {len(strangers)} keys that are not trusted here",
                   "Look at them: cleared trust.")  # fmt: skip
    if barred:
        return Row("approvals", "warn", f"{detail}; not {', '.join(barred[:5])}", "cleared agent propose NAME.")
    return Row("approvals", "ok", detail)


def _check_stale_files(host: Host) -> Row:
    """What a killed process can leave; not judged while a command is at work."""
    if _check_lock(host).status != "ok":
        return Row("stale files", "ok", "not looked for while another command is at work")
    found = []
    for folder, folders, files in os.walk(host.root, followlinks=False):
        here = Path(folder)
        if here == host.root:
            folders[:] = [d for d in folders if d != ".git"]
        found += [here / name for name in files if _TEMPORARY.fullmatch(name)]
    git = host.root / ".git"
    if git.is_dir():
        found += [
            path for path in (git / "index.lock", git / "HEAD.lock", *git.glob("cleared-index-*")) if path.exists()
        ]
    state = host.layout.state_dir
    found += [*state.glob("seal.damaged-*.json"), *state.glob("runs.damaged*"), *state.glob("runs.set-aside-*")]
    if not found:
        return Row("stale files", "ok", "none")
    shown = "\n".join(str(path.relative_to(host.root)) for path in sorted(found)[:10])
    more = f"\nand {len(found) - 10} more" if len(found) > 10 else ""
    return Row("stale files", "warn", f"left by a process that was killed, or set aside:\n{shown}{more}",
               "If no git or cleared command is running, look at them and delete them.")  # fmt: skip


def _check_traces(host: Host) -> Row:
    from cleared.changes.trace import TraceStore

    traces = TraceStore(host.layout.state_dir)
    size = sum(path.stat().st_size for path in host.layout.state_dir.glob("runs.db*"))
    if not traces.path.exists():
        return Row("trace database", "ok", "none yet; the first run makes it")
    damage = traces.find_damage()
    if damage:
        return Row("trace database", "warn", f"damaged ({damage}); no entry, card or decision is in it", _REBUILD)
    if size > _LARGE_TRACE:
        return Row("trace database", "warn", f"{_size_text(size)}", _REBUILD)
    return Row("trace database", "ok", f"{_size_text(size)}, sound")


def _check_import_folder(host: Host) -> Row:
    from cleared.changes.book_sources import CommittedSource
    from cleared.changes.session import open_books
    from cleared.importing.drop_folder import ImportSession
    from cleared.vcs import Snapshot

    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        _, bank = open_books(host, CommittedSource(snapshot))
        drop = ImportSession(
            host.layout, host.config, bank, host.decimal_places, lambda path: snapshot.find_blob_id(path) is not None
        )
        good = drop.scan_folder()
    rows = sum(len(file.new) for file in good)
    detail = f"{len(good)} files wait with {rows} new rows" if good else "no files wait"
    if not drop.refused:
        return Row("import folder", "ok", detail)
    shown = "\n".join(f"{name}: {str(error).splitlines()[0]}" for name, error in list(drop.refused.items())[:10])
    return Row("import folder", "warn", f"{detail}; {len(drop.refused)} cannot be read:\n{shown}",
               "Correct or remove them; they stay where they are until then.")  # fmt: skip


def _check_writable(host: Host) -> Row:
    layout = host.layout
    names = [".", ".git", layout.import_dir, layout.processed_dir, *(p.rstrip("/") for p in layout.managed_prefixes())]
    folders = [host.root / name for name in names if (host.root / name).is_dir()]
    barred = [path for path in folders if not os.access(path, os.W_OK | os.X_OK)]
    if not barred:
        try:
            with tempfile.TemporaryFile(dir=layout.state_dir if layout.state_dir.is_dir() else host.root) as file:
                file.write(b"x")
        except OSError:
            barred = [host.root]
    if barred:
        shown = ", ".join(path.relative_to(host.root).as_posix() for path in barred)
        return Row("writable", "fail", f"not writable: {shown}", "Give yourself the right to write there.")
    return Row("writable", "ok", f"{len(folders)} folders")


# --- beginning anew -----------------------------------------------------------------------------------------


def _rebuild_state(workspace: Path | None) -> list[Row]:
    """Complete what was interrupted, then replace what is only operational."""
    from cleared.changes.consumed_events import INDEX
    from cleared.changes.trace import TraceStore
    from cleared.cli.options import open_host

    host = open_host(workspace)
    with host.open_for_writing("doctor --rebuild"):
        aside = TraceStore(host.layout.state_dir).rebuild()
        (host.layout.state_dir / INDEX).unlink(missing_ok=True)  # read off the history again when it is asked for
    kept = f"; the old one is {aside.relative_to(host.root).as_posix()}" if aside else ""
    return [Row("rebuild", "ok", f"the trace database is new{kept}")]
