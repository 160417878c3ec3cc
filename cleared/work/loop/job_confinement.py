"""Confines a job's processes: Landlock for files, a seccomp filter for the network and other processes.

A job can read what its type names, less what is forbidden, and what a program needs to start. It can write what its
type names, and its scratch folder. It can never reach a key. Elsewhere than on Linux there is only ``JobContext.read``,
which a job may bypass.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Literal

import cleared
from cleared.base.errors import PolicyError, UsageError, WorkspaceError
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.job_types import PROTECTED, JobType
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.jobs.signing import KEY_NAME
from cleared.sandbox import landlock, seccomp
from cleared.sandbox.confinement import ConfinementUnavailable, Restrictions, landlock_abi
from cleared.sandbox.namespaces import SHARED_MEMORY, OfferedNamespaces, offered_namespaces
from cleared.trust.checkpoint import checkpoint_folder
from cleared.trust.clone_marks import pins_folder
from cleared.trust.keys import PUBLIC, RUN_KEY, cleared_home
from cleared.work.loop.fenced_start import Fence, start_fenced
from cleared.work.loop.system_files import holds_system, own_device_rules, rule_around, system_rules
from cleared.work.loop.workspace_jobs import AGENT_RUN, TASK_TURN
from cleared.workspace.git_directory import find_git_folders
from cleared.workspace.user_folder import trust_folder, user_home

_PACKAGE: Final = Path(cleared.__file__).parent
_PACKAGE_DATA: Final = ("agents", "scripts", "config.yaml")
"""The package's data: beside it in a checkout, inside of it when installed."""
_TCP: Final[dict[seccomp.Network, Literal["none", "connect", "all"]]] = {
    "none": "none",
    "machine": "connect",
    "own": "all",
}
"""What of it each network allows: in the machine's nothing listens."""


def job_fence(
    forbidden: ForbiddenFiles,
    reads: Iterable[Path],
    writes: Iterable[Path],
    path: Sequence[str],
    *,
    trust: bool,
    asks: bool = False,
    root: Path | None = None,
) -> Fence | None:
    """The fence of a job that may read ``reads`` and write ``writes``; None where the kernel cannot confine.

    ``path``: where its Python finds modules, empty where it runs none. ``trust``: a job of this package, which must
    read whom this user trusts, what this machine saw last of the books, and how its worker is confined. ``asks``: it
    runs agents: it signs with the key of this machine's runs, which approves nothing, and keeps what was seen.
    ``root``: the workspace, where that is not what ``forbidden`` begins at.
    """
    rules, writes = _python_rules(path) if path else [], list(writes)
    seen = checkpoint_folder(forbidden.root) if trust else None
    if trust:
        trusted = (trust_folder(), pins_folder(), *(cleared_home() / name for name in PUBLIC), seen)
        rules += [landlock.read_rule(p) for p in trusted if p is not None and p.exists()]
    if asks and (cleared_home() / RUN_KEY).exists():
        rules.append(landlock.read_rule(cleared_home() / RUN_KEY))
    if asks and seen is not None:
        seen.mkdir(parents=True, exist_ok=True)
        writes.append(seen)
    rules += [rule for top in reads if top.exists() for rule in _read_rules(forbidden, top)]
    return make_fence(
        forbidden.root if root is None else root, rules, writes, outside=cleared_home() / KEY_NAME, own=trust
    )


def make_fence(
    root: Path,
    rules: Iterable[tuple[Path, int]],
    writes: Iterable[Path],
    *,
    outside: Path,
    network: seccomp.Network = "none",
    own: bool = False,
    namespaces: OfferedNamespaces | None = None,
) -> Fence | None:
    """The one fence of jobs, verification commands, commands of a session and engines; None where the kernel has no
    Landlock or the filter is not written for this machine.

    ``root``: the workspace. ``rules``: Landlock's, beside those for what any program needs. What opens a folder around
    the workspace, the keys or the home folder leaves these out, be it the system's or a rule of ``rules``: only a rule
    for them, or for something in them, opens it. ``outside``: an existing file on which it is tested that the fence is
    in force. ``network``: of the machine, or of a namespace of its own. ``own``: a job of this package; it looks at the
    processes above it, which see that it is a job, so it gets no process namespace. ``namespaces``: of what the kernel
    offers, those to be used.
    """
    abi, offered = landlock_abi(), offered_namespaces() if namespaces is None else namespaces
    spaces = offered.processes and not own
    make_filter = partial(
        seccomp.confined_program,
        platform.machine(),
        own=own,
        scoped=spaces or abi >= landlock.SCOPES,
        network=network,
        truncates=abi < landlock.TRUNCATES and not offered.mounts,
    )
    program = make_filter(attributes="own" if offered.mounts else "none")
    if not abi or program is None:
        return None
    rules, writable = list(rules), tuple(place.resolve() for place in writes if place.exists())
    used = (*(place for place, _ in rules), *writable, outside)  # none of which may be hidden by other memory
    memory = offered.mounts and SHARED_MEMORY.is_dir() and not any(p.is_relative_to(SHARED_MEMORY) for p in used)
    closed = list_closed(root)
    granted = (
        *_system_rules(abi, closed, processes=own or spaces or network == "machine"),
        *(own_device_rules(abi, memory=memory) if offered.mounts else ()),
        *(part for rule in rules for part in rule_around(rule, closed)),
        *(landlock.write_rule(place, abi) for place in writable),
    )
    attributes = landlock.ruleset_attributes(abi, tcp=_TCP[network])
    restrictions = Restrictions(abi, (attributes, granted), program, str(outside))
    connected = network == "machine"
    return Fence(restrictions, writable, offered.mounts, memory, spaces, make_filter, own, connected)


@dataclass(frozen=True, slots=True)
class Wall:
    """A mechanism of the kernel that holds programs. ``gives``: in words, what it does here, or what is missing."""

    name: str
    is_there: bool
    gives: str


def list_walls() -> list[Wall]:
    """What this machine has to hold jobs, verification commands, commands of a session and engines, one by one."""
    abi, offered = landlock_abi(), offered_namespaces()
    machine = platform.machine()
    has_filter = seccomp.confined_program(machine) is not None
    scopes = ", and signals" if abi >= landlock.SCOPES else ""
    files = f"Landlock ABI {abi}: files{scopes} outside are out of reach" if abi else "this kernel has no Landlock"
    calls = "seccomp: what reaches other processes, the machine or the keyring is refused"
    mounts = "what lies outside is mounted read-only; its modes, owners and times stay as they are"
    no_mounts = f"{offered.problem}; so a process in between changes modes and times, and nobody owners"
    processes = "a namespace for each program, which the kernel ends with it and with its loop"
    no_processes = (
        f"{offered.problem or 'none'}; a process in between ends what is left, unless both are killed at once"
    )
    return [
        Wall("fence: files", abi > 0, files),
        Wall("fence: calls", has_filter, calls if has_filter else f"no filter is written for {machine}"),
        Wall("fence: attributes", offered.mounts, mounts if offered.mounts else no_mounts),
        Wall("fence: processes", offered.processes, processes if offered.processes else no_processes),
    ]


def find_missing_walls() -> list[str]:
    """What this machine lacks to confine programs as they should be, in words."""
    return [f"{wall.name.removeprefix('fence: ')}: {wall.gives}" for wall in list_walls() if not wall.is_there]


def start_confined(
    fence: Fence | None, confine: Literal["best", "require", "off"], argv: Sequence[str], **options: Any
) -> subprocess.Popen[bytes]:
    """Start a process in this fence, as ``start_fenced`` does.

    Raises ``WorkspaceError`` where a wall is missing though ``sandbox.confine`` requires all, or where a key could be
    read all the same; ``OSError`` where the program cannot be started.
    """
    missing = find_missing_walls() if confine == "require" else []
    if missing:
        raise WorkspaceError(
            f"this machine cannot confine programs ({'; '.join(missing)}), and sandbox.confine is require",
            remedy="See cleared doctor: what the machine lacks, and what gives it; or set sandbox.confine: best.",
        )
    try:
        return start_fenced(fence if confine != "off" else None, argv, **options)
    except ConfinementUnavailable as error:
        raise WorkspaceError(
            f"the program cannot be confined: {error}",
            remedy="See that the folder of your key (CLEARED_HOME) lies in none that programs are in.",
        ) from None


def list_closed(root: Path) -> tuple[Path, ...]:
    """The workspace, the keys, the home folder, and the history of a linked working tree: real paths."""
    folders = [root.resolve(), cleared_home().resolve(), *_history_folders(root)]
    with suppress(UsageError):  # a user without one
        home = user_home().resolve()
        folders += [home] if not holds_system(home) else []  # as "/" does, the home of some services
    return tuple(dict.fromkeys(folders))


_system_rules = cache(system_rules)


def _python_rules(path: Sequence[str]) -> list[tuple[Path, int]]:
    """Rules for the interpreter, its libraries, this package, and the packages of plug-ins."""
    prefixes = [Path(p).resolve() for p in dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix))]
    rules = [landlock.read_rule(p) for p in prefixes if p.exists() and p != Path("/")]
    rules.append(landlock.read_rule(_PACKAGE))
    for text in path:
        place = Path(text)
        if not place.exists() or any(place.resolve().is_relative_to(p) for p in prefixes):
            continue
        if place.resolve() == _PACKAGE.parent.resolve():  # a checkout holds more than the package
            rules.append(landlock.list_rule(place))
            rules += [landlock.read_rule(place / name) for name in _PACKAGE_DATA if (place / name).exists()]
        else:
            rules += _read_rules(ForbiddenFiles(place), place)
    return rules


def _read_rules(forbidden: ForbiddenFiles, top: Path) -> list[tuple[Path, int]]:
    return [
        landlock.read_rule(path) if whole else landlock.list_rule(path)
        for path, whole in forbidden.grantable_paths(top)
    ]


def writable_paths(forbidden: ForbiddenFiles, job_type: JobType, runtime: RuntimeDirectory) -> list[Path]:
    """Where a job of this type may write.

    Raises ``PolicyError`` where a plug-in's job would write the loop's files or, by a link, what none may.
    """
    paths = resolve_paths(forbidden, job_type.writes)
    if not is_own(job_type):
        for protected in (runtime.folder, *((forbidden.root / name).resolve() for name in PROTECTED)):
            if any(protected.is_relative_to(path) or path.is_relative_to(protected) for path in paths):
                raise PolicyError(
                    f"a job of this type would write the loop's own files or what no plug-in's may ({protected})"
                )
    return paths


def runs_agents(job_type: JobType) -> bool:
    """Whether it is a job type of this package that runs agents or records tasks; no other job signs anything."""
    return is_own(job_type) and job_type.function in (AGENT_RUN, TASK_TURN)


def is_own(job_type: JobType) -> bool:
    """Whether its function is of this package."""
    return job_type.function.startswith("cleared.")


def resolve_paths(forbidden: ForbiddenFiles, paths: Iterable[str]) -> list[Path]:
    """The real paths of texts below the workspace. Raises ``PolicyError`` for one that is forbidden."""
    resolved = []
    for text in paths:
        resolved += (
            [forbidden.root, *_history_folders(forbidden.root)] if text == "." else [forbidden.resolve_path(text)]
        )
    return resolved


def _history_folders(root: Path) -> list[Path]:
    """The git folders of a linked working tree, which lie outside of it (gitrepository-layout: ``commondir``)."""
    folders = find_git_folders(root)
    return list(folders) if folders is not None and (root / ".git").is_file() else []
