"""The commands of a session, from the side of whoever asks for them: starts the keeper, and speaks with it."""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cleared.base.safe_files import write_atomic
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.jobs.job_process import module_search_path
from cleared.jobs.signing import KEY_NAME
from cleared.meta.tools.process_keeper import BOOTSTRAP, KILL_GRACE
from cleared.meta.tools.tool import ToolFailed
from cleared.processes.confinement import landlock_abi
from cleared.trust.keys import KEY, RUN_KEY, cleared_home
from cleared.work.loop.supervisor import job_environment
from cleared.workspace.user_folder import user_home

MAX_PROCESSES: Final = 16
"""Processes of one session at a time."""
_START_SECONDS: Final = 60.0
_ANSWER_SECONDS: Final = 60.0
_MAX_KEPT: Final = 256 << 10
"""Bytes of a command's output that are read: so many from its beginning, and from its end."""
_SHELL: Final = "/bin/sh"


class ConfinedProcesses:
    """Processes that run in ``tree`` and can reach nothing else. ``run``: a folder for what they need besides."""

    def __init__(self, host: Host, tree: Path, run: Path, session_id: str) -> None:
        self._host, self._tree, self._run, self._session_id = host, tree, run, session_id
        self._keeper: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self._count = 0
        self._scratch: dict[int, Path] = {}
        self.has_network = False
        """Whether they have a network of their own, with loopback in it; else they have none."""

    @property
    def is_started(self) -> bool:
        return self._keeper is not None

    def start_keeper(self) -> None:
        """Start what starts processes. Raises ``ToolFailed`` where they cannot be confined."""
        confine = self._host.config.sandbox.confine
        if not landlock_abi() and confine != "off":
            raise ToolFailed(
                "this machine cannot confine commands (its kernel has no Landlock), so they are off",
                "Use the other tools. The owner can allow commands that nothing holds back: sandbox.confine: off.",
            )
        with suppress(OSError):
            remove_tree(self._run)
        for folder in ("home", "tmp", "logs"):
            (self._run / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        problem = ""
        for own in (True, False):
            problem = self._try_keeper(own, "best" if landlock_abi() else "off")
            if not problem:
                self.has_network = own
                return
        raise ToolFailed(f"commands cannot be confined here, so they are off: {problem}", "Use the other tools.")

    def start_command(self, command: str, workdir: str, *, output: str = "") -> tuple[int, Path]:
        """Start a command in a shell; its number, and where its output goes: to a file of the run folder, or of the
        tree where ``output`` names one."""
        alive = sum(code is None for code in self.list_processes().values())
        if alive >= MAX_PROCESSES:
            raise ToolFailed(f"{alive} processes of this session run", "End one with kill_process first.")
        self._count += 1
        scratch = self._run / "tmp" / str(self._count)
        scratch.mkdir(mode=0o700)
        log = self._run / "logs" / f"{self._count}-{secrets.token_hex(4)}"
        environment = job_environment(self._session_id, scratch, own=False) | {
            "HOME": str(self._run / "home"),
            "GIT_CEILING_DIRECTORIES": str(self._tree.parent),
        }
        if output:
            environment["CLEARED_OUTPUT"] = str(self._tree / output)
            command = f'exec >"$CLEARED_OUTPUT" 2>&1\n{command}'
        answer = self._ask(
            {
                "do": "start",
                "argv": [_SHELL, "-c", command],
                "cwd": workdir or ".",
                "env": environment,
                "scratch": str(scratch),
                "log": str(log),
            }
        )
        self._scratch[int(answer["pid"])] = scratch
        return int(answer["pid"]), log

    def wait_for(self, pid: int, seconds: float) -> int | None:
        """The exit code of a process, or None where it still runs after so many seconds."""
        code = self._ask({"do": "wait", "pid": pid, "seconds": seconds}, seconds)["code"]
        if code is not None and pid in self._scratch:
            shutil.rmtree(self._scratch.pop(pid), ignore_errors=True)
        return None if code is None else int(code)

    def end_process(self, pid: int) -> int:
        """End a process and all that it has started; its exit code."""
        from signal import SIGKILL, SIGTERM

        self.send_signal(pid, SIGTERM)
        code = self.wait_for(pid, KILL_GRACE)
        if code is None:
            self.send_signal(pid, SIGKILL)
            code = self.wait_for(pid, _ANSWER_SECONDS)
        return -9 if code is None else code

    def send_signal(self, pid: int, number: int) -> str:
        """``sent``; ``ended`` where the process has ended; ``unknown`` where the session never started it."""
        return str(self._ask({"do": "signal", "pid": pid, "signal": int(number)})["state"])

    def is_port_open(self, host: str, port: int) -> bool:
        return bool(self._ask({"do": "port", "host": host, "port": port})["open"])

    def list_processes(self) -> dict[int, int | None]:
        """Number → exit code, None while it runs."""
        if self._keeper is None:
            return {}
        return {int(pid): code for pid, code in self._ask({"do": "list"})["processes"].items()}

    def read_output(self, log: Path) -> str:
        """What a process has written, without secrets; of much, the beginning and the end."""
        with log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(_MAX_KEPT)
            if size > 2 * _MAX_KEPT:
                file.seek(size - _MAX_KEPT)
                data += f"\n[… {size - 2 * _MAX_KEPT:,} bytes are not kept …]\n".encode()
            data += file.read()
        return self._host.redactor.redact_output(data.decode("utf-8", "replace"))

    def close(self) -> None:
        """End every process, and remove what they needed."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        assert keeper.stdin is not None and keeper.stdout is not None
        with suppress(OSError):
            keeper.stdin.close()
        try:
            keeper.wait(_ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()
        keeper.stdout.close()
        for folder in (self._run, self._tree):
            with suppress(OSError):
                remove_tree(folder)

    def _try_keeper(self, own: bool, confine: str) -> str:
        """Why the keeper did not start; empty where it did."""
        outside = self._run / "outside"
        write_atomic(outside, b"No command of a session can read this.\n", mode=0o600)
        keys = [cleared_home() / name for name in (KEY, RUN_KEY, KEY_NAME)]
        spec = {
            "root": str(self._host.root),
            "tree": str(self._tree),
            "run": str(self._run),
            "own": own,
            "confine": confine,
            "outside": str(next((key for key in keys if key.exists()), outside)),
            "path": module_search_path(self._host.root),
        }
        self._pending = b""
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-c", BOOTSTRAP, json.dumps(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._tree,
            start_new_session=True,
            env={"CLEARED_HOME": str(cleared_home()), "HOME": str(user_home()), "PATH": os.defpath},
        )
        answer = self._read_answer(_START_SECONDS)
        if answer.get("ready"):
            return ""
        keeper, self._keeper = self._keeper, None
        keeper.kill()
        keeper.wait()
        return str(answer.get("problem") or answer.get("error"))

    def _ask(self, request: dict[str, Any], seconds: float = 0.0) -> dict[str, Any]:
        """Raises ``ToolFailed`` where the keeper refuses, or is gone."""
        if self._keeper is None or self._keeper.stdin is None:
            raise ToolFailed("no process of this session runs", "Start one first.")
        try:
            self._keeper.stdin.write((json.dumps(request) + "\n").encode())
            self._keeper.stdin.flush()
            answer = self._read_answer(seconds + _ANSWER_SECONDS)
        except OSError as error:
            answer = {"error": error.strerror}
        except BaseException:  # Ctrl-C: the answer would be taken for the next one's
            self.close()
            raise
        if "error" in answer:
            raise ToolFailed(f"the commands of this session cannot go on: {answer['error']}", "Use the other tools.")
        return answer

    def _read_answer(self, seconds: float) -> dict[str, Any]:
        assert self._keeper is not None and self._keeper.stdout is not None
        descriptor, end = self._keeper.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self._pending:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return {"error": "no answer in time"}
            data = os.read(descriptor, 65_536)
            if not data:
                return {"error": "the process that starts them has ended"}
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        found = json.loads(line)
        return found if isinstance(found, dict) else {"error": "no answer"}
