"""What an engine may touch: its clone, a temporary folder, its own credential; it has the network.

It can neither read nor write the workspace and the keys (Landlock), nor signal processes outside where the kernel is
new enough, nor ask the system's services for anything (seccomp: no Unix sockets). Programs and libraries of the system
may be read and run. Elsewhere than on Linux, or without Landlock, nothing holds it; the start says so.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from cleared.base.errors import Place, PolicyError, WorkspaceError
from cleared.base.programs import search_path
from cleared.base.safe_files import write_atomic
from cleared.processes import landlock
from cleared.processes.confinement import landlock_abi
from cleared.processes.fences import Fence, find_missing_walls, make_fence, require_walls
from cleared.processes.leftovers import FOLDER_VARIABLE
from cleared.work.cycles.cycle_settings import CycleSettings
from cleared.work.loop.job_confinement import list_closed, python_rules
from cleared.workspace.location import user_home
from cleared.workspace.settings.secrets import MIN_LENGTH, is_secret
from cleared.workspace.settings.value_checks import check_variables

_NETWORK_FILES: Final = ("/run/systemd/resolve", "/run/resolvconf")
_VARIABLES: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    *(name for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY") for name in (proxy, proxy.lower())),
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
)
"""Environment variables that every engine gets, where they are set; beside them those that it names itself."""


_GIT_VARIABLES: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "engine",
    "GIT_AUTHOR_EMAIL": "engine@localhost",
    "GIT_COMMITTER_NAME": "engine",
    "GIT_COMMITTER_EMAIL": "engine@localhost",
}
"""The user's own settings of git cannot be read in there, and git fails where it may not read them."""


def find_binary(settings: CycleSettings, root: Path, environment: Mapping[str, str]) -> Path:
    """The engine's program. Raises ``WorkspaceError`` where it is not installed, ``PolicyError`` for one that lies in
    the workspace: whoever can push could have put it there."""
    wanted = settings.binary
    path = search_path(environment.get("PATH"), outside=root)
    located = shutil.which(str(Path(wanted).expanduser()) if "/" in wanted else wanted, path=path)
    engine = settings.engine
    if located is None:
        raise WorkspaceError(
            f"{engine.title} is not installed: there is no program {wanted!r}; nothing was started",
            remedy=f"Install it ({engine.install_hint}), or name it with {engine.binary_variable}.",
        )
    binary = Path(located).absolute()
    if binary.is_relative_to(root) or binary.resolve().is_relative_to(root.resolve()):
        raise PolicyError(
            "the engine's program lies in the workspace; nothing was started",
            place=Place(str(binary)),
            remedy=f"Install it elsewhere and name it with {engine.binary_variable}.",
        )
    return binary


def describe_freedom(settings: CycleSettings, binary: Path) -> list[str]:
    """What a start has to say of what the engine may do."""
    lines = [f"{settings.engine.title}: {binary}; what it may do: its clone, its credential, the network."]
    if settings.engine.name == "codex":
        lines.append(f"Codex's own sandbox is {settings.launch.sandbox_mode}: it runs any command in its clone.")
    else:
        lines.append("It runs any command in its clone without asking.")
    if settings.cost_cap and not settings.engine.names_cost:
        lines.append(
            f"{settings.engine.title} does not say what it costs: loop.ai.cost_cap counts nothing of it. Set "
            "loop.ai.max_tokens or loop.ai.max_minutes."
        )
    if not landlock_abi():
        lines.append("This machine has no Landlock: NOTHING keeps the engine from your other files.")
    elif missing := find_missing_walls():
        lines.append(f"Less than all holds it here: {'; '.join(missing)}.")
    return lines


def engine_environment(
    settings: CycleSettings, environment: Mapping[str, str], root: Path, scratch: Path, *, is_fenced: bool
) -> dict[str, str]:
    """The environment of an engine: nothing but what it needs, and what the settings name. ``scratch``: its temporary
    folder; ``is_fenced``: whether the kernel confines it."""
    engine, named = settings.engine, settings.environment
    names = {*_VARIABLES, *engine.variables, *named}
    beginnings = tuple(name.removesuffix("*") for name in named if name.endswith("*"))
    chosen = {
        name: value
        for name, value in environment.items()
        if name in names or (name.startswith(beginnings) and not check_variables([name]))
    }
    return {
        **chosen,
        **(engine.fenced_variables if is_fenced else {}),
        "PATH": os.pathsep.join([search_path(environment.get("PATH"), outside=root), str(Path(sys.executable).parent)]),
        "CLEARED_HOME": str(scratch / "cleared"),  # keys of its own, which count nowhere
        "TMPDIR": str(scratch),
        "CI": "true",
        FOLDER_VARIABLE: str(scratch),
        **_GIT_VARIABLES,
    }


def list_engine_secrets(environment: Mapping[str, str]) -> list[str]:
    """Values in an engine's environment that its output must not hold."""
    return [value for name, value in environment.items() if is_secret(name) and len(value) >= MIN_LENGTH]


def engine_fence(
    settings: CycleSettings,
    binary: Path,
    root: Path,
    clone: Path,
    scratch: Path,
    environment: Mapping[str, str],
    confine: Literal["best", "require", "off"] = "best",
) -> Fence | None:
    """The fence of an engine that works in ``clone``, of the workspace at ``root``; None where the kernel cannot
    confine. It is that of a job, with the network. ``environment``: names the folders of the engine's credential, where
    it keeps that elsewhere. ``confine``: ``sandbox.confine``; an engine is confined with ``off``, too.

    Raises ``ConfinementUnavailable`` where a wall is missing though all are required, ``PolicyError`` where a link that
    the engine may have set is in the place of its program.
    """
    require_walls(None, confine)
    home, closed = user_home(), list_closed(root)
    never = [folder for folder in closed if folder != home.resolve()]
    credentials = _list_writable(settings.engine.list_credentials(environment, home), closed, never)
    if not binary.exists() or _is_led_away(binary, credentials):
        raise PolicyError(
            "the engine's program is gone, or a link that the engine may have set; where that leads is not opened",
            place=Place(str(binary)),
            remedy=f"Name the program itself with {settings.engine.binary_variable}, or install it elsewhere.",
        )
    named = [
        *map(Path, _NETWORK_FILES),
        binary,
        binary.parent,
        _installation_of(binary.resolve()),
        *(Path(p).expanduser() for p in settings.program_folders),
    ]
    opened = [
        place
        for place in named
        if place.exists()
        and not (_lies_in(place, never) or place.resolve() in closed or _is_led_away(place, credentials))
    ]
    probe = scratch.parent / "outside"
    write_atomic(probe, b"An engine that can read this is not confined.\n", fsync=False)
    own = [rule for rule in python_rules(sys.path) if not _is_led_away(rule[0], credentials)]
    return make_fence(
        closed,
        [*(landlock.read_rule(place) for place in opened), *own],
        [clone, scratch, *credentials],
        outside=probe,
        network="machine",
    )


def _list_writable(credentials: Sequence[Path], closed: Sequence[Path], never: Sequence[Path]) -> list[Path]:
    """Those that exist, and below which writing reaches neither the workspace, nor the keys, nor the whole home."""
    there = {path: path.resolve() for path in credentials if path.exists()}
    return [
        path
        for path, real in there.items()
        if not any(folder.is_relative_to(real) for folder in closed)
        and not _lies_in(path, never)
        and not _is_led_away(path, [other for other in there.values() if other != real])
    ]


def _is_led_away(path: Path, written: Sequence[Path]) -> bool:
    """Whether the way to a path goes through a link in one of the places that the engine writes, and out of them: it
    may have set that link, to have the next fence opened where it leads."""
    return not _lies_in(path, written) and any(_lies_in(link.parent, written) for link in _list_links(path))


def _list_links(path: Path) -> Iterator[Path]:
    """The links on the way to an absolute path that exists."""
    here, ahead = Path("/"), list(reversed(path.parts))
    while ahead:
        name = ahead.pop()
        step = here.parent if name == ".." else here / name
        if step.is_symlink():
            yield step
            ahead += reversed(step.readlink().parts)
        else:
            here = step


def _lies_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)


def _installation_of(binary: Path) -> Path:
    """The folder that a program was installed into: of one below ``node_modules`` the outermost of these."""
    for parent in reversed(binary.parents):
        if parent.name == "node_modules":
            return parent
    return binary.parent
