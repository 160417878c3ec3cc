"""Fault 8: a repository whose settings and attributes name programs. None of them runs, whichever command is used; with
the one wall that is for it (``cleared.git.git_process``, and the environment) switched off, they do."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from harness import Workspace, chase, no_traceback, refused, unchanged, unpack_objects

import cleared
from cleared.base.errors import WorkspaceError
from cleared.git import git_process, housekeeping
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.job_process import JobContext
from cleared.jobs.job_types import load_built_in
from cleared.work.loop.report_jobs import git_status_summary

PACKAGE = Path(cleared.__file__).parent
HOOKS = ("reference-transaction", "post-index-change", "pre-commit", "post-commit", "post-checkout")
PROGRAMS = (
    "core.fsmonitor",
    "core.sshCommand",
    "core.pager",
    "core.editor",
    "core.askPass",
    "core.gitProxy",
    "gpg.program",
    "core.alternateRefsCommand",
    "diff.external",
    "credential.helper",
    "filter.one.clean",
    "filter.one.smudge",
    "filter.two.process",
    "filter.Three,.x.clean",
    "diff.evil.textconv",
    "diff.evil.command",
    "merge.evil.driver",
    "sequence.editor",
    "gpg.ssh.program",
    "credential.https://x.helper",
    "remote.origin.uploadpack",
    "pager.status",
)
ATTRIBUTES = "*.one filter=one diff=evil merge=evil\n*.two filter=two\n*.md filter=Three,.x\n"


def trap(ws: Workspace, folder: Path, programs: tuple[str, ...] = PROGRAMS) -> Path:
    """Files that are filtered and look changed, and a mark in the folder for each program that is ever run."""
    marks = folder / "marks"
    marks.mkdir()

    def evil(name: str) -> Path:
        path = folder / name.replace("/", "_")
        path.write_text(f'#!/bin/sh\n: > "{marks}/$(basename "$0")"\ncat\n')
        path.chmod(0o755)
        return path

    files = ("a.one", "b.two", "c.md")
    for name in files:
        ws.put(name, "before\n")
    ws.put(".gitattributes", ws.read(".gitattributes") + ATTRIBUTES)
    ws.commit(*files, ".gitattributes")
    for hook in HOOKS:
        ws.put(f".git/hooks/{hook}", evil(hook).read_bytes()).chmod(0o755)
    for key in programs:
        ws.git("config", key, str(evil(key)))
    for key in ("log.showSignature", "filter.one.required"):
        ws.git("config", key, "true")
    for name in files:
        ws.put(name, "change\n")  # as long as before: only its content tells
    return marks


def ran(marks: Path) -> set[str]:
    return {path.name for path in marks.iterdir()}


def summary(ws: Workspace) -> str:
    """The job's own code, in this process."""
    return git_status_summary(JobContext(ws.root, "", "person", (), ForbiddenFiles(ws.root)))


def use(ws: Workspace) -> None:
    """Commands of every kind, in turn."""
    ws.drop("more.csv", chase(("02/03/2025", "GITHUB", "-4.00")))
    ws.ok("agent", "run", "ingest")
    for argv in (
        "status",
        "doctor",
        "agent list",
        "agent show ingest",
        "agent check ingest",
        "agent history ingest",
        "queue list",
        "run list",
        "journal list",
        "check",
        "journal balance",
        "why 2025-02-001",
        "period list",
        "logs",
        "schedule",
        "queue reviewers",
        "accounts list",
        "loop job-types",
        "trust",
        "test list",
        "journal void 2025-02-001 --reason x",
        "config set business.name Other",
        "period close 2025-01-31 --reason x",
        "queue undo",
        "queue expire",
        "event emit something",
        "agent new other",
        "accept HEAD --reason x",
        "loop run --once --enqueue git_status_summary",
        "loop run --once --enqueue books_check",
        "loop run --once --enqueue agent:monthly_summary",
    ):
        no_traceback(ws(*argv.split()))
    pack(ws)


def leave_branch_to_git(ws: Workspace) -> None:
    """Without logs a commit has git move the branch; with them it starts no git."""
    ws.git("config", "core.logAllRefUpdates", "false")
    for log in [path for path in (ws.root / ".git/logs").rglob("*") if path.is_file()]:
        log.unlink()


def pack(ws: Workspace) -> None:
    """As happens by itself when there are many loose objects."""
    git_process.Git(ws.root).run(*housekeeping.REPACK)


def no_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_process, "fixed_options", lambda **_: [])
    monkeypatch.setattr(git_process, "overriding_options", lambda *_: [])
    monkeypatch.setattr(git_process, "COMMAND_OPTIONS", dict.fromkeys(git_process.COMMAND_OPTIONS, ()))
    monkeypatch.setattr(git_process, "_FIXED", {"LC_ALL": "C"})


def test_no_command_runs_a_program_of_the_repositorys_settings(ws: Workspace, tmp_path: Path) -> None:
    """Fault 8"""
    marks = trap(ws, tmp_path)
    ws.config("sandbox.confine=off")  # nothing else keeps a job from making marks
    use(ws)
    leave_branch_to_git(ws)
    ws.ok("config", "set", "business.name", "Moved by git")
    assert summary(ws).startswith("3 changed")
    assert ran(marks) == set()


def test_without_the_wall_those_programs_run(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault 8"""
    marks = trap(ws, tmp_path)
    no_wall(monkeypatch)
    ws.ok("config", "set", "business.name", "Other")
    assert "reference-transaction" not in ran(marks), "a commit moves the branch without git"
    leave_branch_to_git(ws)
    summary(ws)
    ws.ok("config", "set", "business.name", "Moved by git")
    ws("agent", "history", "ingest")
    assert {"filter.one.clean", "filter.two.process", "core.fsmonitor"} <= ran(marks)
    assert {"reference-transaction", "post-index-change"} <= ran(marks)


@pytest.mark.parametrize("wall", [True, False])
def test_a_missing_object_is_fetched_from_nowhere(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Fault 8: a partial clone, whose remote names the program that gives what is missing."""
    marks = trap(ws, tmp_path, ())
    for at, url in enumerate(("ssh://x.invalid/y", f"file://{tmp_path}/books", f"ext::{tmp_path}/ext")):
        (tmp_path / f"evil{at}").write_text(f'#!/bin/sh\n: > "{marks}/{at}"\nexit 1\n')
        (tmp_path / f"evil{at}").chmod(0o755)
        for key, value in {
            "url": url,
            "promisor": "true",
            "partialclonefilter": "blob:none",
            "uploadpack": str(tmp_path / f"evil{at}"),
        }.items():
            ws.git("config", f"remote.r{at}.{key}", value)
    (tmp_path / "ext").write_bytes((tmp_path / "evil2").read_bytes())
    (tmp_path / "ext").chmod(0o755)
    ws.git("config", "core.sshCommand", str(tmp_path / "evil0"))
    ws.git("config", "protocol.allow", "always")
    ws.git("config", "protocol.ext.allow", "always")
    ws.git("config", "core.repositoryFormatVersion", "1")
    ws.git("config", "extensions.partialClone", "r0")
    oid = ws.git("rev-parse", "HEAD:agents/ingest.py").strip()
    unpack_objects(ws.root)
    (ws.root / ".git/objects" / oid[:2] / oid[2:]).unlink()
    if not wall:
        no_wall(monkeypatch)
    refused(ws("agent", "run", "ingest"), 4, oid)
    assert ran(marks) == (set() if wall else {"0", "1", "2"})


def test_a_setting_that_cannot_be_outranked_is_refused(ws: Workspace) -> None:
    """Fault 8: where a git is started that could use it."""
    ws.git("config", "filter.a=b.clean", "program")
    ws.ok("config", "set", "business.name", "Other")  # no git is started for it
    leave_branch_to_git(ws)
    said = ("'filter.a=b.clean' names a program", "git config --unset-all")
    with unchanged(ws):
        refused(ws("config", "set", "business.name", "Third"), 4, *said)
    with pytest.raises(WorkspaceError, match="names a program"):
        summary(ws)
    assert ws("journal", "list").code == 0, "what writes nothing looks at no file that is filtered"
    ws.git("config", "--unset", "filter.a=b.clean")
    ws.ok("config", "set", "business.name", "Third")


def test_git_is_started_in_one_place() -> None:
    """Fault 8: every call that starts a program is known, and only one of them starts git."""
    starters = {"Popen", "run", "call", "check_call", "check_output", "system", "popen", "startfile"}
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        inner, text = path.relative_to(PACKAGE).as_posix(), path.read_bytes()
        if not re.search(rb"subprocess|\bos\.|\bpty\b|multiprocessing|\b(import|from) git\b", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                # A fleet's worker forks a process for each job, and has a folder for that.
                is_worker = inner in ("service/fleet/worker.py", "service/fleet/temporary_folder.py")
                forks = {"pty"} if is_worker else {"pty", "multiprocessing"}
                assert not {n.split(".")[0] for n in names} & forks, inner
                assert "git" not in {n.split(".")[0] for n in names} or inner == "git/git_python.py", inner
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = node.func.attr
                of = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
                spawns = of == "os" and name.startswith(("exec", "spawn", "posix_spawn"))
                if spawns or name.startswith("create_subprocess") or (of in ("os", "subprocess") and name in starters):
                    found.add(inner)
                    assert inner == "git/git_process.py" or "git" not in words(node), f"{inner}:{node.lineno}"
    assert found == {
        "git/git_process.py",
        "base/process_identity.py",
        "cli/service_manager.py",
        "service/regular_sync.py",
        "service/fleet/desk_sync.py",
        "service/fleet/local_postgres.py",
        "cli/demo/fleet_walkthrough.py",
        "gate/past_rehearsal.py",
        "work/loop/control.py",
        "processes/fenced_start.py",
        "workspace/process_lock.py",
        "processes/kept_programs.py",
        "sandbox/bridge/client.py",
    }
    assert not [kind.name for kind in load_built_in().values() if kind.command], "a job's command is no second one"


def words(node: ast.AST) -> set[str]:
    return {
        n.value.rpartition("/")[2] for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }
