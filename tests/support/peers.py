"""A peer that speaks JSON-RPC lines with a real process, as a host in any language would."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from patience import PATIENCE
from preloaded import Preloaded

PROGRAM = [sys.executable, "-m", "cleared"]
BRIDGE = [*PROGRAM, "bridge"]


class Peer:
    """The other end of a process's standard streams."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.raw: list[bytes] = []
        self._frames: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.raw.append(line)
            self._frames.put(json.loads(line))
        self._frames.put(None)

    def send(self, *frames: Any) -> None:
        self.write(b"".join(json.dumps(f).encode() + b"\n" for f in frames))

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def get(self) -> Any:
        """The next frame; None at the end of the stream."""
        return self._frames.get(timeout=PATIENCE)

    def silent(self, seconds: float = 0.3) -> bool:
        try:
            self._frames.put(self._frames.get(timeout=seconds))
        except queue.Empty:
            return True
        return False

    def ask(self, method: str, params: Any = None, id: Any = 1) -> Any:
        """The answer to a request."""
        self.send(request(id, method, params))
        found = self.get()
        assert found["id"] == id and found["jsonrpc"] == "2.0", found
        return found

    def close_input(self) -> int:
        """End our side; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


@contextmanager
def peer(argv: list[str], **options: Any) -> Iterator[Peer]:
    if argv[:3] == PROGRAM:
        process: subprocess.Popen[bytes] = Preloaded(argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
    else:
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
    try:
        yield Peer(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def request(id: Any, method: str, params: Any = None) -> dict[str, Any]:
    frame = {"jsonrpc": "2.0", "id": id, "method": method}
    return frame if params is None else {**frame, "params": params}


def script(id: Any, text: str, *names: str, **options: Any) -> dict[str, Any]:
    return request(id, "run", {"script": text, "external_functions": list(names), **options})


def result(id: Any, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(id: Any, message: str, **data: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": message, "data": data}}
