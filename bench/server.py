"""The server as programs use it: calls of webhooks, what it costs beside the service."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import resource
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.measure import Result, cpu_seconds, seconds
from bench.service import only
from bench.startup import CLEARED
from bench.workspaces import host
from cleared.changes.workspace_opening import open_workspace
from cleared.cli.machine_errors import as_refusal
from cleared.gate.proposals.setting_changes import set_setting
from cleared.web.page_server import PageServer, serve_in_background
from cleared.web.webhook_secrets import add_webhook

SENDERS = 8
HOOK = '"""\nname: hook\ntrigger: webhook\n"""\nctx_event()["payload"]["n"]\n'
LONGEST = 60.0


def webhooks(quick: bool) -> Result:
    """Signed calls from eight connections at once, each on the disk before it is answered; the baseline appends the
    same bodies to a file, with an fsync each."""
    root, count = only({"hook": HOOK}), 500 if quick else 4_000
    set_setting(host(root), "webhooks.rate", "1000000")
    secret = add_webhook(host(root), "hook").secret
    with serve_in_background(PageServer([root], open_workspace, as_refusal, 0)) as place:
        before = resource.getrusage(resource.RUSAGE_SELF)
        port = place["url"].rsplit(":", 1)[1]
        argv = [sys.executable, "-m", "bench.server", port, secret, str(count)]
        took = float(subprocess.run(argv, check=True, capture_output=True, text=True).stdout) / count
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / count
    base = _append_durably(root / ".git" / "bench", min(count, 500))
    return Result(
        f"a webhook is accepted durably, {SENDERS} senders at once / an append with fsync",
        seconds(took),
        seconds(base),
        took / base,
        "≥ 200 a second",
        took <= 1 / 200,
        f"{1 / took:.0f} a second; {seconds(cpu)} of processor each",
    )


def send_from_all(port: int, secret: bytes, count: int) -> float:
    """Seconds for so many calls by all senders. They run in a process of their own, not in the server's interpreter."""
    began = time.perf_counter()
    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(lambda n: _send_calls(port, secret, n, count // SENDERS), range(SENDERS)))
    return time.perf_counter() - began


def _send_calls(port: int, secret: bytes, sender: int, count: int) -> None:
    wire = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
    for n in range(count):
        body, stamp, name = json.dumps({"n": n}).encode(), str(int(time.time())), f"{sender}-{n}"
        digest = hmac.new(secret, f"{name}.{stamp}.".encode() + body, hashlib.sha256).digest()
        headers = {
            "Host": f"localhost:{port}",
            "webhook-id": name,
            "webhook-timestamp": stamp,
            "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
        }
        wire.request("POST", "/hooks/hook", body, headers)
        answer = wire.getresponse()
        answer.read()
        assert answer.status == 202, answer.status
    wire.close()


def _append_durably(path: Path, count: int) -> float:
    began = time.perf_counter()
    with path.open("ab", buffering=0) as file:
        for n in range(count):
            file.write(json.dumps({"n": n}).encode() + b"\n")
            os.fsync(file.fileno())
    return (time.perf_counter() - began) / count


def idle_server(quick: bool) -> Result:
    """Memory of ``cleared up --server`` and of ``cleared up``, both with nothing to do, and the processor time of the
    former meanwhile."""
    root, span = only({"hook": HOOK}), 5.0 if quick else 30.0
    alone, _ = _measure_idle(root, span)
    both, share = _measure_idle(root, span, "--server", "--port", "0")
    return Result(
        "memory of an idle cleared up --server / of cleared up alone",
        f"{both / 1e6:.1f} MB",
        f"{alone / 1e6:.1f} MB",
        both / alone,
        "≤ 1.6×",
        both <= 1.6 * alone and share <= 0.005,
        f"{share:.2%} CPU over {span:g} s",
    )


def _measure_idle(root: Path, span: float, *options: str) -> tuple[float, float]:
    """Bytes (proportional set size, with its worker), and the share of one processor."""
    process = subprocess.Popen(
        [CLEARED, "up", *options], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if "up;" in line:
                break
        threading.Thread(target=process.stderr.read, daemon=True).start()
        time.sleep(3)
        before = cpu_seconds(process.pid)
        time.sleep(span)
        share = (cpu_seconds(process.pid) - before) / span
        return sum(_read_pss(pid) for pid in _list_tree(process.pid)), share
    finally:
        process.terminate()
        process.wait()


def _list_tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    mine = [int(each) for each in children.read_text().split()] if children.exists() else []
    return [pid, *(each for child in mine for each in _list_tree(child))]


def _read_pss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    key = base64.b64decode(sys.argv[2].removeprefix("whsec_"))
    print(send_from_all(int(sys.argv[1]), key, int(sys.argv[3])))
