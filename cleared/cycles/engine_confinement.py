"""What an engine may touch: its clone, a temporary folder, its own credential; it has the network.

It can neither read nor write the workspace and the keys (Landlock), nor signal processes outside where the kernel is
new enough, nor ask the system's services for anything (seccomp: no Unix sockets). Programs and libraries of the system
may be read and run. Elsewhere than on Linux, or without Landlock, nothing holds it; the start says so.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from cleared.approvals.keys import cleared_home
from cleared.cycles.cycle_settings import CycleSettings
from cleared.cycles.engines.engine import Engine
from cleared.errors import Place, PolicyError, WorkspaceError
from cleared.loop.job_processes import FOLDER_VARIABLE
from cleared.safe_files import write_atomic
from cleared.sandbox import landlock, seccomp
from cleared.sandbox.confinement import Restrictions, landlock_abi
from cleared.workspace.programs import search_path

_SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/gnu", "/proc", "/sys")
_SYSTEM_SETTINGS: Final = (
    "alternatives", "bash.bashrc", "ca-certificates", "claude-code", "codex", "crypto-policies", "default/locale",
    "environment", "fonts", "gai.conf", "gitconfig", "group", "host.conf", "hostname", "hosts", "inputrc",
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "mime.types",
    "nsswitch.conf", "opencode", "os-release", "passwd", "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs",
    "pki/tls/openssl.cnf", "profile", "profile.d", "protocols", "resolv.conf", "services", "shells",
    "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "xdg",
)  # fmt: skip
"""Below /etc. Not all of it: where the loop is root's, password hashes and host keys could be read."""
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_NETWORK_FILES: Final = ("/run/systemd/resolve", "/run/resolvconf")
_VARIABLES: Final = ("HOME", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "SHELL", "TERM", "SSL_CERT_FILE",
                     "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
                     "XDG_CACHE_HOME", "XDG_STATE_HOME")  # fmt: skip
"""Environment variables that every engine gets, where they are set; beside them those that it names itself."""


_GIT_VARIABLES: Final = {
    "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "engine", "GIT_AUTHOR_EMAIL": "engine@localhost",
    "GIT_COMMITTER_NAME": "engine", "GIT_COMMITTER_EMAIL": "engine@localhost",
}  # fmt: skip
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
            "the engine's program lies in the workspace; nothing was started", place=Place(str(binary)),
            remedy=f"Install it elsewhere and name it with {engine.binary_variable}.",
        )  # fmt: skip
    return binary


def describe_freedom(settings: CycleSettings, binary: Path) -> list[str]:
    """What a start has to say of what the engine may do."""
    lines = [f"{settings.engine.title}: {binary}; what it may do: its clone, its credential, the network."]
    if settings.engine.name == "codex":
        lines.append(f"Codex's own sandbox is {settings.launch.sandbox_mode}: it runs any command in its clone.")
    else:
        lines.append("It runs any command in its clone without asking.")
    if not landlock_abi():
        lines.append("This machine has no Landlock: NOTHING keeps the engine from your other files.")
    return lines


def engine_environment(engine: Engine, environment: Mapping[str, str], root: Path, scratch: Path) -> dict[str, str]:
    """The environment of an engine: nothing but what it needs. ``scratch``: its temporary folder."""
    names = {*_VARIABLES, *engine.variables}
    chosen = {name: value for name, value in environment.items() if name in names}
    return {
        **chosen, "PATH": search_path(environment.get("PATH"), outside=root), "TMPDIR": str(scratch), "CI": "true",
        FOLDER_VARIABLE: str(scratch), **_GIT_VARIABLES,
    }  # fmt: skip


def engine_restrictions(
    settings: CycleSettings, binary: Path, root: Path, clone: Path, scratch: Path, environment: Mapping[str, str]
) -> Restrictions | None:
    """The restrictions of an engine that works in ``clone``, of the workspace at ``root``; None where the kernel cannot
    confine. ``environment``: names the folders of the engine's credential, where it keeps that elsewhere."""
    home = Path.home()
    abi = landlock_abi()
    if not abi:
        return None
    closed = [path.resolve() for path in (root, cleared_home(), home)]
    own = [binary, binary.parent, _installation_of(binary.resolve())]
    readable = [*(Path(p) for p in (*_SYSTEM_FOLDERS, *_NETWORK_FILES)), *(Path("/etc", p) for p in _SYSTEM_SETTINGS),
                *own, *(Path(p).expanduser() for p in settings.program_folders)]  # fmt: skip
    credentials = [p for p in settings.engine.list_credentials(environment, home) if _is_apart(p, closed)]
    rules = [landlock.read_rule(p) for path in readable for p in _open_around(path, closed)]
    rules += [landlock.write_rule(p, abi) for p in (clone, scratch, *map(Path, _DEVICES), *credentials) if p.exists()]
    program = seccomp.engine_program(platform.machine())
    probe = scratch.parent / "outside"
    write_atomic(probe, b"An engine that can read this is not confined.\n", fsync=False)
    return Restrictions(abi, (landlock.ruleset_attributes(abi, network=True), tuple(rules)), program, str(probe))


def _open_around(path: Path, closed: Sequence[Path]) -> Iterator[Path]:
    """The path; where a closed folder lies in it, what else lies in it; nothing where it lies in the workspace or among
    the keys. Of the home folder a part may be opened that is named, but never the whole."""
    path = path.resolve()
    if not path.exists() or any(path.is_relative_to(folder) for folder in closed[:2]):
        return
    if not any(folder.is_relative_to(path) for folder in closed):
        yield path
        return
    if path in closed:
        return
    try:
        entries = [entry for entry in path.iterdir() if not entry.is_symlink()]
    except OSError:
        return
    for entry in entries:
        yield from _open_around(entry, closed)


def _is_apart(path: Path, closed: Sequence[Path]) -> bool:
    """Whether a path exists, and writing below it reaches neither the workspace nor the keys."""
    real = path.resolve()
    return (
        real.exists()
        and not any(f.is_relative_to(real) or real.is_relative_to(f) for f in closed[:2])
        and (real not in closed)
    )


def _installation_of(binary: Path) -> Path:
    """The folder that a program was installed into: of one below ``node_modules`` the outermost of these."""
    for parent in reversed(binary.parents):
        if parent.name == "node_modules":
            return parent
    return binary.parent
