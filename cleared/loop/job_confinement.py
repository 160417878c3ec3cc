"""What a job's processes can touch, held by the kernel: Landlock for files, a seccomp filter for the network.

A job reads what its kind names, less what is forbidden, and what a program needs to start; it writes what its kind
names and a folder of its own for temporary files. Keys lie in none of them. Elsewhere than on Linux nothing holds
but what the job's own code asks (``JobContext.read``).
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

import cleared
from cleared.approvals.keys import PUBLIC, RUN_KEY, cleared_home
from cleared.approvals.trust_store import trust_folder as trust_folder
from cleared.approvals.workspace_pin import pins_folder
from cleared.errors import PolicyError, WorkspaceError
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.job_types import JobType
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.jobs.signing import KEY_NAME
from cleared.loop.workspace_jobs import AGENT_RUN
from cleared.sandbox import landlock, seccomp
from cleared.sandbox.confinement import ConfinementUnavailable, Restrictions, landlock_abi, run_restricted
from cleared.workspace.git_directory import find_git_folders

_SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/gnu", "/sys/fs/cgroup")
_PROC_FILES: Final = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys", "uptime", "version")
)
"""Not what is in ``/proc`` of other processes: root may read their environment, anybody their command lines."""
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PACKAGE: Final = Path(cleared.__file__).parent
_PACKAGE_DATA: Final = ("agents", "scripts", "config.yaml")
"""Beside the package in a checkout, inside of it elsewhere."""


def job_restrictions(
    forbidden: ForbiddenFiles, reads: Iterable[Path], writes: Iterable[Path], path: Sequence[str], *, trust: bool,
    asks: bool = False,
) -> Restrictions | None:  # fmt: skip
    """For a job that may read and write these; ``path``: where its Python finds modules, empty where it has none.

    ``trust``: it is our own, and must be able to tell whom this user trusts, and how its worker is held. None where
    the kernel has nothing to hold it with. ``asks``: it runs agents, which attests that and signs their questions with
    the key of this machine's runs, which approves nothing.
    """
    abi = landlock_abi()
    scoped, guarded = abi >= landlock.SCOPES, (os.getpid(), os.getppid())
    filter = seccomp.job_program(platform.machine(), own=trust, scoped=scoped, guarded=guarded) if abi else None
    if not abi or filter is None:
        return None
    rules = [*_system_rules(abi, trust)]
    if path:
        rules += _python_rules(path)
    if trust:
        known = (trust_folder(), pins_folder(), *(cleared_home() / name for name in PUBLIC))
        rules += [landlock.read_rule(p) for p in known if p.exists()]
    if asks and (cleared_home() / RUN_KEY).exists():
        rules.append(landlock.read_rule(cleared_home() / RUN_KEY))
    rules += [rule for top in reads if top.exists() for rule in _read_rules(forbidden, top)]
    rules += [landlock.write_rule(top, abi) for top in writes if top.exists()]
    return Restrictions(abi, (landlock.ruleset_attributes(abi), tuple(rules)), filter, str(cleared_home() / KEY_NAME))


def start_confined(
    wanted: Restrictions | None, confine: Literal["best", "require", "off"], action: Callable[[], object]
) -> None:
    """``action()``, which starts a process, inside the fence.

    Raises ``WorkspaceError`` where it does not hold though ``sandbox.confine`` requires it, or keys could be read.
    """
    if wanted is None or confine == "off":
        if confine == "require":
            raise WorkspaceError(
                "this machine cannot confine jobs, and sandbox.confine is require",
                remedy="Use a Linux kernel with Landlock, or set sandbox.confine: best.",
            )
        action()
        return
    try:
        run_restricted(wanted, action)
    except ConfinementUnavailable as error:
        raise WorkspaceError(
            f"the job cannot be confined: {error}",
            remedy="See that the folder of your key (CLEARED_HOME) lies in none that programs are in.",
        ) from None


@cache
def _system_rules(abi: int, trust: bool) -> tuple[tuple[Path, int], ...]:
    """What any program needs."""
    names = (*_SYSTEM_FOLDERS, "/proc") if trust else (*_SYSTEM_FOLDERS, *_PROC_FILES)
    files = [landlock.read_rule(Path(p)) for p in names if Path(p).exists()]
    return (*files, *(landlock.write_rule(Path(p), abi) for p in _DEVICES if Path(p).exists()))


def _python_rules(path: Sequence[str]) -> list[tuple[Path, int]]:
    """The interpreter, its libraries, this package, and what plug-ins are in."""
    prefixes = [Path(p).resolve() for p in dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix))]
    rules = [landlock.read_rule(p) for p in prefixes if p.exists() and p != Path("/")]
    rules.append(landlock.read_rule(_PACKAGE))
    for text in path:
        place = Path(text)
        if not place.exists() or any(place.resolve().is_relative_to(p) for p in prefixes):
            continue
        if place.resolve() == _PACKAGE.parent.resolve():  # a checkout: not all that is in it
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


def writable_paths(forbidden: ForbiddenFiles, kind: JobType, runtime: RuntimeDirectory) -> list[Path]:
    """Where a job of this kind may write. Raises ``PolicyError`` where a plug-in's would write the loop or history."""
    found = resolve_paths(forbidden, kind.writes)
    if not is_own(kind):
        for kept in (runtime.folder, (forbidden.root / ".git").resolve()):
            if any(kept.is_relative_to(place) or place.is_relative_to(kept) for place in found):
                raise PolicyError(f"a job of this kind would write the loop's own files or the history ({kept})")
    return found


def runs_agents(kind: JobType) -> bool:
    """Whether it is the one of our own that runs agents; no other signs anything."""
    return is_own(kind) and kind.function == AGENT_RUN


def is_own(kind: JobType) -> bool:
    """Whether what it runs is of this package."""
    return kind.function.startswith("cleared.")


def resolve_paths(forbidden: ForbiddenFiles, paths: Iterable[str]) -> list[Path]:
    """The real paths that a kind names, below the workspace. Raises ``PolicyError`` for one that is forbidden."""
    found = []
    for text in paths:
        found += [forbidden.root, *_history_folders(forbidden.root)] if text == "." else [forbidden.resolve_path(text)]
    return found


def _history_folders(root: Path) -> list[Path]:
    """Where git keeps a linked working tree's history, which is not in it (gitrepository-layout: ``commondir``)."""
    folders = find_git_folders(root)
    return list(folders) if folders is not None and (root / ".git").is_file() else []
