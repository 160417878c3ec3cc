"""The fence of a confined program: which walls hold it, made from what it may touch."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from cleared.processes import landlock, seccomp
from cleared.processes.confinement import ConfinementUnavailable, Restrictions, landlock_abi
from cleared.processes.namespaces import SHARED_MEMORY, OfferedNamespaces, offered_namespaces
from cleared.processes.system_files import own_device_rules, rule_around, system_rules

_TCP: Final[dict[seccomp.Network, Literal["none", "connect", "all"]]] = {
    "none": "none",
    "machine": "connect",
    "own": "all",
}
"""What of it each network allows: in the machine's nothing listens."""
_system_rules = cache(system_rules)


class Fence(Struct, frozen=True):
    """What holds a program, and all that it starts.

    ``writable``: all else is mounted read-only, with ``mounts``; real paths. ``memory``: whether it gets shared memory
    of its own then, ``own_processes``: a process namespace. ``make_filter``: without one, the filter for the processes
    that are to get no signal (``guarded``), and for what is asked about. ``is_own``: it is for a job of this package.
    ``has_network``: that of whoever starts it; else, with ``mounts``, it sees one with nothing in it.
    """

    restrictions: Restrictions
    writable: tuple[Path, ...]
    mounts: bool
    memory: bool
    own_processes: bool
    make_filter: Callable[..., bytes | None]
    is_own: bool = False
    has_network: bool = False


def make_fence(
    closed: Sequence[Path],
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

    ``rules``: Landlock's, beside those for what any program needs. ``closed``: real paths of the workspace, the keys
    and the home folder. What opens a folder around them leaves them out, be it the system's or a rule of ``rules``:
    only a rule for them, or for something in them, opens them. ``outside``: an existing file on which it is tested
    that the fence is in force. ``network``: of the machine, or of a namespace of its own. ``own``: a job of this
    package; it looks at the processes above it, which see that it is a job, so it gets no process namespace.
    ``namespaces``: of what the kernel offers, those to be used.
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
        binds=abi >= landlock.PORTS,
    )
    program = make_filter(attributes="own" if offered.mounts else "none")
    if not abi or program is None:
        return None
    rules, writable = list(rules), tuple(place.resolve() for place in writes if place.exists())
    used = (*(place for place, _ in rules), *writable, outside)  # none of which may be hidden by other memory
    memory = offered.mounts and SHARED_MEMORY.is_dir() and not any(p.is_relative_to(SHARED_MEMORY) for p in used)
    closed = tuple(closed)
    granted = (
        *_system_rules(abi, closed, processes=own or spaces or network == "machine"),
        *(own_device_rules(abi, memory=memory) if offered.mounts else ()),
        *(part for rule in rules for part in rule_around(rule, closed)),
        *(landlock.write_rule(place, abi) for place in writable),
    )
    attributes = landlock.ruleset_attributes(abi, tcp=_TCP[network])
    restrictions = Restrictions(abi, (attributes, granted), program, str(outside))
    return Fence(restrictions, writable, offered.mounts, memory, spaces, make_filter, own, network != "none")


class Wall(Struct, frozen=True):
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


def require_walls(fence: Fence | None, confine: Literal["best", "require", "off"]) -> Fence | None:
    """The fence as ``sandbox.confine`` has it: with ``off`` none. Raises ``ConfinementUnavailable`` where a wall is
    missing though all are required."""
    missing = find_missing_walls() if confine == "require" else []
    if missing:
        raise ConfinementUnavailable(
            f"this machine cannot confine programs ({'; '.join(missing)}), and sandbox.confine is require",
            remedy="See cleared doctor: what the machine lacks, and what gives it; or set sandbox.confine: best.",
        )
    return fence if confine != "off" else None
