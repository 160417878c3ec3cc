"""Which git commands are used, and how the settings by which git could start a program are switched off for each call.

Settings lie in a repository, in files that it includes, and in the user's own files; tracked attributes choose among
them. A setting of a fixed name is overridden with ``-c``. Settings whose names the repository chooses (``filter.NAME``)
are looked up before a command that could use them, and overridden one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from cleared.base.errors import WorkspaceError

_SETTINGS: Final = (
    # ``update-ref`` runs hooks too (``reference-transaction``); ``status`` and ``update-index`` ask the monitor.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=true",
    "core.pager=cat",
    "core.editor=true",
    "sequence.editor=true",
    "commit.gpgsign=false",
    "tag.gpgsign=false",
    "log.showSignature=false",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    # Nothing is fetched or pushed; see GIT_ALLOW_PROTOCOL too.
    "core.sshCommand=false",
    "core.gitProxy=false",
    "core.askPass=true",
    "credential.helper=",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.quotePath=false",
    "core.untrackedCache=keep",
    "color.ui=false",
    "i18n.logOutputEncoding=UTF-8",
    "maintenance.auto=false",
    # What a branch is moved to survives a power cut; git holds its locks for milliseconds, so ours can wait for them.
    "core.fsync=reference",
    "core.filesRefLockTimeout=1000",
)
_NO_GC: Final = "gc.auto=0"

_NO_DIFF_PROGRAMS: Final = ("--no-ext-diff", "--no-textconv")
COMMAND_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "cat-file": (),
        "check-ignore": (),
        "config": (),
        "diff-tree": _NO_DIFF_PROGRAMS,
        "for-each-ref": (),
        "fsck": (),
        "gc": (),
        "index-pack": (),
        "init": (),
        "ls-files": (),
        "log": (*_NO_DIFF_PROGRAMS, "--no-show-signature"),
        "merge-base": (),
        "pack-objects": (),
        "read-tree": (),
        "rev-parse": (),
        "status": ("--ignore-submodules=all",),  # a submodule has settings of its own
        "symbolic-ref": (),
        "update-index": (),
        "update-ref": (),
        "version": (),
    }
)
"""Every git command that is used, and what it is always given. One that is not here is not started."""
_READERS: Final = frozenset(
    {
        "cat-file",
        "check-ignore",
        "config",
        "diff-tree",
        "for-each-ref",
        "fsck",
        "index-pack",
        "log",
        "ls-files",
        "merge-base",
        "pack-objects",
        "rev-parse",
        "symbolic-ref",
        "version",
    }
)
"""Commands that write nothing and look at no content of the working tree: they run no hook and no filter."""

_BY_NAME: Final = (
    (re.compile(r"filter\..+\.(clean|smudge|process)", re.DOTALL), ""),
    (re.compile(r"filter\..+\.required", re.DOTALL), "false"),
    (re.compile(r"(diff\..+\.(command|textconv)|merge\..+\.driver|credential\..+\.helper)", re.DOTALL), ""),
)
_HOOK: Final = re.compile(r"(hook\..+)\.[a-z-]+", re.DOTALL)
_GC_HOOK: Final = "gc.recentobjectshook"
"""Where this setting is given more than once, all are run: it cannot be overridden."""


def fixed_options(*, gc: bool = False) -> list[str]:
    """The ``-c`` options of every git call; ``gc`` leaves git's own housekeeping as the user set it."""
    return _as_options(_SETTINGS if gc else (*_SETTINGS, _NO_GC))


def needs_setting_names(command: str) -> bool:
    """Whether the names of all settings are to be looked up before this git command."""
    return command not in _READERS


def overriding_options(command: str, names: Iterable[str]) -> list[str]:
    """More ``-c`` options, for a repository in which settings of these names are in force.

    Raises ``WorkspaceError`` for one that names a program and cannot be switched off.
    """
    overriding: dict[str, str] = {}
    for name in names:
        hook = _HOOK.fullmatch(name)
        setting = (f"{hook[1]}.enabled", "false") if hook else None
        for pattern, value in _BY_NAME:
            if pattern.fullmatch(name):
                setting = (name, value)
        if (setting and "=" in setting[0]) or (command == "gc" and name == _GC_HOOK):
            raise WorkspaceError(
                f"the git setting {name!r} names a program, and cannot be switched off for one call",
                remedy="Remove it: git config --unset-all NAME (git config --show-origin --get-all NAME says where).",
            )
        if setting:
            overriding[setting[0]] = setting[1]
    return _as_options(f"{name}={value}" for name, value in overriding.items())


def _as_options(settings: Iterable[str]) -> list[str]:
    return [part for setting in settings for part in ("-c", setting)]
