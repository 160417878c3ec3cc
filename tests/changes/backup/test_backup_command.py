"""``cleared backup``: whole, sealed, read back, or not at all; and what is refused."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from backups import WORDS, all_files, back_up, other_machine, passphrase_file, restore
from harness import Workspace, command, here, refused, unchanged, unpack_objects
from terminals import run_on_terminal

pytestmark = pytest.mark.slow


def test_it_is_asked_for_twice_on_a_terminal_and_weak_ones_are_refused(ws: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "b.cleared"
    argv = ["backup", str(file)]
    for typed, why in (
        ([""], "no passphrase was typed"),
        (["short"], "too weak"),
        (["aaaaaaaaaaaaaaaaaaaa"], "too weak"),
        ([WORDS, "other words, quite other"], "not the same"),
    ):
        prompts = [("New passphrase of the backup: ", typed[0]), *(("again: ", each) for each in typed[1:])]
        code, shown = run_on_terminal(ws.root, argv, prompts)
        assert code in (2, 3) and why in shown and not file.exists(), shown
    code, shown = run_on_terminal(ws.root, argv, [("New passphrase of the backup: ", WORDS), ("again: ", WORDS)])
    assert code == 0 and WORDS not in shown and "found whole" in shown, shown
    wrong = ("assphrase of the backup: ", "wrong words, all of them")
    code, shown = run_on_terminal(tmp_path, ["restore", str(file), "new"], [wrong, wrong, wrong])
    assert code == 3 and "not the passphrase" in shown and not (tmp_path / "new").exists(), shown
    with other_machine(tmp_path / "machine"):
        code, shown = run_on_terminal(
            tmp_path, ["restore", str(file), "new"], [wrong, ("Wrong. Passphrase of the backup: ", WORDS)]
        )
    assert code == 0 and (tmp_path / "new/config.yaml").exists(), shown


def test_at_night_it_comes_from_a_file_or_the_environment(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    refused(ws("backup", str(one)), 3, "no terminal", "--passphrase-file", "CLEARED_BACKUP_PASSPHRASE")
    monkeypatch.setenv("CLEARED_BACKUP_PASSPHRASE", WORDS)
    assert ws.process("backup", str(one), "--json").json["commit"] == ws.head()
    monkeypatch.setenv("CLEARED_BACKUP_PASSPHRASE", "")
    refused(ws.process("backup", str(two)), 2, "is empty")
    words = passphrase_file(tmp_path)
    words.chmod(0o644)
    refused(ws("backup", str(two), "--passphrase-file", str(words)), 4, "others can read", "chmod 600")
    words.chmod(0o600)
    for text in ("", "\n", f"{WORDS}\n{WORDS}\n"):
        words.write_text(text)
        refused(ws("backup", str(two), "--passphrase-file", str(words)), 2, "one line of text")
    words.write_text("1234\n")
    refused(ws("backup", str(two), "--passphrase-file", str(words)), 2, "too weak")
    assert not two.exists()
    assert restore(one, tmp_path / "new", "--check").code == 2
    assert here("restore", str(one), "--check", "--passphrase-file", str(passphrase_file(tmp_path))).code == 0


def test_it_is_refused_in_the_workspace_over_a_file_and_in_a_job(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--passphrase-file", str(passphrase_file(tmp_path)))
    (tmp_path / "link").symlink_to(ws.root / "exports")
    (ws.root / "exports").mkdir()
    with unchanged(ws):
        for inside in (ws.root / "b", ws.root / "exports/b", ws.root / ".git/b", tmp_path / "link/b"):
            refused(ws("backup", str(inside), *words), 3, "within the workspace")
            assert not inside.exists()
        file = tmp_path / "b"
        file.write_bytes(b"mine")
        refused(ws("backup", str(file), *words), 3, "there is a file already", "--force")
        refused(ws("backup", str(tmp_path), *words), 3, "a folder of that name")
        refused(ws("backup", str(tmp_path / "no/b"), *words), 4, "no such file or directory")
        monkeypatch.setenv("CLEARED_JOB", "job_1")
        refused(ws("backup", str(tmp_path / "c"), *words), 3, "job_1")
        monkeypatch.delenv("CLEARED_JOB")
        assert file.read_bytes() == b"mine"
        ws.ok("backup", str(file), *words, "--force")
        assert file.read_bytes().startswith(b"cleared-backup 1\n")


def test_what_is_not_carried_is_named(ws: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (ws.root / "receipts").mkdir(exist_ok=True)
    (ws.root / "receipts/scans").symlink_to(outside)
    os.mkfifo(ws.root / "pipe")
    ws.put("sub/.git/config", "[core]\n")
    ws.put("sub/file", "carried\n")
    ws.put(".venv/pyvenv.cfg", "")
    ws.put(".venv/bin/python", "x")
    ws.put(f"receipts/{os.fsdecode(bytes([0xFF]))}.pdf", b"no text")
    done = ws("backup", str(tmp_path / "b"), "--passphrase-file", str(passphrase_file(tmp_path)))
    assert done.code == 0, done
    lines = [line for line in done.err.splitlines() if line.startswith("not in it: ")]
    assert len(lines) == 4 and all(
        any(name in line for line in lines) for name in ("scans", "pipe", "sub/.git", ".venv")
    )
    with other_machine(tmp_path / "machine"):
        done = restore(tmp_path / "b", tmp_path / "new")
    assert done.code == 0 and "not restored: receipts/scans, a link to" in done.err, done
    found = all_files(tmp_path / "new")
    assert found["sub/file"] == b"carried\n" and found[f"receipts/{os.fsdecode(bytes([0xFF]))}.pdf"] == b"no text"
    assert not {"receipts/scans", "pipe", "sub/.git/config", ".venv/bin/python"} & set(found)


def test_no_mark_in_a_commit_leaves_a_folder_out(ws: Workspace, tmp_path: Path) -> None:
    """Whoever can push can call receipts and books rebuildable; the content of some is on this machine alone."""
    marks = [
        f"{folder}/{name}" for folder in ("receipts", "books", "import") for name in ("CACHEDIR.TAG", "pyvenv.cfg")
    ]
    for mark in marks:
        ws.put(mark, "")
    ws.git("add", "-f", *marks)
    ws.git("commit", "-qm", "docs")
    ws.put("receipts/2f/photo.jpg", b"mine alone")
    done = ws("backup", str(tmp_path / "b"), "--passphrase-file", str(passphrase_file(tmp_path)))
    assert done.code == 0 and "not in it" not in done.err, done
    with other_machine(tmp_path / "machine"):
        assert restore(tmp_path / "b", tmp_path / "new").code == 0
    assert {"receipts/2f/photo.jpg", *marks} <= set(all_files(tmp_path / "new"))


def test_a_file_that_nobody_may_read_is_no_backup(ws: Workspace, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    ws.put("receipts/secret.pdf", b"x").chmod(0)
    done = ws("backup", str(tmp_path / "b"), "--passphrase-file", str(passphrase_file(tmp_path)))
    refused(done, 4, "receipts/secret.pdf", "cannot be read")
    assert not (tmp_path / "b").exists()


def test_a_full_disk_leaves_the_old_backup_and_nothing_half(posted: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "stick"
    folder.mkdir()
    words = ("--passphrase-file", str(passphrase_file(tmp_path)))
    posted.ok("backup", str(folder / "b"), *words)
    before = (folder / "b").read_bytes()
    posted.put("receipts/large.pdf", os.urandom(3 << 20))

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = posted.process("backup", str(folder / "b"), "--force", *words, preexec_fn=limit)
    refused(done, 4, "could not be written", os.strerror(errno.EFBIG))
    assert [p.name for p in folder.iterdir()] == ["b"] and (folder / "b").read_bytes() == before
    posted.ok("backup", str(folder / "b"), "--force", *words)
    with other_machine(tmp_path / "machine") as home:
        done = command("restore", str(folder / "b"), str(folder / "new"), *words, preexec_fn=limit)
    refused(done, 4, "nothing was restored", os.strerror(errno.EFBIG))
    assert [p.name for p in folder.iterdir()] == ["b"] and not home.exists()


def test_large_files_are_streamed(ws: Workspace, tmp_path: Path) -> None:
    large = ws.put("receipts/film.mov", b"")
    os.truncate(large, 200 << 20)
    tracemalloc.start()
    try:
        file = back_up(ws)
        with other_machine(tmp_path / "machine"):
            assert restore(file, tmp_path / "new").code == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "new/receipts/film.mov").stat().st_size == 200 << 20
    assert peak < 60 << 20, f"{peak:,} bytes at once"


@pytest.mark.parametrize("shape", ["detached", "merging", "worktree", "shallow", "sha256", "odd names"])
def test_any_state_of_git_goes_along(posted: Workspace, tmp_path: Path, shape: str) -> None:
    ws = posted
    if shape == "detached":
        ws.git("checkout", "-q", "--detach")
    elif shape == "merging":
        ws.git("switch", "-qc", "other")
        ws.put("notes.txt", "theirs\n")
        ws.commit("notes.txt")
        ws.git("switch", "-q", "main")
        ws.put("notes.txt", "ours\n")
        ws.commit("notes.txt")
        ws.git("merge", "other", check=False)
        assert "UU" in ws.git("status", "--porcelain") or "AA" in ws.git("status", "--porcelain")
    elif shape == "worktree":
        ws.git("worktree", "add", "-q", str(tmp_path / "second"), "-b", "second")
        ws = Workspace(tmp_path / "second")
    elif shape == "shallow":
        ws.git("clone", "-q", "--depth", "1", f"file://{ws.root}", str(tmp_path / "second"))
        ws = Workspace(tmp_path / "second")
    elif shape == "sha256":
        ws.git("init", "-q", "--object-format=sha256", str(tmp_path / "second"))
        ws = Workspace(tmp_path / "second")
        assert here("init", str(ws.root)).code == 0
    elif shape == "odd names":  # others may push such a branch: it was a traceback
        ws.git("switch", "-qc", "a\u2028b\x85c")
    status, head, log = ws.git("status", "--porcelain"), ws.git("rev-parse", "HEAD"), ws.git("log", "--format=%H")
    branch = ws.git("symbolic-ref", "-q", "HEAD", check=False)
    file = back_up(ws)
    with other_machine(tmp_path / "machine"):
        done = restore(file, tmp_path / "new")
        assert done.code == 0, done
        new = Workspace(tmp_path / "new")
        assert new.git("status", "--porcelain") == status
        assert (new.git("rev-parse", "HEAD"), new.git("log", "--format=%H")) == (head, log)
        assert new.git("symbolic-ref", "-q", "HEAD", check=False) == branch
        assert not new.git("fsck", "--full").strip()


def test_git_at_work_meanwhile_is_noticed(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cleared.changes.backup import workspace_backup

    made = workspace_backup.write_bundle

    def meanwhile(*args: object) -> None:
        made(*args)  # type: ignore[arg-type]
        posted.git("branch", "of-that-moment")

    monkeypatch.setattr(workspace_backup, "write_bundle", meanwhile)
    done = posted("backup", str(tmp_path / "b"), "--passphrase-file", str(passphrase_file(tmp_path)))
    refused(done, 5, "git changed the repository meanwhile")
    assert not (tmp_path / "b").exists()


def test_a_disk_that_does_not_keep_what_is_written_is_noticed(
    posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read back before it counts: the old backup stays."""
    from cleared.changes.backup import workspace_backup

    old, verify = back_up(posted).read_bytes(), workspace_backup.verify_backup

    def rot(written: Path, *more: object) -> None:
        data = bytearray(written.read_bytes())
        data[-20] ^= 1
        written.write_bytes(data)
        verify(written, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(workspace_backup, "verify_backup", rot)
    file = tmp_path / "books.cleared"
    done = posted("backup", str(file), "--force", "--passphrase-file", str(passphrase_file(tmp_path)))
    refused(done, 4, "cannot be used", str(file))
    assert file.read_bytes() == old and not list(tmp_path.glob(".cleared-*"))


def test_a_clone_that_nobody_trusts_is_not_trusted_by_its_backup(posted: Workspace, tmp_path: Path) -> None:
    with other_machine(tmp_path / "machine"):
        posted.git("clone", "-q", str(posted.root), str(tmp_path / "clone"))
        clone = Workspace(tmp_path / "clone")
        file = back_up(clone)
    with other_machine(tmp_path / "third"):
        done = restore(file, tmp_path / "new", "--json")
        assert done.code == 0 and done.json["trusted"] is False and done.json["commit"] == posted.head()
        refused(Workspace(tmp_path / "new")("agent", "run", "ingest"), 3, "cleared trust")


def test_a_damaged_history_is_no_backup(posted: Workspace, tmp_path: Path) -> None:
    unpack_objects(posted.root)
    blob = posted.git("rev-parse", "HEAD:config.yaml").strip()
    loose = posted.root / ".git/objects" / blob[:2] / blob[2:]
    loose.chmod(0o600)
    loose.unlink()
    done = posted("backup", str(tmp_path / "b"), "--passphrase-file", str(passphrase_file(tmp_path)))
    refused(done, 4, "git cannot read the whole history", "cleared doctor")
    assert not list(tmp_path.glob("*b*.tmp")) and not (tmp_path / "b").exists()


def test_one_page_of_python_opens_it(posted: Workspace, tmp_path: Path) -> None:
    """The page of docs/howto/backup.md, with nothing of cleared."""
    page = Path(__file__).parents[3] / "docs/howto/backup.md"
    (program,) = [b.split("```")[0] for b in page.read_text().split("```python\n")[1:]]
    file = back_up(posted)
    (tmp_path / "open.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-I", str(tmp_path / "open.py"), str(file), str(tmp_path / "out.tar")],
        input=WORDS.encode() + b"\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    subprocess.run(["tar", "-xf", "out.tar"], cwd=tmp_path, check=True)
    assert (tmp_path / "files/config.yaml").read_bytes() == (posted.root / "config.yaml").read_bytes()
    subprocess.run(["git", "clone", "-q", "git/repository.bundle", "clone"], cwd=tmp_path, check=True)
    assert Workspace(tmp_path / "clone").git("rev-parse", "HEAD") == posted.git("rev-parse", "HEAD")
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    done = subprocess.run(
        [sys.executable, "-I", str(tmp_path / "open.py"), str(file), str(tmp_path / "out2.tar")],
        input=WORDS.encode() + b"\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
