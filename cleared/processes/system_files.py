"""What of the system a confined program may read: programs, libraries, and the few settings that these need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cleared.processes import landlock
from cleared.processes.namespaces import SHARED_MEMORY, list_own_terminals

_FOLDERS: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/opt",
    "/nix",
    "/gnu",
    "/sys/fs/cgroup",
    "/sys/devices/system",
)
_SETTINGS: Final = (
    "*-release",
    "*_version",
    "ImageMagick*",
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "claude-code",
    "codex",
    "crypto-policies",
    "default/locale",
    "dpkg/origins",
    "environment",
    "fonts",
    "gai.conf",
    "gitconfig",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "java*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "magic*",
    "maven",
    "mime.types",
    "nsswitch.conf",
    "opencode",
    "passwd",
    "perl",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "profile",
    "profile.d",
    "protocols",
    "python3*",
    "resolv.conf",
    "services",
    "shells",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "texmf",
    "timezone",
    "xdg",
)
"""Below /etc, with wildcards. Not all of it: whoever works as root could read password hashes and host keys."""
_PROC_FILES: Final = ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys", "uptime", "version")
"""Not the whole of ``/proc`` where it is everybody's: it shows the command lines of other processes."""
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def system_rules(abi: int, closed: Sequence[Path], *, processes: bool) -> list[tuple[Path, int]]:
    """Landlock rules for what any program needs, without what lies in ``closed``. ``processes``: the whole of
    ``/proc``, as the program has one of its own, or is to be trusted with it."""
    named = [*map(Path, _FOLDERS), *(place for name in _SETTINGS for place in Path("/etc").glob(name))]
    rules = [landlock.read_rule(part) for place in named for part in open_around(place, closed)]
    shown = [Path("/proc")] if processes else [Path("/proc", name) for name in _PROC_FILES]
    rules += [landlock.read_rule(place) for place in shown if place.exists()]
    return [*rules, *(landlock.write_rule(Path(p), abi) for p in _DEVICES if Path(p).exists())]


def own_device_rules(abi: int, *, memory: bool) -> list[tuple[Path, int]]:
    """The same for the devices that ``enter_namespaces`` gives a program: elsewhere they are everybody's."""
    terminals = list_own_terminals()
    rules = [landlock.terminal_rule(p, abi) for p in (*terminals, Path("/dev/tty")) if terminals and p.exists()]
    return [*rules, landlock.write_rule(SHARED_MEMORY, abi)] if memory else rules


def holds_system(path: Path) -> bool:
    """Whether a folder of the system is at a real path, or below it."""
    return any(Path(name).resolve().is_relative_to(path) for name in _FOLDERS)


def rule_around(rule: tuple[Path, int], closed: Sequence[Path]) -> Iterator[tuple[Path, int]]:
    """The rule; where it allows reading and a closed folder lies below its path, one for what else lies there."""
    place = rule[0].resolve()
    inner = [folder for folder in closed if folder != place and folder.is_relative_to(place)]
    if not inner or not landlock.allows_reading(rule):
        yield rule
        return
    for part in open_around(place, inner):
        yield landlock.narrow_rule(rule, part)


def open_around(path: Path, closed: Sequence[Path]) -> Iterator[Path]:
    """The path; where a closed folder lies in it, what else lies in it; nothing where it is one or lies in one."""
    path = path.resolve()
    if not path.exists() or any(path.is_relative_to(folder) for folder in closed):
        return
    if not any(folder.is_relative_to(path) for folder in closed):
        yield path
        return
    try:
        entries = [entry for entry in path.iterdir() if not entry.is_symlink()]
    except OSError:
        return
    for entry in entries:
        yield from open_around(entry, closed)
