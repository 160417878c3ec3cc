"""What an engine may touch: its clone, a temporary folder, its own credential; it has the network.

It cannot write the workspace, read keys or ``.env`` files of it, nor signal processes outside (Landlock). Programs and
libraries of the system may be read and run. Elsewhere than on Linux, or without Landlock, nothing holds it; the start
says so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cleared.approvals.keys import cleared_home
from cleared.cycles.cycle_settings import CycleSettings
from cleared.cycles.engines.engine import Engine
from cleared.errors import Place, PolicyError, WorkspaceError
from cleared.loop.job_processes import FOLDER_VARIABLE
from cleared.sandbox import landlock
from cleared.sandbox.confinement import Restrictions, landlock_abi
from cleared.workspace.programs import search_path

_SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/gnu", "/proc", "/sys")
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_NETWORK_FILES: Final = ("/run/systemd/resolve", "/run/resolvconf")
_VARIABLES: Final = ("HOME", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "SHELL", "TERM", "SSL_CERT_FILE",
                     "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
                     "XDG_CACHE_HOME", "XDG_STATE_HOME")  # fmt: skip
"""Environment variables that every engine gets, where they are set; beside them those that it names itself."""


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
            "the engine's program lies in the workspace; nothing was started", place=Place(str(binary)),
            remedy=f"Install it elsewhere and name it with {engine.binary_variable}.",
        )  # fmt: skip
    return binary


def engine_environment(engine: Engine, environment: Mapping[str, str], root: Path, scratch: Path) -> dict[str, str]:
    """The environment of an engine: nothing but what it needs. ``scratch``: its temporary folder."""
    names = {*_VARIABLES, *engine.variables}
    chosen = {name: value for name, value in environment.items() if name in names}
    return {
        **chosen, "PATH": search_path(environment.get("PATH"), outside=root), "TMPDIR": str(scratch), "CI": "true",
        "GIT_TERMINAL_PROMPT": "0", FOLDER_VARIABLE: str(scratch),
    }  # fmt: skip


def engine_restrictions(
    settings: CycleSettings, binary: Path, clone: Path, scratch: Path, home: Path
) -> Restrictions | None:
    """The restrictions of an engine that works in ``clone``; None where the kernel cannot confine."""
    abi = landlock_abi()
    if not abi:
        return None
    own = [Path(binary).parent, _installation_of(binary.resolve())]
    readable = [*(Path(p) for p in (*_SYSTEM_FOLDERS, *_NETWORK_FILES)), *own,
                *(Path(p).expanduser() for p in settings.program_folders)]  # fmt: skip
    writable = [clone, scratch, *(Path(p) for p in _DEVICES), *(home / p for p in settings.engine.credential_paths)]
    keys = cleared_home()
    rules = [landlock.read_rule(p) for p in readable if p.exists() and not keys.is_relative_to(p)]
    rules += [landlock.write_rule(p, abi) for p in writable if p.exists() and not keys.is_relative_to(p)]
    probe = next((p for p in (keys / "approval-key", keys / "run-key") if p.exists()), None)
    outside = str(probe) if probe is not None else "/root/.profile" if os.geteuid() else "/var/log/lastlog"
    return Restrictions(abi, (landlock.ruleset_attributes(abi, network=True), tuple(rules)), None, outside)


def _installation_of(binary: Path) -> Path:
    """The folder that a program was installed into: of one below ``node_modules`` the outermost of these."""
    for parent in reversed(binary.parents):
        if parent.name == "node_modules":
            return parent
    return binary.parent
