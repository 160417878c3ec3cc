"""The text that has systemd or launchd keep a command of cleared running for one workspace, and where it goes.

Pure: nothing is written or started here.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import WorkspaceError

STOP_SECONDS: Final = 90
"""How long a run that is under way may take to end before it is ended, at least."""
_MAX_SLUG: Final = 40
_UNUSABLE_PROGRAM: Final = re.compile(r"""["'\\$]""")


class UnitFile(Struct, frozen=True):
    """A file for the system's service manager."""

    name: str
    """Of the service, as the manager is asked about it."""
    path: Path
    text: str


class ServiceDefinition(Struct, frozen=True):
    """What is to be kept running. Paths are absolute."""

    root: Path
    """The workspace."""
    python: Path
    """The interpreter that has cleared; of a virtual environment the one in it, links not followed."""
    environment: Mapping[str, str]
    """Beside what the manager gives to every service."""
    stop_seconds: int = STOP_SECONDS
    arguments: tuple[str, ...] = ("up",)
    """The command of cleared that runs."""
    installed_by: str = "cleared service"
    """The group of commands that writes and removes the file."""
    named_by: str = ""
    """The option of those that says it is this service, where they know several."""

    def __post_init__(self) -> None:
        for text in (str(self.root), str(self.python), *self.environment.values()):
            if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
                raise WorkspaceError(
                    f"{text!r} holds a character that a service's file cannot have",
                    remedy="Rename the folder, without control characters and bytes that are not UTF-8.",
                )

    @property
    def name(self) -> str:
        """``cleared-acme-1a2b3c4d``: for people by its folder, and unlike any other workspace's."""
        plain = unicodedata.normalize("NFKD", self.root.name).encode("ascii", "ignore").decode().lower()
        slug = re.sub(r"[^a-z0-9]+", "-", plain)[:_MAX_SLUG].strip("-")
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:8]
        first = "cleared" if self.arguments[0] == "up" else f"cleared-{self.arguments[0]}"
        return f"{first}-{slug or 'workspace'}-{digest}"

    @property
    def argv(self) -> tuple[str, ...]:
        """``-P``: no module is taken from the folder that the manager happens to start it in."""
        return (str(self.python), "-P", "-m", "cleared", "-C", str(self.root), *self.arguments)


def systemd_unit(service: ServiceDefinition, config_home: Path) -> UnitFile:
    """A user unit. ``config_home``: ``$XDG_CONFIG_HOME`` or what stands for it."""
    start = service.argv
    if _UNUSABLE_PROGRAM.search(start[0]):  # systemd starts no program of such a name, but gives such arguments
        start = ("/bin/sh", "-c", 'exec "$0" "$@"', *start)
    option = f" {service.named_by}" if service.named_by else ""
    command = " ".join(takewhile(lambda word: not word.startswith("-"), service.arguments))
    lines = [
        f"# Made by: {service.installed_by} install{option}. To remove it: {service.installed_by} uninstall{option}.",
        "[Unit]",
        f"Description=cleared {command} in {str(service.root).replace('%', '%%')}",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(_quote_word(word, command=True) for word in start)}",
        *(f"Environment={_quote_word(f'{key}={value}')}" for key, value in sorted(service.environment.items())),
        "Restart=on-failure",
        "RestartSec=5",
        *(["RestartPreventExitStatus=1 2 3 4 5"] if service.arguments[0] == "cycle" else []),
        "KillSignal=SIGTERM",
        # To itself alone: the run that is under way, and its sandbox, are its own to bring to an end.
        "KillMode=mixed",
        f"TimeoutStopSec={service.stop_seconds}",
        # Nothing that would keep the sandbox from confining its workers further (namespaces, seccomp, Landlock).
        "NoNewPrivileges=yes",
        "LockPersonality=yes",
        "RestrictRealtime=yes",
        "SystemCallArchitectures=native",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    name = f"{service.name}.service"
    return UnitFile(name, config_home / "systemd" / "user" / name, "\n".join(lines) + "\n")


def launchd_agent(service: ServiceDefinition, home: Path) -> UnitFile:
    """A user agent of macOS. ``home``: the user's."""
    import plistlib

    data = {
        "Label": service.name,
        "ProgramArguments": list(service.argv),
        "EnvironmentVariables": dict(sorted(service.environment.items())),
        "RunAtLoad": True,
        # A loop of cycles that gave up, with whatever exit code, stays stopped; systemd has RestartPreventExitStatus.
        "KeepAlive": {"Crashed": True} if service.arguments[0] == "cycle" else {"SuccessfulExit": False},
        "ThrottleInterval": 5,
        "ExitTimeOut": service.stop_seconds,
        "StandardErrorPath": str(home / "Library" / "Logs" / f"{service.name}.log"),
    }
    text = plistlib.dumps(data, sort_keys=False).decode()
    return UnitFile(service.name, home / "Library" / "LaunchAgents" / f"{service.name}.plist", text)


def _quote_word(word: str, *, command: bool = False) -> str:
    """One word of a unit's line. In the arguments of a ``command`` $ begins a variable."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{word.replace("$", "$$") if command else word}"'
