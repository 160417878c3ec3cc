"""What the machine does to a command: git's state and settings, locks, signals, disks, two at once. Row I2."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import (
    ATTESTED,
    LOG,
    QUEUE,
    Workspace,
    chase,
    command,
    copy_books,
    fails,
    here,
    no_traceback,
    nothing_posted,
    refused,
    unchanged,
)
from kill_points import EVERY
from patience import PATIENCE
from stepped import list_steps, run_stepped

POST = 'journal_add_double("2025-01-03", "GITHUB", 5020, 1010, "4.00")'
SLOW = "for i in range(10 ** 9):\n    ctx_today()\n"


# -- git --------------------------------------------------------------------------------------------------------------


def test_no_git(ws: Workspace, tmp_path: Path) -> None:
    """Bad input: no git on the PATH: exit 4, says what is missing and how to get it."""
    bare = tmp_path / "bin"
    bare.mkdir()
    environment = os.environ | {"PATH": str(bare)}
    with unchanged(ws):
        for argv in (["agent", "run", "ingest"], ["queue", "list"], ["check"]):
            refused(ws.process(*argv, env=environment), 4, "git")
    refused(command("init", str(tmp_path / "new"), env=environment), 4, "git")
    assert not (tmp_path / "new").exists()


def test_no_repository(ws: Workspace) -> None:
    """Bad input: a workspace without .git, and one with a broken .git."""
    (ws.root / ".git").rename(ws.root / "away")
    refused(ws("agent", "run", "ingest"), 4, "git")
    refused(ws("queue", "list"), 4, "git")
    (ws.root / ".git").write_text("gitdir: /nowhere\n")
    refused(ws("agent", "run", "ingest"), 4, "git")


def test_a_repository_around_the_workspace(ws: Workspace, tmp_path: Path) -> None:
    """Bad input: the workspace must be the top of its own repository, or it is said."""
    outer = tmp_path / "outer"
    outer.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=outer, check=True)
    shutil.copytree(ws.root, outer / "inner", ignore=shutil.ignore_patterns(".git", ".cleared"))
    done = here("agent", "run", "ingest", "-C", str(outer / "inner"))
    refused(done, 4)


def test_no_commit_yet(ws: Workspace) -> None:
    """Bad input: a repository without a commit."""
    shutil.rmtree(ws.root / ".git")
    subprocess.run(["git", "init", "-q"], cwd=ws.root, check=True)
    refused(ws("agent", "run", "ingest"), 4, "commit")
    refused(ws("queue", "list"), 4, "commit")


@pytest.mark.parametrize("state", ["merge", "rebase", "cherry-pick", "detached"])
def test_a_repository_that_is_busy_with_something(posted: Workspace, state: str) -> None:
    """Bad input: in the middle of a merge, a rebase, a cherry-pick; a detached HEAD: refused, reading still works."""
    posted.drop("more.csv", chase(("02/03/2025", "TEA", "-3.00")))
    posted.put("notes.txt", "one\n")
    posted.commit("notes.txt")
    posted.git("checkout", "-q", "-b", "other", "HEAD^")
    posted.put("notes.txt", "two\n")
    posted.commit("notes.txt")
    posted.git("checkout", "-q", "-")
    if state == "detached":
        posted.git("checkout", "-q", "--detach")
    else:
        posted.git(state, "other", check=False)
    before = posted.state()
    done = posted("agent", "run", "ingest")
    refused(done, 4, "HEAD" if state == "detached" else state.split("-")[0])
    refused(posted("journal", "void", "2025-01-001", "--reason", "x"), 4)
    assert posted.state() == before
    assert len(posted.entries()) == 4 and posted("queue", "list", "--json").code == 0
    assert (posted.root / "import/more.csv").exists()


def test_hostile_git_settings(ws: Workspace, tmp_path: Path) -> None:
    """Bad input: hooks, fsmonitor, signing, filters, autocrlf, aliases, in the repository and for the user: nothing of
    it runs, no byte differs."""
    marks = tmp_path / "marks"
    marks.mkdir()
    evil = tmp_path / "evil"
    evil.write_text(f'#!/bin/sh\ntouch "{marks}/$(basename "$0")-$$"\nexit 1\n')
    evil.chmod(0o755)
    for hook in (
        "pre-commit",
        "commit-msg",
        "post-commit",
        "reference-transaction",
        "post-checkout",
        "post-index-change",
    ):
        shutil.copy(evil, ws.put(f".git/hooks/{hook}", ""))
        (ws.root / f".git/hooks/{hook}").chmod(0o755)
    ws.put(".git/info/attributes", "* text eol=crlf filter=evil\n")
    for scope in ([], ["--global"]):
        for key, value in {
            "core.fsmonitor": str(evil),
            "core.hooksPath": str(ws.root / ".git/hooks"),
            "core.autocrlf": "true",
            "commit.gpgsign": "true",
            "gpg.program": str(evil),
            "filter.evil.clean": str(evil),
            "filter.evil.smudge": str(evil),
            "filter.evil.required": "true",
            "core.pager": str(evil),
            "core.editor": str(evil),
            "core.sshCommand": str(evil),
            "credential.helper": str(evil),
            "alias.log": "!false",
            "log.showSignature": "true",
            "color.ui": "always",
            "user.useConfigOnly": "true",
        }.items():
            subprocess.run(["git", "config", *scope, key, value], cwd=ws.root, check=True)
    environment = os.environ | {"GIT_EXTERNAL_DIFF": str(evil), "GIT_PAGER": str(evil), "GIT_ASKPASS": str(evil)}
    ws.drop("a.csv", chase(("01/03/2025", "GITHUB", "-4.00")).replace("\n", "\r\n"))
    done = ws.process("agent", "run", "ingest", env=environment)
    assert done.code == 0, done
    assert ws.process("check", env=environment).code == 0
    for argv in (["queue", "list"], ["run", "list"], ["journal", "void", "2025-01-001", "--reason", "x"]):
        assert ws.process(*argv, env=environment).code == 0
    refused(command("init", str(ws.root), env=environment), 4)
    assert list(marks.iterdir()) == []
    assert b"\r" not in (ws.root / "books/2025/01/journal.csv").read_bytes()
    blob = subprocess.run(
        ["git", "cat-file", "blob", "HEAD:import/processed/a.csv"], cwd=ws.root, check=True, capture_output=True
    ).stdout
    assert blob == (ws.root / "import/processed/a.csv").read_bytes() and b"\r\n" in blob


def test_git_environment_from_elsewhere(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad input: GIT_DIR, GIT_INDEX_FILE and friends of another repository (as in a hook) lead nowhere else."""
    other = tmp_path / "other"
    other.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=other, check=True)
    ws.drop("a.csv")
    before = sorted(p.name for p in (other / ".git").rglob("*"))
    environment = os.environ | {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"),
        "GIT_CEILING_DIRECTORIES": "/",
    }
    done = ws.process("agent", "run", "ingest", env=environment)
    assert done.code == 0, done
    assert sorted(p.name for p in (other / ".git").rglob("*")) == before
    assert len(ws.entries()) == 4
    ws.in_order()


def test_the_users_own_work_is_left_alone(ws: Workspace) -> None:
    """A run: staged and unstaged changes of the user's own files are neither committed nor lost."""
    ws.put("notes.txt", "one\n")
    ws.commit("notes.txt")
    ws.put("notes.txt", "two\n")
    ws.git("add", "notes.txt")
    ws.put("notes.txt", "three\n")
    ws.put("new.txt", "new\n")
    ws.git("add", "-N", "new.txt")
    staged = ws.git("diff", "--cached")
    ws.drop("a.csv")
    assert ws.run("ingest")["result"]["imported"] == 4
    assert ws.read("notes.txt") == "three\n" and ws.git("diff", "--cached") == staged
    assert "notes.txt" not in ws.git("show", "--name-only", "--format=", "HEAD")


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (LOG, "x"),
        (QUEUE, "x"),
        ("books/2025/01/journal.csv", "x"),
        ("accounts/chart-of-accounts.csv", "x"),
        ("books/bank/checking/2025-01.csv", "x"),
        ("books/periods.csv", "through,state,by,at,reason,digest\n"),
    ],
)
def test_managed_files_that_differ(posted: Workspace, path: str, data: str) -> None:
    """A run: a managed file that differs from HEAD: refused, with the remedy, by runs and decisions."""
    full = posted.root / path
    posted.put(path, (posted.read(path) if full.exists() else "") + data)
    posted.drop("more.csv", chase(("02/03/2025", "TEA", "-3.00")))
    with unchanged(posted):
        refused(posted("agent", "run", "ingest"), 4, path, "git checkout HEAD -- FILE")
        refused(posted("journal", "void", "2025-01-001", "--reason", "x"), 4, path)
    assert posted("check").code == 1


def test_head_moves_while_a_script_runs(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run: somebody commits by hand meanwhile: it runs once more, on the new commit."""
    from cleared.runs.attempt import Attempt

    ws.drop("a.csv")
    original, moved = Attempt.execute_script, []

    def execute(self: Attempt) -> object:
        result = original(self)
        if not moved:
            ws.put("notes.txt", "x")
            moved.append(ws.commit("notes.txt"))
        return result

    monkeypatch.setattr(Attempt, "execute_script", execute)
    done = ws("agent", "run", "ingest", "--json")
    assert done.code == 0 and "running it again" in done.err
    assert ws.git("rev-parse", "HEAD^").strip() == moved[0]
    assert len(ws.entries()) == 4
    ws.in_order()


# -- one writer at a time --------------------------------------------------------------------------------------------


@contextmanager
def held(ws: Workspace) -> Iterator[None]:
    """The writer lock, as another process holds it."""
    holder = (
        "import sys, time\nfrom pathlib import Path\nfrom cleared.workspace.lock import writer_lock\n"
        f"with writer_lock(Path({str(ws.root / '.cleared')!r}), 0, 'a long job'):\n"
        "    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == b"held\n"
    try:
        yield
    finally:
        process.communicate()


def test_another_process_holds_the_lock(posted: Workspace) -> None:
    """Bad input: exit 5 after lock.wait_seconds, saying who; nothing changed; reading and dry runs do not wait."""
    posted.config("lock.wait_seconds=0.3")
    posted.drop("more.csv", chase(("02/03/2025", "TEA", "-3.00")))
    with held(posted), unchanged(posted):
        done = posted("agent", "run", "ingest")
        assert done.code == 5 and "a long job (process" in done.err and "lock.wait_seconds" in done.err
        assert "(it was 0.3)" in done.err
        no_traceback(done)
        assert posted("agent", "run", "ingest", "--json").json["error"]["exit_code"] == 5
        assert posted("journal", "void", "2025-01-001", "--reason", "x").code == 5
        assert posted("period", "close", "2024-12").code == 5
        assert posted("queue", "list").code == 0 and posted("check").code == 0
        assert posted.run("ingest", "--dry-run")["result"]["imported"] == 1
    assert posted.run("ingest")["result"]["imported"] == 1


def test_two_runs_at_once(ws: Workspace) -> None:
    """A run: the second one waits for the first and then sees its books: nothing twice."""
    ws.drop("a.csv")
    processes = [ws.start("agent", "run", "ingest") for _ in range(3)]
    results = []
    for process in processes:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        results.append(json.loads(out)["imported"])
    assert sorted(results) == [0, 0, 4]
    assert len(ws.entries()) == 4
    ws.in_order()


def test_a_stale_lock_file_holds_nobody_up(ws: Workspace) -> None:
    """A killed command's lock file is only a file."""
    ws.put(".cleared/lock", '{"pid": 1, "what": "agent run x", "since": "2020-01-01T00:00:00Z"}')
    assert ws.script(POST)["entries"]
    ws.put(".cleared/lock", b"\xff\x00garbage")
    assert ws.script(POST)["entries"]


# -- Ctrl-C ----------------------------------------------------------------------------------------------------------


def interrupt(process: subprocess.Popen[bytes], said: bytes) -> tuple[int, bytes]:
    """Ctrl-C as soon as the process has said this on stderr."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if said in line:
            break
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=PATIENCE)[1]
    return process.returncode, b"".join(lines) + err


def test_ctrl_c_in_a_run(ws: Workspace) -> None:
    """Bad input: Ctrl-C while the script runs: 130, one line, nothing changed, no process left."""
    ws.agent("probe", f"{POST}\nctx_log('now')\n{SLOW}")
    with unchanged(ws):
        code, err = interrupt(ws.start("agent", "run", "probe"), b"now")
        assert code == 130, err
        assert b"interrupted; nothing was changed" in err and b"Traceback" not in err
    assert ws.entries() == []
    [run] = ws.json("run", "list")
    assert run["status"] == "interrupted"
    assert ws.script(f'{POST}["entry_id"]')["result"] == "2025-01-001"


def test_ctrl_c_in_the_interpreter(ws: Workspace) -> None:
    """Bad input: Ctrl-C while the sandbox computes and the host waits for it."""
    ws.agent("probe", f"{POST}\nctx_log('now')\nwhile True:\n    pass")
    with unchanged(ws):
        code, err = interrupt(ws.start("agent", "run", "probe"), b"now")
        assert code == 130 and b"Traceback" not in err, err


def test_ctrl_c_while_waiting(ws: Workspace) -> None:
    """Bad input: Ctrl-C while another command holds the lock."""
    with held(ws), unchanged(ws):
        code, err = interrupt(ws.start("agent", "run", "ingest"), b"waiting for a long job")
        assert code == 130 and b"Traceback" not in err, err


@pytest.mark.slow
def test_ctrl_c_at_each_step(ws: Workspace, tmp_path: Path) -> None:
    """Bad input: Ctrl-C at any step of a run and its seal: all of it or nothing; what is said is true."""
    ws.drop("a.csv")
    fresh = copy_books(ws.root, tmp_path / "fresh")
    steps = list_steps(["agent", "run", "ingest", "-C", str(ws.root)], tmp_path / "steps")
    assert len(steps) > 4
    for at in range(0, len(steps), 1 if EVERY else 2):
        one = Workspace(copy_books(fresh, tmp_path / f"at-{at}"))
        nth = steps[: at + 1].count(steps[at])
        done = run_stepped(["agent", "run", "ingest", "-C", str(one.root)], steps[at], nth, signal.SIGINT)
        story = f"step {at}, {steps[at]}: {done}"
        assert b"Traceback" not in done.stderr and done.returncode in (0, 130), story
        posted = len(one.entries())
        assert posted in (0, 4), story
        assert b"nothing was changed" not in done.stderr or posted == 0, story
        assert one.run("ingest")["result"]["imported"] == 4 - posted, story
        assert len(one.entries()) == 4
        one.in_order()


# -- disks -----------------------------------------------------------------------------------------------------------


def limited(limit: int):  # type: ignore[no-untyped-def]
    """For a child: no file may grow beyond this (the nearest to a full disk that needs no mount)."""

    def apply() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return apply


@pytest.mark.parametrize("limit", [0, 100, 1_000, 3_000, 20_000])
def test_i2_writes_that_fail(ws: Workspace, limit: int) -> None:
    """I2: a write that fails leaves the prior state valid, says so, and the next run does the work, once."""
    ws.drop("a.csv", chase(*((f"01/{i % 28 + 1:02}/2025", f"SHOP {i}", "-1.00") for i in range(100))))
    before = ws.state()
    done = ws.process("agent", "run", "ingest", preexec_fn=limited(limit))
    no_traceback(done)
    assert done.code in (1, 4), done
    assert ws.state().changed_since(before) <= {ATTESTED, LOG, QUEUE}
    assert ws.entries() == []
    assert ws.run("ingest")["result"]["imported"] == 100
    assert len(ws.entries()) == 100
    ws.in_order()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB, where mounting is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def test_i2_a_full_disk(ws: Workspace, small_disk: Path) -> None:
    """I2: the disk is full: exit 4, nothing changed; when there is room again the run does its work."""
    root = small_disk / "books"
    copy_books(ws.root, root)
    full = Workspace(root)
    full.drop("a.csv")
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"\0" * 4096):
            pass
    before = full.state()
    for argv in (["agent", "run", "ingest"], ["queue", "list"], ["journal", "list"]):
        done = full.process(*argv)
        no_traceback(done)
        if argv[0] == "agent":
            assert done.code in (1, 4) and ("full" in done.err or "space" in done.err), done
        else:
            assert done.code == 0, done
    assert full.state().changed_since(before) <= {ATTESTED, LOG, QUEUE} and full.state().head == before.head
    filler.unlink()
    assert full.run("ingest")["result"]["imported"] == 4
    full.in_order()


def test_a_read_only_disk(ws: Workspace, small_disk: Path) -> None:
    """Bad input: a read-only disk: writing is refused with 4, reading works."""
    root = small_disk / "books"
    copy_books(ws.root, root)
    there = Workspace(root)
    there.drop("a.csv")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        with unchanged(there):
            refused(there.process("agent", "run", "ingest"), 4, "read-only")
            refused(there.process("journal", "void", "2025-01-001", "--reason", "x"), 4, "read-only")
            for argv in (
                ["queue", "list"],
                ["journal", "list"],
                ["check"],
                ["agent", "list"],
                ["run", "list"],
            ):
                done = there.process(*argv)
                assert done.code == 0, done
            refused(command("init", str(small_disk / "new")), 4, "read-only")
            assert there.process("agent", "run", "ingest", "--dry-run").code == 0
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


def test_output_that_nobody_reads(posted: Workspace) -> None:
    """Command line: ``cleared journal list | head -1`` and a closed stdout end quietly."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cleared", "journal", "list", "-C", str(posted.root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=PATIENCE) in (0, 141)
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()


@pytest.mark.slow
def test_an_ascii_terminal(posted: Workspace) -> None:
    """Command line: a terminal that knows no UTF-8 gets escapes, not a traceback."""
    posted.drop("b.csv", chase(("02/03/2025", "Bäckerei ☕", "-3.00")))
    posted.run("ingest")
    for encoding in ("ascii", "latin-1"):
        environment = os.environ | {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"}
        for argv in (["journal", "list"], ["queue", "list"], ["journal", "list", "--json"]):
            done = subprocess.run(
                [sys.executable, "-m", "cleared", *argv, "-C", str(posted.root)],
                env=environment,
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr


# -- the runtime's own folder ----------------------------------------------------------------------------------------


def test_the_runtimes_own_folder_may_go(posted: Workspace) -> None:
    """ARCHITECTURE: .cleared/ can be deleted at any time; a damaged trace database is set aside."""
    shutil.rmtree(posted.root / ".cleared")
    assert posted.script(POST)["entries"]
    posted.put(".cleared/runs.db", b"not a database" * 100)
    assert posted.script(POST, name="again")["entries"]
    assert [r["agent"] for r in posted.json("run", "list")][:1]
    posted.in_order()


def test_the_runtimes_own_folder_in_the_way(ws: Workspace) -> None:
    """Bad input: .cleared is a file, or a link to somewhere else: refused, not followed."""
    shutil.rmtree(ws.root / ".cleared", ignore_errors=True)
    (ws.root / ".cleared").write_text("x")
    refused(ws("agent", "run", "ingest"), 4, ".cleared")
    (ws.root / ".cleared").unlink()
    elsewhere = ws.root.parent / "elsewhere"
    elsewhere.mkdir()
    (ws.root / ".cleared").symlink_to(elsewhere)
    refused(ws("agent", "run", "ingest"), 4, ".cleared")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("path", ["books", "queue", "logs", "import/processed", "books/bank"])
def test_links_in_place_of_folders_are_not_written_through(ws: Workspace, path: str) -> None:
    """Bad input: a folder of the books that is a link out of the workspace."""
    elsewhere = ws.root.parent / "elsewhere"
    elsewhere.mkdir()
    shutil.rmtree(ws.root / path, ignore_errors=True)
    (ws.root / path).symlink_to(elsewhere)
    ws.drop("a.csv") if path != "import/processed" else (ws.root / "import/a.csv").write_text(
        chase(("01/03/2025", "GITHUB", "-4.00"))
    )
    done = ws("agent", "run", "ingest")
    assert done.code in (1, 4), done
    no_traceback(done)
    assert list(elsewhere.iterdir()) == []
    assert ws.entries() == []


def test_a_lock_is_not_inherited(ws: Workspace) -> None:
    """The lock is free when the command has ended, whatever it started."""
    ws.script(POST)
    with (ws.root / ".cleared/lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_configurations_that_are_wrong(ws: Workspace) -> None:
    """Config: every problem at once, with file, line and key, and the nearest known key; exit 4 for every command."""
    good = ws.read("config.yaml")
    for text, *said in (
        (good.replace("timezone: UTC", "timezone: Mars/Olympus"), "config.yaml:", "business.timezone"),
        (good.replace("thresholds:", "treshholds:"), "treshholds", "thresholds"),
        (good.replace("auto_confirm: 0.95", "auto_confirm: 1.5"), "thresholds.auto_confirm"),
        (good.replace("currency: USD", "currency: DOLLAR"), "business.currency"),
        (good.replace("  wait_seconds: 60", "  wait_seconds: soon"), "lock.wait_seconds"),
        (good.replace("paths:\n  books: books", "paths:\n  books: ../x"), "paths.books"),
        (good.replace("ledger_account: 1010", "ledger_account: cash"), "ledger_account"),
        (good + "\n: :\n - [", "config.yaml:"),
        ("just text\n", "config.yaml"),
        ("\0", "config.yaml"),
        ("a: &a [*a]\n", "config.yaml"),
        ("business: !!python/object/apply:os.system [id]\n", "config.yaml"),
    ):
        ws.put("config.yaml", text)
        for argv in (["agent", "run", "ingest"], ["queue", "list"]):
            refused(ws(*argv), 4, *said)
    ws.put("config.yaml", b"\xff\xfe\x00")
    refused(ws("queue", "list"), 4, "config.yaml")
    ws.put("config.yaml", good)
    with unchanged(ws):
        refused(ws("config", "set", "thresholds.auto_confirm", "2"), 4, "thresholds.auto_confirm")
        refused(ws("config", "set", "no.such", "2"), 2, "no.such")
    ws.ok("config", "set", "thresholds.auto_confirm", "0.5")
    assert ws.read("config.yaml") == good.replace("auto_confirm: 0.95", "auto_confirm: 0.5"), "comments survive"


def test_a_chart_that_is_wrong(ws: Workspace) -> None:
    """Bad input: a damaged chart of accounts: file, line, column, remedy; a missing one, too."""
    good = ws.read("accounts/chart-of-accounts.csv")
    for text, *said in (
        (good.replace("1020,", "10x0,", 1), "accounts/chart-of-accounts.csv:3", "account_id"),
        (good.replace(",asset,", ",cash,", 1), "account_type"),
        (good + "1010,Twice,asset,,,\n", "1010", "already"),
        (good + "5999,Orphan,expense,5998,,\n", "5998"),
        (good + "5999,too,few\n", "chart-of-accounts.csv"),
        ("", "chart-of-accounts.csv"),
    ):
        ws.put("accounts/chart-of-accounts.csv", text)
        ws.commit("accounts/chart-of-accounts.csv")
        refused(ws("accounts", "list"), 4, *said)
        ws.agent("probe", POST)
        with nothing_posted(ws):
            done = ws("agent", "run", "probe")
            assert done.code in (1, 4), done
            no_traceback(done)
            for text in said:
                assert text in done.err, (text, done.err)
    ws.git("rm", "-q", "accounts/chart-of-accounts.csv")
    ws.git("commit", "-q", "-m", "gone")
    refused(ws("accounts", "list"), 4, "missing")
    fails(ws, POST, "chart of accounts is missing")
