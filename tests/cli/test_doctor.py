"""I5: ``cleared doctor`` finds what is wrong with a machine and a workspace, and says what to do about it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from receipt_files import make_png

from cleared.cli.command_runner import run
from cleared.processes import fences
from cleared.processes.namespaces import OfferedNamespaces
from cleared.sandbox import worker_pool
from cleared.sandbox.monty import Sandbox
from cleared.trust.keys import cleared_home
from cleared.workspace.lock import writer_lock

Rows = dict[str, dict[str, str]]
Doctor = Callable[..., tuple[int, Rows]]

CSV = (
    "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #\n"
    "DEBIT,01/31/2025,GITHUB INC,-4.00,ACH_DEBIT,96.00,,\n"
)
KILLED = """
import os, sys
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now
def at(step):
    if step == "ref":
        os._exit(9)
run_now(open_workspace(on_step=at), "ingest")
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "books"
    assert run(["init", str(home), "--name", "Acme"]) == 0
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    def call(*argv: str) -> tuple[int, Rows]:
        capsys.readouterr()
        code = run(["doctor", "--json", *argv])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert list(found) == ["ok", "checks"]
        rows = {row["name"]: row for row in found["checks"]}
        assert len(rows) == len(found["checks"])
        assert found["ok"] == (code == 0) == all(row["status"] != "fail" for row in rows.values())
        assert all(row["remedy"] for row in rows.values() if row["status"] != "ok")
        return code, rows

    return call


def git(*args: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], check=True, capture_output=True)


def test_a_machine_without_a_workspace_is_no_error(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, rows = doctor()
    assert code == 0
    assert rows["workspace"]["detail"].startswith("none")
    assert "pydantic-monty 1.4.0" in rows["dependencies"]["detail"]
    assert "1 + 1" in rows["sandbox"]["detail"]
    assert doctor("-C", str(tmp_path))[0] == 4  # one that was asked for has to be there


def test_the_level_of_confinement_is_the_one_reached(doctor: Doctor, root: Path) -> None:
    """Rows I5, A18: it is read from a live worker, not assumed."""
    with Sandbox() as sandbox:
        level = sandbox.level
    row = doctor()[1]["confinement"]
    assert row["detail"].startswith(str(level))
    assert row["status"] == ("ok" if level.is_full else "warn")


def test_a_confinement_the_kernel_refuses_is_said(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A18: where there is none, doctor does not claim it."""
    from cleared.sandbox import worker_pool

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker_pool, "worker_restrictions", lambda *_, **__: worker_pool._UNCONFINED)
    code, rows = doctor()
    assert code == 0
    assert rows["confinement"]["status"] == "warn"
    assert "landlock" not in rows["confinement"]["detail"]


def test_a_new_workspace_is_well(doctor: Doctor, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Row I5."""
    _, rows = doctor()
    assert {name: row["status"] for name, row in rows.items() if row["status"] != "ok" and name != "confinement"} == {}
    assert rows["repository"]["detail"].startswith("main at ")
    assert run(["doctor"]) == 0
    assert "trace database  " in capsys.readouterr().out


def test_no_git_and_an_old_git(doctor: Doctor, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row I5."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert doctor()[1]["git"]["detail"] == "git is not installed"
    (tmp_path / "bin").mkdir()
    real = shutil.which("git", path="/usr/bin:/bin")
    old = f'#!/bin/sh\ncase "$*" in *version*) echo git version 2.11.0;; *) exec {real} "$@";; esac\n'
    (tmp_path / "bin/git").write_text(old)
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    code, rows = doctor()
    assert (code, rows["git"]["status"]) == (4, "fail")
    assert "2.11.0" in rows["git"]["detail"]


def test_receipts_whose_files_are_gone(doctor: Doctor, root: Path, tmp_path: Path) -> None:
    photo = tmp_path / "2025-01-10 45.10.png"
    photo.write_bytes(make_png())
    assert run(["receipt", "add", str(photo)]) == 0
    assert doctor()[1]["receipts"]["detail"] == "1 kept"
    shutil.rmtree(root / "receipts")
    code, rows = doctor()
    assert (code, rows["receipts"]["status"]) == (0, "warn")
    assert rows["receipts"]["detail"] == "the files of 1 of 1 are not in this clone: 2025-01-10 45.10.png"
    git("checkout", "--", "receipts")
    assert doctor()[1]["receipts"]["status"] == "ok"


def test_a_wrong_config(doctor: Doctor, root: Path) -> None:
    (root / "config.yaml").write_text("business:\n  nam: Acme\n")
    code, rows = doctor()
    assert code == 4
    assert "config.yaml:2" in rows["config"]["detail"]


def test_a_detached_head_and_a_merge(doctor: Doctor, root: Path) -> None:
    git("switch", "-qc", "other")
    (root / "agents/ingest.py").write_text("1\n")
    git("commit", "-qam", "other")
    git("switch", "-q", "main")
    (root / "agents/ingest.py").write_text("2\n")
    git("commit", "-qam", "mine")
    merge = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "other"]
    assert subprocess.run(merge, capture_output=True, check=False).returncode != 0
    code, rows = doctor()
    assert (code, "merge" in rows["repository"]["detail"]) == (4, True)
    assert "git merge --abort" in rows["repository"]["remedy"]
    git("merge", "--abort")
    git("switch", "-q", "--detach")
    assert "detached" in doctor()[1]["repository"]["detail"]


def test_a_managed_file_that_was_edited(doctor: Doctor, root: Path) -> None:
    chart = root / "accounts/chart-of-accounts.csv"
    chart.write_bytes(chart.read_bytes() + b"\n")
    code, rows = doctor()
    assert code == 4
    assert "accounts/chart-of-accounts.csv (modified)" in rows["managed files"]["detail"]
    assert "git checkout" in rows["managed files"]["remedy"]


def test_an_interrupted_commit_is_completed_and_told(doctor: Doctor, root: Path) -> None:
    (root / "import/a.csv").write_text(CSV)
    assert subprocess.run([sys.executable, "-c", KILLED], check=False).returncode == 9
    assert (root / ".cleared/seal.json").exists()
    code, rows = doctor()
    assert code == 0
    assert "finished the interrupted commit" in rows["interrupted commit"]["detail"].lower()
    assert rows["managed files"]["status"] == "ok"
    assert not (root / "import/a.csv").exists()


def test_each_wall_of_the_fence_has_a_row(doctor: Doctor, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine gives engines, jobs and verification commands, and what it lacks, in words."""
    names = ("fence: files", "fence: calls", "fence: attributes", "fence: processes")
    given = OfferedNamespaces(True, True)
    monkeypatch.setattr(fences, "offered_namespaces", lambda: given)
    monkeypatch.setattr(fences, "landlock_abi", lambda: 7)
    monkeypatch.setattr(fences.platform, "machine", lambda: "x86_64")
    _, rows = doctor()
    assert [rows[name]["status"] for name in names] == ["ok"] * 4
    assert "Landlock ABI 7" in rows["fence: files"]["detail"] and "read-only" in rows["fence: attributes"]["detail"]
    lacking = OfferedNamespaces(problem="no read-only mounts: Operation not permitted")
    monkeypatch.setattr(fences, "offered_namespaces", lambda: lacking)
    monkeypatch.setattr(fences, "landlock_abi", lambda: 0)
    monkeypatch.setattr(fences.platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(worker_pool, "_refused_restrictions", {})  # a real worker is refused there too: not to be kept
    _, rows = doctor()
    assert [rows[name]["status"] for name in names] == ["warn"] * 4
    assert "Operation not permitted" in rows["fence: attributes"]["detail"]
    assert "riscv64" in rows["fence: calls"]["detail"] and "no Landlock" in rows["fence: files"]["detail"]


def test_who_holds_the_lock(doctor: Doctor, root: Path) -> None:
    """Row I5."""
    with writer_lock(root / ".cleared", 1.0, "a long run"):
        code, rows = doctor()
    assert (code, rows["writer lock"]["status"]) == (0, "warn")
    assert "a long run" in rows["writer lock"]["detail"]
    assert doctor()[1]["writer lock"]["detail"] == "free"


def test_stale_files(doctor: Doctor, root: Path) -> None:
    """Row I5: what a killed command leaves, beside the keys and under the branches too."""
    names = ["books/.cleared-seal-0123456789abcdef.tmp", ".cleared-0123456789ab.tmp", ".git/index.lock"]
    names.append(".git/refs/heads/main.lock")
    beside = cleared_home() / "clones/.cleared-0123456789cd.tmp"  # nothing is written there now, so nothing sweeps it
    for path in (*(root / name for name in names), beside):
        path.write_bytes(b"")
    _, rows = doctor()
    detail = rows["stale files"]["detail"]
    for name in (*names, beside.name):
        assert name in detail


def test_bank_files_that_cannot_be_read(doctor: Doctor, root: Path) -> None:
    (root / "import/good.csv").write_text(CSV)
    (root / "import/bad.csv").write_bytes(b"\x00\x01")
    _, rows = doctor()
    assert rows["import folder"]["status"] == "warn"
    assert "1 file waits with 1 new row" in rows["import folder"]["detail"]
    assert "bad.csv: " in rows["import folder"]["detail"]


def test_a_damaged_trace_database_is_rebuilt(doctor: Doctor, root: Path) -> None:
    """Row I5."""
    (root / "import/a.csv").write_text(CSV)
    assert run(["agent", "run", "ingest"]) == 0
    for name in ("runs.db-wal", "runs.db-shm"):
        (root / ".cleared" / name).unlink(missing_ok=True)
    (root / ".cleared/runs.db").write_bytes(b"no database " * 1000)
    before = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, check=True).stdout
    code, rows = doctor()
    assert (code, rows["trace database"]["status"]) == (0, "warn")
    assert "--rebuild" in rows["trace database"]["remedy"]
    code, rows = doctor("--rebuild")
    assert (code, rows["trace database"]["status"]) == (0, "ok")
    aside = next((root / ".cleared").glob("runs.set-aside-*.db"))
    assert aside.read_bytes().startswith(b"no database")
    assert aside.name in rows["rebuild"]["detail"]
    assert subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, check=True).stdout == before
    assert run(["run", "list"]) == 0


def test_rebuild_needs_a_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["doctor", "--rebuild"]) == 4
