"""Confines a job's processes: Landlock for files, a seccomp filter for the network and other processes.

A job can read what its type names, less what is forbidden, and what a program needs to start. It can write what its
type names, and its scratch folder. It can never reach a key. Elsewhere than on Linux there is only ``JobContext.read``,
which a job may bypass.
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
from cleared.loop.workspace_jobs import AGENT_RUN, TASK_TURN
from cleared.sandbox import landlock, seccomp
from cleared.sandbox.confinement import ConfinementUnavailable, Restrictions, landlock_abi, run_restricted
from cleared.workspace.git_directory import find_git_folders

_SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/gnu", "/sys/fs/cgroup")
_PROC_FILES: Final = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys", "uptime", "version")
)
"""Not the whole of ``/proc``: it shows the command lines of other processes, and to root their environment."""
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PACKAGE: Final = Path(cleared.__file__).parent
_PACKAGE_DATA: Final = ("agents", "scripts", "config.yaml")
"""The package's data: beside it in a checkout, inside of it when installed."""


def job_restrictions(
    forbidden: ForbiddenFiles, reads: Iterable[Path], writes: Iterable[Path], path: Sequence[str], *, trust: bool,
    asks: bool = False, network: bool = False, attributes: bool = True,
) -> Restrictions | None:  # fmt: skip
    """The restrictions of a job that may read ``reads`` and write ``writes``; None where the kernel cannot confine.

    ``path``: where its Python finds modules, empty where it runs none. ``trust``: a job of this package, which must
    read whom this user trusts and how its worker is confined. ``asks``: it runs agents, for which it signs with the key
    of this machine's runs; that key approves nothing. ``network``: it is in a network namespace of its own, and may use
    what is in there. ``attributes``: it may change modes and owners of files, wherever they lie.
    """
    abi = landlock_abi()
    scoped, guarded = abi >= landlock.SCOPES, (os.getpid(), os.getppid())
    filter = seccomp.job_program(
        platform.machine(), own=trust, scoped=scoped, guarded=guarded, network=network, attributes=attributes
    )  # fmt: skip
    if not abi or filter is None:
        return None
    rules = [*_system_rules(abi, trust)]
    if path:
        rules += _python_rules(path)
    if trust:
        trusted = (trust_folder(), pins_folder(), *(cleared_home() / name for name in PUBLIC))
        rules += [landlock.read_rule(p) for p in trusted if p.exists()]
    if asks and (cleared_home() / RUN_KEY).exists():
        rules.append(landlock.read_rule(cleared_home() / RUN_KEY))
    rules += [rule for top in reads if top.exists() for rule in _read_rules(forbidden, top)]
    rules += [landlock.write_rule(top, abi) for top in writes if top.exists()]
    return Restrictions(
        abi, (landlock.ruleset_attributes(abi, network=network), tuple(rules)), filter, str(cleared_home() / KEY_NAME)
    )


def start_confined(
    restrictions: Restrictions | None, confine: Literal["best", "require", "off"], action: Callable[[], object]
) -> None:
    """Call ``action``, which starts a process, under these restrictions.

    Raises ``WorkspaceError`` where they are not in force though ``sandbox.confine`` requires them, or where a key could
    be read all the same.
    """
    if restrictions is None or confine == "off":
        if confine == "require":
            raise WorkspaceError(
                "this machine cannot confine jobs, and sandbox.confine is require",
                remedy="Use a Linux kernel with Landlock, or set sandbox.confine: best.",
            )
        action()
        return
    try:
        run_restricted(restrictions, action)
    except ConfinementUnavailable as error:
        raise WorkspaceError(
            f"the job cannot be confined: {error}",
            remedy="See that the folder of your key (CLEARED_HOME) lies in none that programs are in.",
        ) from None


@cache
def _system_rules(abi: int, trust: bool) -> tuple[tuple[Path, int], ...]:
    """Rules for what any program needs."""
    names = (*_SYSTEM_FOLDERS, "/proc") if trust else (*_SYSTEM_FOLDERS, *_PROC_FILES)
    files = [landlock.read_rule(Path(p)) for p in names if Path(p).exists()]
    return (*files, *(landlock.write_rule(Path(p), abi) for p in _DEVICES if Path(p).exists()))


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

    Raises ``PolicyError`` where a plug-in's job would write the loop's files or the history.
    """
    paths = resolve_paths(forbidden, job_type.writes)
    if not is_own(job_type):
        for protected in (runtime.folder, (forbidden.root / ".git").resolve()):
            if any(protected.is_relative_to(path) or path.is_relative_to(protected) for path in paths):
                raise PolicyError(f"a job of this type would write the loop's own files or the history ({protected})")
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
