"""The one place that starts git. Neither the user's settings, nor those of a hostile repository, nor this process's
environment can make it run another program, ask a question, or alter a byte.

Settings lie in a repository, in files that it includes, and in the user's own files; tracked attributes choose among
them. A setting of a fixed name is overridden with ``-c``. Settings whose names the repository chooses (``filter.NAME``)
are looked up before a command that could use them, and overridden one by one.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.base.programs import blocked_signals, find_program

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
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.quotePath=false",
    "core.untrackedCache=keep",
    "color.ui=false",
    "i18n.logOutputEncoding=UTF-8",
    "maintenance.auto=false",
    "gc.auto=0",
    # What a branch is moved to survives a power cut; git holds its locks for milliseconds, so ours can wait for them.
    "core.fsync=reference",
    "core.filesRefLockTimeout=1000",
)

_LOCAL: Final = (
    # Nothing is fetched or pushed but by ``run_remote``; see GIT_ALLOW_PROTOCOL too.
    "core.sshCommand=false",
    "core.gitProxy=false",
    "core.askPass=true",
    "credential.helper=",
)

_NO_DIFF_PROGRAMS: Final = ("--no-ext-diff", "--no-textconv")
COMMAND_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "cat-file": (),
        "check-ignore": (),
        "commit-graph": (),
        "config": (),
        "diff-index": (*_NO_DIFF_PROGRAMS, "--cached"),  # else it looks at the working tree
        "diff-tree": _NO_DIFF_PROGRAMS,
        "for-each-ref": (),
        "fsck": (),
        "index-pack": (),
        "init": (),
        "ls-files": (),
        "log": (*_NO_DIFF_PROGRAMS, "--no-show-signature"),
        "merge-base": (),
        "merge-file": (),
        "pack-objects": (),
        "read-tree": (),
        "repack": (),
        "rev-list": (),
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
        "diff-index",
        "diff-tree",
        "for-each-ref",
        "fsck",
        "index-pack",
        "log",
        "ls-files",
        "merge-base",
        "merge-file",
        "pack-objects",
        "rev-list",
        "rev-parse",
        "symbolic-ref",
        "version",
    }
)
"""Commands that write nothing and look at no content of the working tree: they run no hook and no filter."""

_REMOTE_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "fetch": ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance"),
        "push": ("--quiet", "--porcelain", "--no-verify", "--recurse-submodules=no", "--no-signed"),
    }
)
"""The git commands that speak with another repository."""
_REMOTE_ENVIRONMENT: Final = {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
_REMOTE_SECONDS: Final = 600.0

_BY_NAME: Final = (
    (r"(?s)filter\..+\.(clean|smudge|process)", ""),
    (r"(?s)filter\..+\.required", "false"),
    (r"(?s)(diff\..+\.(command|textconv)|merge\..+\.driver|credential\..+\.helper)", ""),
)
_HOOK: Final = r"(?s)(hook\..+)\.[a-z-]+"


def fixed_options() -> list[str]:
    """The ``-c`` options of every git call."""
    return _as_options((*_SETTINGS, *_LOCAL))


def needs_setting_names(command: str) -> bool:
    """Whether the names of all settings are to be looked up before this git command."""
    return command not in _READERS


def overriding_options(names: Iterable[str]) -> list[str]:
    """More ``-c`` options, for a repository in which settings of these names are in force.

    Raises ``WorkspaceError`` for one that names a program and cannot be switched off.
    """
    overriding: dict[str, str] = {}
    for name in names:
        hook = re.fullmatch(_HOOK, name)
        setting = (f"{hook[1]}.enabled", "false") if hook else None
        for pattern, value in _BY_NAME:
            if re.fullmatch(pattern, name):
                setting = (name, value)
        if setting and "=" in setting[0]:
            raise WorkspaceError(
                f"the git setting {name!r} names a program, and cannot be switched off for one call",
                remedy="Remove it: git config --unset-all NAME (git config --show-origin --get-all NAME says where).",
            )
        if setting:
            overriding[setting[0]] = setting[1]
    return _as_options(f"{name}={value}" for name, value in overriding.items())


def _as_options(settings: Iterable[str]) -> list[str]:
    return [part for setting in settings for part in ("-c", setting)]


_FIXED = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    # A commit means what its hash says, whatever refs/replace holds.
    "GIT_NO_REPLACE_OBJECTS": "1",
    # A file called "*.csv" is that file, not a pattern.
    "GIT_LITERAL_PATHSPECS": "1",
    # A partial clone must not go to the network behind our back; older gits only heed the second.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}

NOT_INSTALLED = "Install git 2.28 or newer and see that it is on the PATH."


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The calling process's environment without any ``GIT_*`` variable, plus the fixed ones, plus ``extra``."""
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("GIT_")}
    return environment | _FIXED | dict(extra or {})


def find_git() -> str:
    """The path of git. Raises ``WorkspaceError`` where there is none."""
    git = _find_on_path(os.environ.get("PATH", os.defpath))
    if git is None:
        raise WorkspaceError("git is not installed", remedy=NOT_INSTALLED)
    return git


@functools.lru_cache(maxsize=4)
def _find_on_path(path: str) -> str | None:
    return find_program("git", path)


def first_line(stderr: bytes) -> str:
    """The first thing git complains about, without its ``fatal:``."""
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    chosen = next((line for line in lines if line.startswith("fatal:")), lines[0] if lines else "")
    for prefix in ("fatal: ", "error: "):
        chosen = chosen.removeprefix(prefix)
    return chosen.strip()


class GitFailed(WorkspaceError):
    """A git command failed; ``stderr`` is all that it printed there."""

    def __init__(self, message: str, *, stderr: bytes, returncode: int) -> None:
        super().__init__(message)
        self.stderr = stderr
        self.returncode = returncode


class Git:
    """Runs git in ``root``, hardened."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(
        self,
        *args: str,
        input: bytes | None = None,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> bytes:
        """What ``git <args>`` printed. A failure raises ``GitFailed``; without ``check``, it ends the output."""
        process = self.start(args, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE, env=env)
        try:
            out, err = process.communicate(input)
        except BaseException:
            process.kill()
            process.wait()
            raise
        if check and process.returncode != 0:
            complaint = first_line(err) or f"exit status {process.returncode}"
            raise GitFailed(f"git {args[0]} failed: {complaint}", stderr=err, returncode=process.returncode)
        return out

    def run_remote(self, *args: str) -> tuple[int, bytes, bytes]:
        """What came of a command that speaks with another repository: exit status, output, errors. How it gets there
        is as the user's git is set: by their ssh, proxy and credentials; it asks nothing. Raises ``WorkspaceError``
        where it does not end."""
        process = self.start(args, env=_REMOTE_ENVIRONMENT)
        try:
            out, err = process.communicate(timeout=_REMOTE_SECONDS)
        except BaseException as error:
            with suppress(ProcessLookupError):  # all have ended meanwhile
                # It leads a session of its own, with the program that it started.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise WorkspaceError(
                    f"git {args[0]} has not ended within {_REMOTE_SECONDS:g} seconds",
                    remedy="Look whether the other repository can be reached.",
                ) from None
            raise
        return process.returncode, out, err

    def setting_names(self, env: Mapping[str, str] | None = None) -> Sequence[str]:
        """The names of all settings that are in force, from every file that git reads them from."""
        output = self.run("config", "--list", "--name-only", "-z", env=env)
        return output.decode("utf-8", "surrogateescape").split("\0")

    def start(
        self,
        args: Sequence[str],
        *,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start ``git <args>``. The terminal's Ctrl-C does not reach it: this program handles that.

        ``args`` begin with a command of ``COMMAND_OPTIONS``, or with one of ``run_remote``. Raises ``WorkspaceError``
        where git cannot be started, or a setting that cannot be switched off names a program.
        """
        command, *rest = args
        always = COMMAND_OPTIONS.get(command, _REMOTE_COMMANDS.get(command))
        if always is None:
            raise RuntimeError(f"git {command}: say in cleared.git.git_process what it could start")
        options = fixed_options()
        if command in _REMOTE_COMMANDS:  # by the user's ssh and credentials, and no other program
            names = [name for name in self.setting_names() if not name.lower().startswith("credential.")]
            options = [*_as_options(_SETTINGS), *overriding_options(names)]
        elif needs_setting_names(command):
            options += overriding_options(self.setting_names(env))
        try:
            # Between its fork and its own session it would get the terminal's Ctrl-C.
            with blocked_signals(signal.SIGINT):
                return subprocess.Popen(
                    [find_git(), *options, command, *always, *rest],
                    cwd=self.root,
                    env=git_environment(env),
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
        except OSError as error:
            if not self.root.is_dir():
                raise WorkspaceError(f"{self.root} is not a directory") from error
            remedy = NOT_INSTALLED if error.errno in (errno.ENOENT, errno.EACCES, errno.ENOEXEC) else None
            raise WorkspaceError(f"git cannot be started: {error.strerror}", remedy=remedy) from error
