"""A workspace on disk and the real command to use it with; what tests need to say about refusals."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import preloaded
from patience import PATIENCE

from cleared.workspace.location import cleared_home

CLOCK = "2025-02-10T06:00:00Z"
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "User"), ("EMAIL", "user@example.com"))
}
GIT_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "commit.gpgsign=false", "maintenance.auto=false")
"""Of the git that a test starts: nothing that the repository names runs, nor one more process after each commit."""
CHASE_HEADER = "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #\n"
CARD_HEADER = "Transaction Date,Post Date,Description,Category,Type,Amount,Memo\n"


def chase(*rows: tuple[str, str, str] | tuple[str, str, str, str]) -> str:
    """A Chase checking CSV: rows of (MM/DD/YYYY, description, amount[, balance])."""
    out = [CHASE_HEADER]
    for row in rows:
        day, text, amount = row[:3]
        balance = row[3] if len(row) > 3 else ""  # type: ignore[misc]
        kind = ("DEBIT", "ACH_DEBIT") if amount.startswith("-") else ("CREDIT", "ACH_CREDIT")
        text = text.replace('"', '""')
        out.append(f'{kind[0]},{day},"{text}",{amount},{kind[1]},{balance},,\n')
    return "".join(out)


JANUARY = chase(
    ("01/03/2025", "GITHUB *PRO", "-4.00", "996.00"),
    ("01/06/2025", "ACME INVOICE 12", "1500.00", "2496.00"),
    ("01/09/2025", "AWS EMEA", "-45.10", "2450.90"),
    ("01/10/2025", "COFFEE", "-4.50", "2446.40"),
)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout, which must be one JSON value and nothing else."""
        return json.loads(self.out)


@dataclass(frozen=True)
class State:
    """All that a refusal must leave as it was: the branch, every file but git's and the runtime's own."""

    head: str
    files: Mapping[str, bytes]

    def changed_since(self, before: State) -> set[str]:
        return {p for p in {*self.files, *before.files} if self.files.get(p) != before.files.get(p)}


def command(*argv: str, stdin: bytes | None = None, **options: Any) -> Done:
    """The real ``cleared``, in a process of its own."""
    if "preexec_fn" in options:  # limits from before the start
        # -B: where files may not grow, Python would leave half a .pyc in the package and never start again from it.
        program = [sys.executable, "-B", "-m", "cleared", *argv]
        done = subprocess.run(program, capture_output=True, input=stdin, timeout=PATIENCE, check=False, **options)
    else:
        done = preloaded.run(argv, input=stdin, **options)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def here(*argv: str) -> Done:
    """The same in this process: what ``cleared`` does but for starting Python."""
    from cleared.cli.command_runner import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _same_signals():
        code = run(list(argv))
    return Done(int(code), out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _same_signals() -> Iterator[None]:
    """A command that serves ends with its signals ignored; this process lives on, and its children would inherit it."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            if signal.getsignal(number) != handler:
                signal.signal(number, handler)


def wait_for_packing(folder: Path) -> None:
    """Wait until git packs in no repository in or under the folder: it does so in the background, for a moment after a
    command has ended, and removes folders meanwhile."""
    from cleared.git.housekeeping import LOCK

    for parent, folders, _ in os.walk(folder):
        if ".git" in folders and (lock := Path(parent, ".git", LOCK)).exists():
            with lock.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX)
        folders[:] = [each for each in folders if each != ".git"]


def unpack_objects(root: Path) -> None:
    """Let all of git's objects be loose files."""
    packs = root / ".git/objects/pack"
    for file in [*packs.iterdir()]:
        file.rename(root / ".git" / file.name)
    for pack in [*(root / ".git").glob("*.pack")]:
        with pack.open("rb") as file:
            subprocess.run(["git", "unpack-objects", "-q"], cwd=root, stdin=file, check=True)
    for file in [*(root / ".git").glob("pack-*")]:
        file.unlink()


def remove_tree(folder: Path) -> None:
    """Remove a folder, if there is one; in it there may be repositories."""
    if folder.exists():
        wait_for_packing(folder)
        shutil.rmtree(folder)


Tree = list[tuple[str, os.stat_result, bytes | str | None]]
"""Folders (None), files with what is in them, and links with where they lead, each folder before what is in it."""


def read_tree(root: Path) -> Tree:
    """What is in a folder now, for ``write_tree``."""
    wait_for_packing(root)
    found: Tree = [("", root.stat(), None)]
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(f"{root}/{folder}") as entries:
            for entry in entries:
                inner, content = f"{folder}{entry.name}", None
                if entry.is_symlink():
                    content = os.readlink(entry.path)
                elif entry.is_dir():
                    waiting.append(f"{inner}/")
                else:
                    content = Path(entry.path).read_bytes()
                found.append((inner, entry.stat(follow_symlinks=False), content))
    return found


_read_tree_once = cache(read_tree)


def write_tree(tree: Tree, to: Path) -> None:
    """As ``copytree`` does it, with modes and times, in a third of the time."""
    to.parent.mkdir(parents=True, exist_ok=True)
    for inner, stat, content in tree:
        path = f"{to}/{inner}"
        if content is None:
            os.mkdir(path)
        elif isinstance(content, str):
            os.symlink(content, path)
        else:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            os.write(descriptor, content)
            os.fchmod(descriptor, stat.st_mode & 0o7777)
            os.utime(descriptor, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            os.close(descriptor)
    for inner, stat, content in reversed(tree):
        if content is None:
            os.chmod(f"{to}/{inner}", stat.st_mode & 0o7777)
            os.utime(f"{to}/{inner}", ns=(stat.st_atime_ns, stat.st_mtime_ns))


def copy_books(books: Path, to: Path, *, stay: bool = False) -> Path:
    """A copy, trusted as ``cleared trust`` would have it: nothing else makes approvals count in one. It stands in for
    the books that it was copied from: their events are its own.

    Where this test's machine has no key yet, it gets that of the machine that made the books (the starting point).
    ``stay``: those books are as they are for all tests, and are read once.
    """
    write_tree(_read_tree_once(books) if stay else read_tree(books), to)
    cleared_home().mkdir(mode=0o700, parents=True, exist_ok=True)
    for made in [each for name in ("run-key*", "approval-key*") for each in (books.parent / "cleared").glob(name)]:
        if not (cleared_home() / made.name).exists():
            shutil.copy2(made, cleared_home())
    trust_books(to)
    origin = books / ".git/cleared-origin"
    if origin.is_file():
        shutil.copy2(origin, to / ".git/cleared-origin")
    return to


def trust_books(root: Path) -> None:
    """Pin a clone, a copy, or another's workspace to the books that it says it holds, on this test's machine, and trust
    whoever approved its settings."""
    from cleared.trust.approval_record import CONFIG, WORKSPACE, try_parse_record
    from cleared.trust.keys import own_public_key
    from cleared.trust.trust_store import trust_reviewers
    from cleared.trust.workspace_pin import identify_workspace, pin_clone

    workspace = identify_workspace(root, (root / WORKSPACE).read_bytes()).claimed
    pin_clone(root, workspace)
    record = try_parse_record((root / CONFIG).read_bytes()) if (root / CONFIG).is_file() else None
    if record is not None and record.key != own_public_key(root):
        trust_reviewers(workspace, {record.key: record.by})


def name_shown(argv: tuple[str, ...], told: Done) -> list[str] | None:
    """The command again, with the digest of what it was told that it saw; None where it was not asked for one."""
    named = re.search(r"In a script: cleared .*?(?:--digest ([0-9a-f]+)|(P[0-9]+-[0-9a-f]+))", told.err)
    if told.code != 3 or named is None:
        return None
    return [*argv, "--digest", named[1]] if named[1] else [*argv[:2], named[2], *argv[3:]]


def take_shown(ws: Workspace, *argv: str) -> Done:
    """A command that approves, as a script says it that has looked: by the digest that it was told of what it saw."""
    told = ws(*argv)
    words = name_shown(argv, told)
    return told if words is None else ws(*words)


def take_ok(ws: Workspace, *argv: str) -> Done:
    """The same, which must work."""
    done = take_shown(ws, *argv)
    assert done.code == 0, (argv, done)
    return done


class Workspace:
    """A workspace on disk, used through the command line and the file system only."""

    def __init__(self, root: Path) -> None:
        self.root = root

    # -- commands -----------------------------------------------------------------------------------------------

    def __call__(self, *argv: str) -> Done:
        return here(*argv, "-C", str(self.root))

    def process(self, *argv: str, **options: Any) -> Done:
        return command(*argv, "-C", str(self.root), **options)

    def start(self, *argv: str, **options: Any) -> subprocess.Popen[bytes]:
        """A process that is waited for elsewhere."""
        return preloaded.Preloaded(
            [*argv, "-C", str(self.root)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **{"stdin": subprocess.DEVNULL, **options},
        )

    def ok(self, *argv: str) -> Done:
        done = self(*argv)
        assert done.code == 0, (argv, done)
        return done

    def json(self, *argv: str) -> Any:
        return self.ok(*argv, "--json").json

    def run(self, name: str, *options: str, code: int = 0) -> dict[str, Any]:
        """``agent run NAME --json``: the one object it prints."""
        done = self("agent", "run", name, "--json", *options)
        assert done.code == code, done
        found = done.json
        assert isinstance(found, dict)
        return found

    def script(self, body: str, *options: str, code: int = 0, name: str = "probe", header: str = "") -> dict[str, Any]:
        """Commit an agent with this body and run it."""
        self.agent(name, body, header)
        return self.run(name, *options, code=code)

    # -- files --------------------------------------------------------------------------------------------------

    def git(self, *args: str, check: bool = True) -> str:
        safe = [part for setting in GIT_SETTINGS for part in ("-c", setting)]
        done = subprocess.run(
            ["git", *safe, *args], cwd=self.root, env=os.environ | IDENTITY, capture_output=True, check=False
        )
        assert not check or done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("utf-8", "surrogateescape")

    def head(self) -> str:
        """The commit; read from the files, as it is asked for often."""
        head = (self.root / ".git/HEAD").read_text().strip()
        ref = self.root / ".git" / head.removeprefix("ref: ")
        if not head.startswith("ref: "):
            return head
        return ref.read_text().strip() if ref.is_file() else self.git("rev-parse", "HEAD").strip()

    def put(self, path: str, data: str | bytes) -> Path:
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(data.encode() if isinstance(data, str) else data)
        return full

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def read_events(self) -> str:
        """The lines of all events that scripts emitted."""
        return "".join(path.read_text(encoding="utf-8") for path in sorted(self.root.glob("logs/events-*.jsonl")))

    def drop(self, name: str, data: str | bytes = JANUARY) -> Path:
        """A bank file in the drop folder."""
        return self.put(f"import/{name}", data)

    def commit(self, *paths: str, message: str = "by hand") -> str:
        self.git("add", "-f", "--", *paths)
        self.git("commit", "-q", "-m", message, "--", *paths)
        return self.head()

    def approve(self, *paths: str) -> list[str]:
        """Records of approval for scripts as they lie there, signed with this test's own key; not committed.

        What a test is about may be a script that no gate would let pass.
        """
        from cleared.primitives import primitive_registry
        from cleared.trust.approval_record import WORKSPACE, ApprovalRecord, digest_of, record_path, sign_record
        from cleared.trust.keys import own_key

        granted = re.compile(r"loop_enqueue:[\w:]+|llm\.\w+:[\d.]+")
        workspace = self.root / WORKSPACE
        key = own_key(self.root, create=True)
        assert key is not None
        made: list[str] = []
        for path in paths:
            data = (self.root / path).read_bytes()
            digest, kinds = digest_of(data), granted.findall(data.decode("utf-8", "replace"))
            record = ApprovalRecord(
                "script",
                path,
                digest,
                "tester",
                CLOCK,
                workspace.read_text().strip(),
                grants=(*primitive_registry(), *kinds),
                proposal="P0",
            )
            self.put(record_path(path, digest), sign_record(record, key).render())
            made.append(record_path(path, digest))
        return made

    def agent(self, name: str, body: str, header: str = "", *, commit: bool = True) -> str:
        """An agent with this body, approved; the number of lines before the body is the same for the same header."""
        path = f"agents/{name}.py"
        text = f'"""\nname: {name}\ntrigger: on_demand\n{header}"""\n{body}\n'
        known = (self.root / path).is_file() and self.read(path) == text
        if not known:
            self.put(path, text)
            if commit:
                self.commit(path, *self.approve(path), message=f"agent: {name}")
        return path

    def shared(self, name: str, body: str) -> str:
        path = f"scripts/{name}.py"
        self.put(path, body)
        self.commit(path, *self.approve(path), message=f"script: {name}")
        return path

    def config(self, *pairs: str) -> None:
        """Set ``key=value`` each, approved where it is policy."""
        for pair in pairs:
            key, value = pair.split("=", 1)
            self.ok("config", "set", key, value)

    def put_config(self, text: str) -> None:
        """``config.yaml`` as a person edits and then approves it."""
        self.put("config.yaml", text)
        take_ok(self, "config", "approve")

    def state(self) -> State:
        files = {}
        for folder, folders, names in os.walk(self.root):
            if Path(folder) == self.root:
                folders[:] = [f for f in folders if f not in (".git", ".cleared")]
            for name in names:
                path = Path(folder, name)
                inner = path.relative_to(self.root).as_posix()
                if path.is_symlink():
                    files[inner] = os.readlink(path).encode()
                elif path.is_file() and path.stat().st_size < 1 << 24:
                    files[inner] = path.read_bytes()
                else:
                    files[inner] = str(path.lstat().st_size).encode()
        return State(self.head(), files)

    # -- what it says -------------------------------------------------------------------------------------------

    def entries(self, *options: str) -> list[dict[str, Any]]:
        found = self.json("journal", "list", *options)
        assert isinstance(found, list)
        return found

    def cards(self, *options: str) -> list[dict[str, Any]]:
        found = self.json("queue", "list", *options)
        assert isinstance(found, list)
        return found

    def trailers(self) -> dict[str, str]:
        lines = self.git("log", "-1", "--format=%(trailers:only,unfold)").splitlines()
        return dict(line.split(": ", 1) for line in lines if line)

    def in_order(self, *untracked: str) -> None:
        """Every invariant holds, and nothing is left lying about but these files."""
        assert self.json("check") == {"ok": True, "violations": []}
        assert self.git("status", "--porcelain").splitlines() == [f"?? {path}" for path in untracked]


def environment(home: Path) -> dict[str, str]:
    """No user's git identity or settings, a fixed clock."""
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "CLEARED_CLOCK": CLOCK,
        "GIT_TERMINAL_PROMPT": "0",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }


@contextlib.contextmanager
def use_machine_of(root: Path) -> Iterator[None]:
    """The environment, and the home with its keys, of the machine that makes books of which tests get copies. Each
    has its own folder: of two that are made on one machine the newer settings are those that count."""
    import pytest

    with pytest.MonkeyPatch.context() as patch:
        for key, value in environment(root.parent).items():
            patch.setenv(key, value)
        patch.setenv("CLEARED_HOME", str(root.parent / "cleared"))
        yield


# -- what a refusal is ------------------------------------------------------------------------------------------------

LOG = "logs/agent-log-2025-02.csv"
QUEUE = "queue/2025-02.jsonl"
ATTESTED = "logs/attestations-2025-02.jsonl"


def no_traceback(done: Done) -> None:
    """A script's own traceback names agents/ or scripts/; one of the program never shows."""
    for line in (done.out + done.err).splitlines():
        assert not re.search(r'File "(?!agents/|scripts/)', line), done.err


def refused(done: Done, code: int, *said: str) -> None:
    """The command said no: this exit code, one paragraph with all of these texts, nothing on stdout, no traceback.
    Which settings wait for approval may be said before."""
    assert done.code == code, done
    no_traceback(done)
    assert done.out == "" or "error" in done.json, done.out
    said_first = [line for line in done.err.splitlines() if not line.startswith("config.yaml: not approved yet")][:1]
    assert said_first and said_first[0].startswith(("cleared: ", "Usage: ")), done.err
    for text in said:
        assert text in done.err, (text, done.err)


@contextlib.contextmanager
def unchanged(ws: Workspace) -> Iterator[State]:
    """Nothing outside ``.cleared/`` is touched: not the branch, not a byte of the working tree, not the index."""
    before, status, queue = ws.state(), ws.git("status", "--porcelain"), ws.root / "queue"
    yield before
    after = ws.state()
    assert after.changed_since(before) == set()
    assert after.head == before.head
    assert ws.git("status", "--porcelain") == status
    assert not list(queue.glob(".cleared-*.tmp"))


@contextlib.contextmanager
def nothing_posted(ws: Workspace) -> Iterator[State]:
    """A failed run may leave one ``log:`` commit, with log rows and a card; all else stays as it was."""
    before = ws.state()
    yield before
    after = ws.state()
    assert after.changed_since(before) <= {LOG, QUEUE, ATTESTED}, after.changed_since(before)
    for path in (LOG, QUEUE, ATTESTED):
        assert after.files.get(path, b"").startswith(before.files.get(path, b"")), "append-only"
    if after.head != before.head:
        shown = ws.git("log", "-1", "--format=%P%n%s%n%(trailers:only,unfold)%n--", "--name-only")
        said, paths = shown.split("\n--\n")
        parent, subject, *trailers = said.splitlines()
        assert parent == before.head and subject.startswith("log: "), shown
        names = {line.split(":")[0] for line in trailers if line}
        assert "Attempt" in names and "Event" not in names
        assert set(paths.split()) <= {LOG, QUEUE, ATTESTED}


def fails(ws: Workspace, body: str, *said: str, header: str = "", name: str = "probe") -> dict[str, Any]:
    """The script fails with exit 1 and an error that has all of these texts, a line and a remedy; nothing is posted."""
    ws.agent(name, body, header)
    with nothing_posted(ws):
        done = ws("agent", "run", name, "--json")
        assert done.code == 1, done
        no_traceback(done)
    found = done.json
    assert found["status"] == "failed" and found["entries"] == [] and found["result"] is None
    error = found["error"]
    whole = f"{error['file']}:{error['line']} {error['primitive']} {error['message']} {error['remedy']}"
    for text in said:
        assert text in whole, (text, whole)
    assert error["message"] in done.err
    assert [c for c in found["cards"] if c["kind"] == "failed_run"] or ws.cards(), "a card explains"
    return dict(found)


def journal_rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def csv_text(rows: Iterable[Iterable[str]]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
