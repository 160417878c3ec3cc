"""A loop in processes of its own, its files, and a plug-in with job types that no built-in one is like."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jsonschema
from harness import Done, Workspace, no_traceback
from patience import PATIENCE
from running import HOLD_MARK, eventually

from cleared.jobs.file_schemas import SCHEMA_FOLDER

FILES = {
    "single_agent_state.json": "state",
    "single_agent_state.json.bak": "state",
    "single_agent_wakeup.flag": "wakeup",
    "ui_data/single_agent_tree.json": "tree",
    "inbox/*.json": "inbox",
    "jobs/*.manifest.json": "manifest",
    "jobs/*.result.json": "result",
    "jobs/*.bridge_manifest.json": "bridge",
    "archive/*.archived.json": "state",
}
"""What each file of a loop is, by the name of its schema."""
SCHEMAS = {path.stem: json.loads(path.read_bytes()) for path in SCHEMA_FOLDER.glob("*.json")}


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


class Loop:
    """The loop of a workspace in one runtime directory."""

    def __init__(self, ws: Workspace, folder: Path | None = None) -> None:
        self.ws = ws
        self.folder = folder or ws.root / ".cleared/loop"
        self.processes: list[subprocess.Popen[bytes]] = []

    # -- commands -----------------------------------------------------------------------------------------------

    def __call__(self, *argv: str, **environment: str | None) -> Done:
        """A command in a process of its own; None: a variable that is unset."""
        return self.ws.process("loop", *argv, "--runtime-dir", str(self.folder), env=changed(environment))

    def here(self, *argv: str) -> Done:
        """The same in this process, where how it is started is not what is tested."""
        return self.ws("loop", *argv, "--runtime-dir", str(self.folder))

    def run(self, *flags: str, code: int = 0, **environment: str | None) -> Done:
        """``loop run``, never asleep unless it is told to be; its files are what they are said to be afterwards."""
        sleep = () if "--sleep" in flags else ("--sleep", "0")
        bound = () if {"--once", "--max-cycles"} & set(flags) else ("--max-cycles", "20")
        argv = ("run", *sleep, *bound, *flags)
        # Without an environment of its own there is nothing that a process would add but the time it takes to start.
        done = self(*argv, **environment) if environment else self.here(*argv)
        assert done.code == code, done
        no_traceback(done)
        self.valid()
        return done

    def once(self, kind: str, target: str | None = None, *flags: str, **environment: str | None) -> dict[str, Any]:
        """Run one job of this kind; its result."""
        aim = () if target is None else ("--target", target)
        self.run("--once", "--enqueue", kind, *aim, *flags, **environment)
        return self.results()[-1]

    def enqueue(self, kind: str, target: str | None = None) -> str:
        aim = () if target is None else ("--target", target)
        done = self.here("enqueue", kind, *aim)
        assert done.code == 0, done
        return done.out.strip()

    def start(self, *flags: str, **environment: str | None) -> subprocess.Popen[bytes]:
        """``loop run`` until somebody ends it; it is up when this returns."""
        sleep = () if "--sleep" in flags else ("--sleep", "60")
        process = self.ws.start(
            "loop",
            "run",
            *sleep,
            *flags,
            "--runtime-dir",
            str(self.folder),
            env=changed(environment),
        )
        self.processes.append(process)
        eventually(lambda: process.poll() is not None or self.status_pid() == process.pid)
        assert process.poll() is None, process.communicate()
        return process

    def end(self, process: subprocess.Popen[bytes], number: int | None = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and what it said."""
        if number is not None and process.poll() is None:
            process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
        assert out == b""
        self.valid()
        return process.returncode, err.decode()

    def clean_up(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.here("stop", "--now")

    # -- what is there ------------------------------------------------------------------------------------------

    def json(self, *argv: str) -> Any:
        done = self.here(*argv, "--json")
        assert done.code == 0, done
        return done.json

    def status(self) -> Any:
        return self.json("status")

    def status_pid(self) -> int | None:
        done = self.here("status", "--json")
        return done.json["pid"] if done.code == 0 and done.json["up"] else None

    def state(self) -> Any:
        return json.loads((self.folder / "single_agent_state.json").read_bytes())

    def tree(self) -> Any:
        return json.loads((self.folder / "ui_data/single_agent_tree.json").read_bytes())

    def asleep(self) -> bool:
        path = self.folder / "ui_data/single_agent_tree.json"
        return path.exists() and self.tree()["summary"]["status"] == "sleeping"

    def jobs(self) -> list[str]:
        """Kinds of the jobs that have ended, oldest first."""
        return [row["kind"] for row in self.state()["jobs"]]

    def result(self, job: str) -> Any:
        return json.loads((self.folder / f"jobs/{job}.result.json").read_bytes())

    def results(self) -> list[Any]:
        """Those of all jobs that the state still knows, oldest first."""
        return [self.result(row["job_id"]) for row in self.state()["jobs"]]

    def output(self, job: str) -> str:
        return (self.folder / f"jobs/{job}.out.txt").read_text()

    def running(self) -> Any:
        """The job that is on, once it has begun."""
        found = self.state()["running"] if (self.folder / "single_agent_state.json").exists() else None
        return found if found and (self.folder / f"jobs/{found['job_id']}.out.txt").exists() else None

    def valid(self) -> None:
        """Every file is as its shipped schema says, to a validator that is not ours."""
        for pattern, name in FILES.items():
            for path in self.folder.glob(pattern):
                if not path.name.startswith(".") and path.is_file():
                    jsonschema.Draft7Validator(SCHEMAS[name]).validate(json.loads(path.read_bytes()))
        leavings = [p for p in self.folder.rglob("*.tmp") if p.parent.name != "tmp"]
        assert leavings == [], leavings

    def edit(self, path: Path, change: Callable[[Any], object]) -> None:
        """Alter a file as somebody would who may write to the folder."""
        data = json.loads(path.read_bytes())
        change(data)
        path.write_text(json.dumps(data))


def changed(variables: dict[str, str | None]) -> dict[str, str]:
    """This process's environment without what the runner may have of a loop, and with these; in real time."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("SINGLE_AGENT_") and k != "CLEARED_CLOCK"}
    found |= {k: v for k, v in variables.items() if v is not None}
    return {k: v for k, v in found.items() if variables.get(k, v) is not None}


# -- a plug-in --------------------------------------------------------------------------------------------------------

PROBES = '''
import os, signal, socket, subprocess, sys, time
from pathlib import Path

from cleared.jobs.job_types import JobType


def kind(name, *command, **more):
    return JobType(name, f"A probe: {name}.", command=command, default_target=f"a {name}", **more)


def shell(name, text, **more):
    return kind(name, "sh", "-c", text, **more)


def tried(name, **more):
    return JobType(name, f"A probe: {name}.", function=f"probe_kinds:do_{name}", target="path",
                default_target=f"a {name}", **more)


nothing = kind("nothing", "true")
fails = shell("fails", "echo it went wrong; exit 3")
silent = shell("silent", "exit 7")
slow = shell("slow", "sleep 600")
limited = shell("limited", "sleep 600", timeout=0.3)
waits = shell("waits", "while [ ! -e go ]; do sleep 0.02; done; echo went")
counts = shell("counts", "echo x >> made/ran", writes=("made",))
environ = kind("environ", "env")
loud = shell("loud", "yes loud | head -c 3000000; echo the end", max_output=10_000)
says = kind("says", "cat", "{target}", target="path")
echoes = kind("echoes", "echo", "{target}", target="path")
steers = shell("steers", "printf 'red \\\\033[31m bell \\\\007 end\\\\n'")
binary = shell("binary", "head -c 2000 /dev/urandom; echo; echo over")
input = shell("input", "cat; echo empty")
where = kind("where", "pwd")
killed = shell("killed", "kill -KILL $$")
runs = kind("runs", "sh", "{target}", target="path", writes=("made",))
slow_talker = shell("slow_talker", "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second")
absent = kind("absent", "no-such-program-anywhere")
docs = JobType("docs", "A probe that reads one folder.", command=("cat", "docs/note.md"), reads=("docs",))
raises = tried("raises")
reads = tried("reads", reads=(".",))
asks = tried("asks")
writes = tried("writes", writes=("made",))
dials = tried("dials")
decides = tried("decides", timeout=300)
strays = tried("strays", writes=("made",))
stubborn = tried("stubborn", writes=("made",), timeout=6)
tells = tried("tells")


def do_raises(job):
    raise RuntimeError("in the middle")


def attempt(what):
    """How it went, in one word."""
    try:
        found = what()
    except Exception as error:
        return f"refused ({type(error).__name__})"
    return f"got {found!r}"


def do_reads(job):
    """As a program would that does not ask."""
    path = Path(job.target) if job.target.startswith("/") else job.root / job.target
    for line in os.environ.get("NOTHING", "").split(): pass
    for place in (job.root / "probe-paths").read_text().split("\\n"):
        if place:
            print(place, attempt(lambda: Path(place).read_bytes()))
    return "tried"


def do_asks(job):
    """As a job is meant to."""
    return "got " + job.read(job.target).decode()


def do_writes(job):
    for place in (job.root / "probe-paths").read_text().split("\\n"):
        if place:
            print(place, attempt(lambda: Path(place).open("ab").write(b"x")))
    print("scratch", attempt(lambda: Path(os.environ["TMPDIR"], "mine").write_bytes(b"x")))
    return "tried"


def do_dials(job):
    import tempfile
    for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM),
                         (socket.AF_INET6, socket.SOCK_STREAM), (socket.AF_NETLINK, socket.SOCK_RAW),
                         (socket.AF_UNIX, socket.SOCK_STREAM)):
        print(family.name, kind.name, attempt(lambda: socket.socket(family, kind)))
    port = int((job.root / "probe-paths").read_text().split("\\n")[0])
    print("connect", attempt(lambda: socket.create_connection(("127.0.0.1", port), 2)))
    print("resolve", attempt(lambda: socket.create_connection(("localhost", port), 2)))
    return "tried"


def do_decides(job):
    """Each command of the file, with and without what says that this is a job."""
    for line in (job.root / "probe-paths").read_text().split("\\n"):
        if not line:
            continue
        start = f"import sys; sys.path[:] = {sys.path!r}; sys.argv[1:] = {line.split()!r}; " \\
                "from cleared.__main__ import main; sys.exit(main())"
        for bare in (False, True):
            env = {"CLEARED_HOME": "/usr/nowhere"} | ({"HOME": os.environ["HOME"]} if bare else os.environ)
            done = subprocess.run([sys.executable, "-I", "-c", start], env=env, capture_output=True, text=True,
                                  start_new_session=bare)
            print(line, "| bare" if bare else "| plain", done.returncode, (done.stderr or done.stdout).strip()[:150])
    return "tried"


def stray(made, name, hold):
    """A grandchild that has left the session, forgets who it is, and does not end when asked."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            held = hold_mark(made / name)
            argv = [sys.executable, "-I", "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
                    "time.sleep(600)"]
            if not hold:
                os.close(1), os.close(2)
            os.execve(sys.executable, argv, {})
        os._exit(0)
    os.wait()
    while not (made / name).exists():
        time.sleep(0.01)


def do_strays(job):
    stray(job.root / "made", "loose", False)
    stray(job.root / "made", "holds", True)
    return "two are left"


def do_stubborn(job):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stray(job.root / "made", "loose", True)
    held = hold_mark(job.root / "made" / "self")
    while True:
        time.sleep(1)


def do_tells(job):
    """Print what a file says, in small pieces."""
    data = (job.root / "probe-paths").read_bytes()
    for at in range(0, len(data), 211):
        os.write(1, data[at:at + 211])
        time.sleep(0.001)
    return data.decode().split("\\n")[0]
'''
_NAMES = (
    "nothing",
    "fails",
    "silent",
    "slow",
    "limited",
    "waits",
    "counts",
    "environ",
    "loud",
    "says",
    "echoes",
    "steers",
    "binary",
    "input",
    "where",
    "killed",
    "absent",
    "docs",
    "raises",
    "reads",
    "asks",
    "writes",
    "dials",
    "decides",
    "strays",
    "stubborn",
    "tells",
    "runs",
    "slow_talker",
)


def plug_in(folder: Path, module: str, text: str, names: Iterable[str]) -> Path:
    """A distribution with job types, as an installed one lies on the path."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(text)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {module}:{name}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[cleared.jobs]\n{lines}")
    return folder


def probes(ws: Workspace, folder: Path) -> Path:
    """The plug-in, and a workspace whose settings name its kinds; they are committed, and a job may make ``made/``."""
    plug_in(folder, "probe_kinds", HOLD_MARK + PROBES, _NAMES)
    ws.config(f"loop.plugins=[{', '.join(_NAMES)}]")
    (ws.root / "made").mkdir()
    return folder
