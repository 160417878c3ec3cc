"""What a worker changes and nobody has looked at: nothing of it gets onto the main branch before a person merges it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from harness import Workspace, refused
from patience import PATIENCE
from tasking import Tasks, task
from web_client import inner_server

from cleared.changes.workspace_opening import open_workspace
from cleared.review.card_view import show_card
from cleared.review.queue_snapshot import read_queue

pytestmark = pytest.mark.slow

STEERING = (
    *("Makefile", ".gitignore", ".gitattributes", ".claude/settings.json", ".vscode/tasks.json"),
    *("run-me", "tool.sh", "docs/CLAUDE.md", "rules/x.json"),
)
WORKER = rf"""
for file in {" ".join(STEERING)}; do mkdir -p $(dirname $file); echo x >> $file; done
printf '#!/bin/sh\n' > run-me; echo x > docs/T-001.txt; echo x > docs/more.txt
"""
REPOSITORY = r"""
echo x > docs/T-001.txt
mkdir -p docs/4x/objects/info docs/4x/refs/heads; echo 'ref: refs/heads/main' > docs/4x/HEAD
echo x > docs/4x/objects/info/keep; echo > docs/4x/refs/heads/.keep
printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = "touch PROOF;:"\n' \
  > docs/4x/config
"""
SETTINGS = """
echo x > docs/T-001.txt; echo y > docs/more.txt; mkdir .claude; ln -s /etc docs/link
git init -q docs/inner; for folder in . docs/inner; do git -C $folder config core.fsmonitor 'touch PROOF;:'; done
git config core.hooksPath hooks; exit 1
"""


@pytest.fixture
def tasks(ws: Workspace) -> Tasks:
    return Tasks(ws)


def test_what_is_run_or_not_named_waits_on_a_branch_and_each_file_is_named(tasks: Tasks) -> None:
    """Only a file that the task names, and that no program runs or is steered by, is committed with it."""
    named = ["Makefile", "tool.sh", "run-me", ".claude/settings.json", ".gitignore", ".gitattributes"]
    tasks.planned(task(1, files=["docs/T-001.txt", *named]))
    before = tasks.ws.head()
    done = tasks("run", "--command", WORKER, "--max", "1", "--json")
    (outcome,) = done.json["tasks"]
    assert outcome["status"] == "awaiting-approval", done
    changed = set(tasks.ws.git("diff", "--name-only", before, "HEAD").split())
    assert "docs/T-001.txt" in changed and changed.isdisjoint({*STEERING, "docs/more.txt"}), changed
    assert tasks.ws.git("status", "--porcelain") == ""
    (card,) = tasks.ws.cards()
    assert card["kind"] == "branch" and card["details"]["files"] == sorted({*STEERING, "docs/more.txt"})
    assert card["details"]["branch"] == outcome["branch"] and outcome["branch"] in outcome["summary"]
    assert all(name in done.err for name in (*STEERING, "docs/more.txt")), done
    tasks.ws.ok("queue", "answer", card["id"], "merge")
    assert tasks.ws.read("tool.sh") == "x\n" and tasks.ws("check").code == 0
    assert tasks.states() == {"T-001": "completed"}


HARMLESS = ("docs/a.md", "data/b.csv", "Notes.TXT", "docs/picture.png")
UNHEARD_OF = (
    *("BSDmakefile", "wscript", "Snakefile", "SConscript", "tasks.py", "build.zig", "gulpfile.js", "NewTool.toml"),
    *(
        "json.py",
        "docs/settings.json",
        "docs/GEMINI.md",
        "test_all.txt",
        "-x.txt",
        "skills/a.md",
        "Requirements-dev.txt",
    ),
    *("x.egg-info/a.txt", ".husky/a.md", "Docs/.Cursor/a.txt"),
)


def test_only_documents_tables_and_pictures_come_in_without_a_look(tasks: Tasks) -> None:
    """Tools are steered by more names than anybody can list; so a list says what steers none."""
    names = (*HARMLESS, *UNHEARD_OF)
    tasks.planned(task(1, files=["docs/T-001.txt", *names[:18]]), task(2, files=["docs/T-002.txt", *names[18:]]))
    before = tasks.ws.head()
    worker = (
        f'for f in {" ".join(names)}; do mkdir -p "$(dirname -- "$f")"; echo x > "./$f"; done; echo x > docs/T-00N.txt'
    )
    for number in (1, 2):
        done = tasks("run", "--command", worker.replace("00N", f"00{number}"), "--max", "1", "--json")
        assert done.json["tasks"][0]["status"] == "awaiting-approval", done
    changed = set(tasks.ws.git("-c", "core.quotePath=off", "diff", "--name-only", before, "HEAD").split("\n"))
    assert changed >= set(HARMLESS) and changed.isdisjoint(UNHEARD_OF), changed


def test_all_of_many_files_are_named(tasks: Tasks) -> None:
    tasks.planned(task(1))
    worker = "cd docs; for n in $(seq 250); do echo x > f$n; done; echo x > T-001.txt"
    done = tasks("run", "--command", worker, "--max", "1")
    assert "docs/f250" in done.err and "docs/f99" in done.err, done
    (card,) = tasks.ws.cards()
    assert len(card["details"]["files"]) == 200 and card["details"]["more_files"] == 50


def test_the_page_shows_what_a_branch_changes(tasks: Tasks) -> None:
    """With what could be taken for markup or an order to a terminal escaped, and the beginning of what is long."""
    tasks.planned(task(1))
    worker = "echo x > docs/T-001.txt; printf 'all: <b>\\033[8m\\n' > Makefile; seq 3000 > docs/long.txt"
    tasks("run", "--command", worker, "--max", "1")
    with inner_server(tasks.ws.root) as server:
        server.sign_in(server.code)
        page = server.get("/queue").body
    assert "+all: &lt;b&gt;" in page and "\033" not in page and "docs/long.txt" in page, page
    assert "+300<" in page and "+2900<" not in page and "all of it: cleared queue show" in page
    (card,) = tasks.ws.cards()
    view = show_card(read_queue(open_workspace(tasks.ws.root)), card["id"])
    assert any("+all: <b>\033[8m" in section.lines for section in view.sections), "as `cleared review` gets it"


def run_git_in(folder: Path) -> None:
    """What a person does who looks at it."""
    for here, _, _ in os.walk(folder):
        if "/.git" not in here:
            for command in ("status", "diff"):
                subprocess.run(["git", command], cwd=here, capture_output=True, check=False, timeout=PATIENCE)


def test_no_folder_that_git_takes_for_a_repository_comes_in(tasks: Tasks, tmp_path: Path) -> None:
    """As plain files, none of which is called ``.git``: git would run what its settings say."""
    proof = tmp_path / "proof"
    tasks.planned(task(1, files=["docs/T-001.txt", "docs/4x/HEAD"]))
    done = tasks("run", "--command", REPOSITORY.replace("PROOF", str(proof)), "--max", "1", "--json")
    (outcome,) = done.json["tasks"]
    assert outcome["status"] == "failed" and "docs/4x/config git takes its folder" in outcome["summary"], done
    assert not (tasks.ws.root / "docs/4x").exists() and tasks.ws.cards() == []
    run_git_in(tasks.ws.root / ".cleared/task-kept/T-001")
    assert not proof.exists()


HALVES = (
    "echo x > docs/T-00N.txt; mkdir -p docs/4x; echo 'ref: refs/heads/main' > docs/4x/HEAD; echo x > docs/4x/config",
    "echo x > docs/T-00N.txt; cd docs; mkdir -p 4x/objects 4x/refs; echo x > 4x/objects/a; echo x > 4x/refs/b",
)


@pytest.mark.parametrize("committed", [True, False])
def test_nor_one_that_two_branches_bring_by_halves(tasks: Tasks, committed: bool) -> None:
    """Each card shows one half. What lies there without being committed counts as well."""
    tasks.planned(task(1), task(2))
    for number, half in enumerate(HALVES, 1):
        tasks("run", "--command", half.replace("00N", f"00{number}"), "--max", "1")
    first, second = tasks.ws.cards()
    if committed:
        tasks.ws.ok("queue", "answer", first["id"], "merge")
    else:
        for name in ("HEAD", "config"):
            tasks.ws.put(f"docs/4x/{name}", "x\n")
    refused(tasks.ws("queue", "answer", second["id"], "merge"), 3, "no branch of a program may change it")
    assert not (tasks.ws.root / "docs/4x/objects").exists()


def test_nor_one_of_which_a_part_was_committed_before(tasks: Tasks, tmp_path: Path) -> None:
    """What names it a repository is there, and harmless; its settings are what a worker adds."""
    proof = tmp_path / "proof"
    for name, text in {"HEAD": "ref: refs/heads/main", "objects/info/keep": "", "refs/heads/.keep": ""}.items():
        tasks.ws.put(f"docs/4x/{name}", f"{text}\n")
    tasks.ws.git("add", "docs")
    tasks.ws.git("commit", "-qm", "there before")
    tasks.planned(task(1, files=["docs/T-001.txt"]))
    done = tasks("run", "--command", REPOSITORY.replace("PROOF", str(proof)), "--max", "1", "--json")
    (outcome,) = done.json["tasks"]
    assert outcome["status"] == "failed" and "docs/4x/config git takes its folder" in outcome["summary"], done
    kept = tasks.ws.root / ".cleared/task-kept/T-001"
    assert kept.exists() and not (kept / "docs/4x/config").exists()
    run_git_in(kept)
    assert not proof.exists()


PROGRAMS = """
echo x > docs/T-001.txt; echo '* filter=own diff=own merge=own' > .gitattributes; echo y >> README.md; exit 1
"""


def test_what_is_kept_starts_no_program_of_the_users_git_settings(
    tasks: Tasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker may name them in ``.gitattributes``, for content of its choice."""
    proof, settings = tmp_path / "proof", tmp_path / "gitconfig"
    tasks.ws.put("README.md", "x\n")
    tasks.ws.git("add", "README.md")
    tasks.ws.git("commit", "-qm", "there before")
    tasks.planned(task(1))
    tasks("run", "--command", PROGRAMS, "--max", "1")
    started = f"touch {proof}; cat"
    settings.write_text(f'[filter "own"]\nclean = "{started}"\n[diff "own"]\ntextconv = "{started}"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    kept = tasks.ws.root / ".cleared/task-kept/T-001"
    assert (kept / ".gitattributes").exists()
    run_git_in(kept)
    assert not proof.exists()


def test_what_is_kept_of_a_failed_task_runs_nothing_of_the_workers(tasks: Tasks, tmp_path: Path) -> None:
    """Settings and hooks of the clone, and of repositories in it; what was changed is there to be looked at."""
    proof = tmp_path / "proof"
    tasks.planned(task(1))
    done = tasks("run", "--command", SETTINGS.replace("PROOF", str(proof)), "--max", "1")
    kept = tasks.ws.root / ".cleared/task-kept/T-001"
    run_git_in(kept)
    assert not proof.exists() and not (kept / "docs/inner").exists() and not (kept / "docs/link").is_symlink()
    shown = subprocess.run(["git", "status", "--porcelain"], cwd=kept, capture_output=True, text=True, check=True)
    assert "docs/T-001.txt" in shown.stdout or "docs/" in shown.stdout, done
    assert (kept / "docs/more.txt").read_text() == "y\n" and not list((kept.parents[1] / "task-work").iterdir())
    left = kept.parents[1] / "task-work/T-009/.git"
    left.mkdir(parents=True)
    tasks.ok("retry", "T-001")
    assert tasks("run", "--command", "echo x > docs/T-001.txt", "--max", "1").code == 6 and not kept.exists()
    assert not left.exists(), "the clone of an orchestrator that was killed"
