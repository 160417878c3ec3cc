"""The shell and its relatives: commands in a copy of the workspace, confined, and only where the owner allows them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from cleared.base.json_arguments import ArgumentFault
from cleared.changes.host import Host
from cleared.meta.tools.confined_processes import ConfinedProcesses
from cleared.meta.tools.output_bounds import quote_data
from cleared.meta.tools.overlay import SCRATCH
from cleared.meta.tools.scratch_tree import ScratchTree
from cleared.meta.tools.session_files import SessionFiles, clean_path
from cleared.meta.tools.tool import Tool, ToolFailed, make_schema

PROCESS_TOOLS: Final = (
    "shell_command",
    "spawn_process",
    "kill_process",
    "wait_for_port",
    "wait_for_file",
    "run_until_file",
)
"""Those that ``llm.shell`` switches on."""
MAX_SECONDS: Final = 600
_PAUSE: Final = 0.05
_END_SECONDS: Final = {"KILL": 20.0, "TERM": 2.0, "INT": 2.0, "HUP": 2.0}
"""How long to wait for a process to end after a signal."""
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_SIGNALS: Final = ("TERM", "KILL", "INT", "HUP", "USR1", "USR2")


_COMMAND: Final = {"type": "string", "minLength": 1, "maxLength": 100_000}
_SECONDS: Final = {"type": "number", "minimum": 0, "maximum": MAX_SECONDS, "default": 60}
_PATH: Final = {"type": "string", "minLength": 1, "maxLength": 1_000}


class ProcessTools:
    """The six tools over one session's processes. Call ``close`` to end them all."""

    def __init__(self, files: SessionFiles, session_id: str) -> None:
        self._files = files
        folder = files.overlay.folder.parent
        self._tree = ScratchTree(files, folder / "tree")
        self._processes = ConfinedProcesses(files.host, self._tree.folder, folder / "run", session_id)
        self._logs: dict[int, str] = {}

    def make_tools(self) -> list[Tool]:
        """The tools, in the order in which a model reads of them."""
        return [*self._make_command_tools(), *self._make_waiting_tools()]

    def _make_tool(
        self, name: str, description: str, schema: dict[str, Any], run: Callable[..., str], acts: bool
    ) -> Tool:
        return Tool(name, description, schema, lambda arguments: self._run_allowed(run, arguments), acts=acts)

    def _make_command_tools(self) -> list[Tool]:

        return [
            self._make_tool(
                "shell_command",
                "Run a shell command in a copy of the workspace. It reaches no network and no other files. What it "
                "writes to agents/, scripts/ and the like comes into your draft. What it leaves running is ended.",
                make_schema(
                    ("command",),
                    command=_COMMAND,
                    workdir={"type": "string", "maxLength": 1_000},
                    timeout_ms={"type": "integer", "minimum": 1, "maximum": MAX_SECONDS * 1_000, "default": 60_000},
                ),
                self._run_shell,
                True,
            ),
            self._make_tool(
                "spawn_process",
                "Start a command in the background, as shell_command would. Its output goes to stdout_path, below "
                f"{SCRATCH}/, where read_file reads it.",
                make_schema(
                    ("command",), command=_COMMAND, cwd={"type": "string", "maxLength": 1_000}, stdout_path=_PATH
                ),
                self._spawn_process,
                True,
            ),
            self._make_tool(
                "kill_process",
                "Send a signal to a process that spawn_process started, and to all that it started.",
                make_schema(
                    ("pid",), pid={"type": "integer"}, signal={"type": "string", "enum": _SIGNALS, "default": "TERM"}
                ),
                self._kill_process,
                True,
            ),
        ]

    def _make_waiting_tools(self) -> list[Tool]:
        return [
            self._make_tool(
                "wait_for_port",
                "Wait until something listens on a TCP port of this session's own loopback.",
                make_schema(
                    ("port",),
                    port={"type": "integer", "minimum": 1, "maximum": 65_535},
                    host={"type": "string", "enum": _LOOPBACK, "default": "127.0.0.1"},
                    timeout_sec=_SECONDS,
                ),
                self._wait_for_port,
                False,
            ),
            self._make_tool(
                "wait_for_file",
                "Wait until a command has written a file.",
                make_schema(
                    ("path",),
                    path=_PATH,
                    timeout_sec=_SECONDS,
                    min_size_bytes={"type": "integer", "minimum": 0, "default": 0},
                ),
                self._wait_for_file,
                False,
            ),
            self._make_tool(
                "run_until_file",
                "Run a command until a file is there, then end it.",
                make_schema(("command", "file_path"), command=_COMMAND, file_path=_PATH, timeout_sec=_SECONDS),
                self._run_until_file,
                True,
            ),
        ]

    def collect_changes(self) -> bool:
        """Take what running processes have written meanwhile into the draft; whether there was anything."""
        if not self._processes.is_started or None not in self._processes.list_processes().values():
            return False
        return bool(self._tree.collect_changes())

    def close(self) -> None:
        """End every process of the session."""
        self._processes.close()

    def _run_allowed(self, run: Callable[[Mapping[str, Any]], str], arguments: Mapping[str, Any]) -> str:
        _require_shell(self._files.host)
        if not self._processes.is_started:
            self._tree.fill()
            self._processes.start_keeper()
        self._tree.push_draft()
        return run(arguments)

    def _run_shell(self, arguments: Mapping[str, Any]) -> str:
        limit = arguments["timeout_ms"] / 1_000
        pid, log = self._processes.start_command(arguments["command"], self._clean_folder(arguments["workdir"]))
        code = self._processes.wait_for(pid, limit)
        ended = "" if code is not None else f"ended at its limit of {limit:g} seconds; this is what it wrote until then"
        if code is None:
            code = self._processes.end_process(pid)
        text = self._describe_end(code, log, ended)
        if code or ended:
            raise ToolFailed(text, "Read what it wrote, and change the command.")
        return text

    def _spawn_process(self, arguments: Mapping[str, Any]) -> str:
        number = len(self._logs) + 1
        output = clean_path(arguments["stdout_path"] or f"{SCRATCH}/process-{number}.log")
        if not output.startswith(f"{SCRATCH}/"):
            raise ArgumentFault(f"stdout_path must lie below {SCRATCH}/")
        pid, log = self._processes.start_command(
            arguments["command"], self._clean_folder(arguments["cwd"]), output=output
        )
        self._logs[pid] = output
        code = self._processes.wait_for(pid, 0.2)
        if code is not None:
            self._tree.collect_changes()
            shown = self._processes.read_output(log).strip()
            raise ToolFailed(
                f"the process ended at once, with exit code {code}. {shown[:500]}",
                f"Read {output}, and change the command.",
            )
        return f"Process {pid} runs; its output goes to {output}. It ends with this session at the latest."

    def _kill_process(self, arguments: Mapping[str, Any]) -> str:
        pid, name = arguments["pid"], arguments["signal"]
        state = self._processes.send_signal(pid, getattr(signal, f"SIG{name}"))
        if state == "unknown":
            raise ToolFailed(
                f"{pid} is no process of this session; only those can be ended",
                "The numbers are those that spawn_process gave: " + (", ".join(map(str, self._logs)) or "none so far"),
            )
        if state == "ended":
            return f"Process {pid} has ended already." + self._describe_changes()
        code = self._processes.wait_for(pid, _END_SECONDS[name]) if name in _END_SECONDS else None
        after = "it still runs" if code is None else f"it has ended ({_describe_code(code)})"
        return f"SIG{name} was sent to process {pid}; {after}." + self._describe_changes()

    def _wait_for_port(self, arguments: Mapping[str, Any]) -> str:
        if not self._processes.has_network:
            raise ToolFailed(
                "commands have no network here at all (the kernel gives no namespaces), so no port can open",
                "Pass data through files.",
            )
        host, port = arguments["host"], arguments["port"]
        if self._wait_until(lambda: self._processes.is_port_open(host, port), arguments["timeout_sec"]):
            return f"Port {port} is open."
        raise ToolFailed(
            f"nothing listens on port {port} after {arguments['timeout_sec']:g} seconds",
            "Read the process's output; see that it listens on 127.0.0.1.",
        )

    def _wait_for_file(self, arguments: Mapping[str, Any]) -> str:
        path, least = clean_path(arguments["path"]), arguments["min_size_bytes"]
        if self._wait_until(lambda: self._is_there(path, least), arguments["timeout_sec"]):
            return f"{path} is there ({self._tree.size_of(path) or 0:,} bytes)." + self._describe_changes()
        raise ToolFailed(
            f"{path} is not there, or has less than {least:,} bytes, after {arguments['timeout_sec']:g} seconds",
            "Read the process's output.",
        )

    def _run_until_file(self, arguments: Mapping[str, Any]) -> str:
        path = clean_path(arguments["file_path"])
        if self._is_there(path, 0):
            raise ToolFailed(f"{path} is there already", "Remove it first, or wait for another file.")
        pid, log = self._processes.start_command(arguments["command"], "")
        end = time.monotonic() + arguments["timeout_sec"]
        code = None
        while code is None and time.monotonic() < end and not self._is_there(path, 0):
            code = self._processes.wait_for(pid, _PAUSE)
        is_there = self._is_there(path, 0)
        if code is None:
            self._processes.end_process(pid)
        ending = "the command was ended" if code is None else f"the command had ended ({_describe_code(code)})"
        text = self._describe_end(
            0 if code is None else code, log, f"{path} is {'' if is_there else 'not '}there; {ending}"
        )
        if not is_there:
            raise ToolFailed(text, "Read what it wrote, and change the command or the time.")
        return text

    def _describe_end(self, code: int, log: Path, note: str) -> str:
        output = self._processes.read_output(log)
        head = note or f"It ended with {_describe_code(code)}"
        written = quote_data(output.rstrip("\n"), "the command's output") if output.strip() else "It wrote nothing."
        return f"{head}.{self._describe_changes()}\n{written}"

    def _describe_changes(self) -> str:
        taken = self._tree.collect_changes()
        lines = [f"\nTaken into your draft: {', '.join(taken[:50])}"] if taken else []
        lines += [f"\n{note}" for note in self._tree.notes]
        return "".join(lines)

    def _clean_folder(self, text: str | None) -> str:
        return clean_path(text) if text and text.strip("./") else ""

    def _is_there(self, path: str, least: int) -> bool:
        size = self._tree.size_of(path)
        return size is not None and size >= least

    def _wait_until(self, is_true: Callable[[], bool], seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE)
        return True


def _require_shell(host: Host) -> None:
    if not host.config.llm.shell:
        raise ToolFailed(
            "commands are off: the setting llm.shell is false",
            "Use the file tools and agent_check. The owner can allow commands: cleared config set llm.shell true.",
        )


def _describe_code(code: int) -> str:
    if code < 0 or code > 128:
        number = -code if code < 0 else code - 128
        names = {s.value: s.name for s in signal.Signals}
        if number in names:
            return f"signal {names[number]}"
    return f"exit code {code}"
