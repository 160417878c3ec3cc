"""Processes of the program without a new Python for each: they are forked off one that has imported everything.

A start of Python and the program's imports cost more than most commands do. ``Preloaded`` is ``subprocess.Popen`` for a
function of a module instead of a program: pipes, exit codes, signals and ``wait`` are those of any process. Where
a test is about the start itself (imports, limits set before it, closed streams), it starts a real one.

Run as a program, this file is the process that forks. It takes one order a packet on a Unix socket, with the three
standard streams and a status socket. It reports the id of the process and how it ended, and lets go of that id only
when the test has heard so: no signal can reach a stranger.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import errno
import gc
import importlib
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from patience import PATIENCE

COMMAND = "cleared.cli:main"
BESIDE = (
    "pydantic_monty",
    "git",
    "croniter",
    "rich.table",
    "typer",
    "yaml",
    "fastjsonschema",
    "watchdog.observers",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "opentelemetry",
)
"""What the program imports late of others'."""
STATUS = struct.Struct("=q")
LARGEST_ORDER = 1 << 17


class Preloaded(subprocess.Popen[Any]):
    """``function`` (``module:name``) in a process of its own, with ``argv`` as its ``sys.argv[1:]``."""

    _fork_server: tuple[int, socket.socket] | None = None

    def __init__(self, argv: Sequence[str], *, function: str = COMMAND, **options: Any) -> None:
        self.function = function
        super().__init__(list(argv), **options)

    # These two are where Popen starts a process, and where it asks whether it has ended.
    def _execute_child(
        self,
        args: Any,
        executable: Any,
        preexec_fn: Any,
        close_fds: Any,
        pass_fds: Any,
        cwd: Any,
        env: Mapping[str, str] | None,
        startupinfo: Any,
        creationflags: Any,
        shell: Any,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        *rest: Any,
    ) -> None:
        assert not (preexec_fn or pass_fds or shell), "start a real process for that"
        order = {
            "function": self.function,
            "argv": args,
            "cwd": os.fspath(cwd) if cwd else os.getcwd(),
            "env": dict(os.environ if env is None else env),
            "path": sys.path,
        }
        streams = [
            p2cread if p2cread != -1 else 0,
            c2pwrite if c2pwrite != -1 else 1,
            errwrite if errwrite != -1 else 2,
        ]
        packet = json.dumps(order).encode("utf-8", "surrogateescape")
        answer = self._send_order(packet, streams) or self._send_order(packet, streams)
        if not answer:
            raise OSError(errno.EAGAIN, "no process can be forked")
        (self.pid,) = STATUS.unpack(answer)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _send_order(self, packet: bytes, streams: Sequence[int]) -> bytes:
        """The id of the process that was forked for it; nothing where none was. The next order gets a new server then:
        one fork that failed, or a server that was killed, must not end all tests after it."""
        server = self._server()
        self._status, theirs = socket.socketpair()
        answer = b""
        with theirs, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            fds = array.array("i", [*streams, theirs.fileno()])
            server.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            theirs.close()
            answer = self._status.recv(STATUS.size, socket.MSG_WAITALL)
        if not answer:
            self._status.close()
            server.close()
            Preloaded._fork_server = None
        return answer

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._status.fileno() < 0:  # it was let go of, and Popen asks once more
            return self.pid, signal.SIGKILL
        if wait_flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        answer = self._status.recv(STATUS.size, socket.MSG_WAITALL)
        status = STATUS.unpack(answer)[0] if answer else signal.SIGKILL  # the process that forks was killed itself
        self._status.shutdown(socket.SHUT_WR)
        self._status.recv(1)  # the id is free from here on
        self._status.close()
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            with self._waitpid_lock:  # type: ignore[attr-defined]
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid == self.pid:
                        self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode

    def wait_stopped(self) -> None:
        """Wait until it has stopped itself (SIGSTOP)."""
        while self.poll() is None:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] == b"T":
                    return
            select.select([self._status], [], [], 0.002)
        raise AssertionError(f"it ended with {self.returncode}")

    @classmethod
    def _server(cls) -> socket.socket:
        """One for each process of the test run; a fork of that has none of its own."""
        if cls._fork_server is None or cls._fork_server[0] != os.getpid():
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST_ORDER * 2)
            subprocess.run([sys.executable, __file__], stdin=theirs, check=True)
            theirs.close()
            cls._fork_server = os.getpid(), ours
        return cls._fork_server[1]


def run(argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """``subprocess.run`` of the command line, with the output captured unless said otherwise."""
    timeout, given = options.pop("timeout", PATIENCE), options.pop("input", None)
    for stream in ("stdout", "stderr"):
        options.setdefault(stream, subprocess.PIPE)
    options.setdefault("stdin", subprocess.PIPE if given is not None else subprocess.DEVNULL)
    with Preloaded(argv, **options) as process:
        try:
            out, err = process.communicate(given, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(list(argv), process.returncode, out, err)


def execute() -> None:
    """``python -c``: run the first argument."""
    code = sys.argv.pop(1)
    exec(compile(code, "<argument>", "exec"), {"__name__": "__main__"})


def import_all() -> None:
    """Import all of the program, and what it imports late, so that no fork of this process has to."""
    import cleared

    for module in (*BESIDE, *(each.name for each in pkgutil.walk_packages(cleared.__path__, "cleared."))):
        if not module.startswith("cleared.starters") and not module.endswith("__main__"):
            importlib.import_module(module)


def use_once() -> None:
    """Have done what only the program decides, such as the digest of its sources: each fork would do it again. No agent
    is run: the sandbox's threads would not survive a fork."""
    from cleared.cli.command_runner import run

    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as null:
        os.environ.update(HOME=folder, XDG_CONFIG_HOME=folder, CLEARED_HOME=f"{folder}/cleared")
        with contextlib.redirect_stdout(null), contextlib.redirect_stderr(null):
            run(["init", f"{folder}/books", "--name", "Once"])
            for words in (["check"], ["status"], ["queue", "list"], ["journal", "list"], ["agent", "list"]):
                run([*words, "-C", f"{folder}/books"])
    os.environ.clear()
    os.environ.update(before)


# -- the process that forks -------------------------------------------------------------------------------------------


def serve() -> None:
    """Fork a process for each order, until nobody can send one any more and all have ended."""
    if os.fork():
        os._exit(0)  # no child of the tests, which look at what theirs are
    orders = socket.socket(fileno=os.dup(0))
    os.set_inheritable(orders.fileno(), False)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    os.setsid()
    import_all()
    use_once()
    gc.collect()
    gc.freeze()  # the forks share this memory: it stays as it is, and is not looked through for garbage
    for number in (1, 2):
        os.dup2(null, number)  # whoever reads the tests' output does not wait for this process
    events = selectors.DefaultSelector()
    events.register(orders, selectors.EVENT_READ, lambda: _take_order(orders, events))
    while events.get_map():
        for key, _ in events.select():
            key.data()


def _take_order(orders: socket.socket, events: selectors.BaseSelector) -> None:
    packet, control, _, _ = orders.recvmsg(LARGEST_ORDER, socket.CMSG_SPACE(4 * array.array("i").itemsize))
    if not packet:
        events.unregister(orders)
        return
    fds = array.array("i")
    for level, kind, data in control:
        assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    status = socket.socket(fileno=fds[3])
    try:
        pid = os.fork()
    except OSError:  # they hear nothing, and get another process that forks; those that were forked here are kept
        status.close()
    else:
        if pid == 0:
            _obey(json.loads(packet), list(fds[:3]))
        _keep(pid, status, events)
    for fd in fds[:3]:
        os.close(fd)


def _keep(pid: int, status: socket.socket, events: selectors.BaseSelector) -> None:
    """Say its id, and when it has ended how; free the id when they have heard so, or are gone."""
    end = os.pidfd_open(pid)
    running, heard = True, True

    def tell() -> None:
        nonlocal running
        running = False
        events.unregister(end)
        os.close(end)
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # known without its id being given back
        assert found is not None
        raw = found.si_status << 8 if found.si_code == os.CLD_EXITED else found.si_status
        if not heard:
            os.waitpid(pid, 0)
            return
        with contextlib.suppress(OSError):
            status.sendall(STATUS.pack(raw))

    def let_go() -> None:
        nonlocal heard
        heard = False
        events.unregister(status)
        if not running:
            os.waitpid(pid, 0)
        status.close()

    with contextlib.suppress(OSError):
        status.sendall(STATUS.pack(pid))
    events.register(end, selectors.EVENT_READ, tell)
    events.register(status, selectors.EVENT_READ, let_go)


def _obey(order: dict[str, Any], fds: list[int]) -> None:
    """Be that process: its streams, directory, environment and signals, then the function."""
    code: Any = 1
    try:
        os.setsid()  # what it signals its group is not for the process that forked it
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        os.closerange(3, 4096)
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        tempfile.tempdir = order["env"].get("TMPDIR")  # as a new process has it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
        sys.stderr.reconfigure(errors="backslashreplace")
        sys.path[:] = order["path"]
        sys.argv = ["cleared", *order["argv"]]
        module, _, name = order["function"].partition(":")
        try:
            code = getattr(importlib.import_module(module), name)()
        except SystemExit as end:
            code = end.code
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - the copy must not go on serving
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    serve()
