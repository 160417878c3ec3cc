"""Dependencies that git ignores, for verification: approved by name, and nobody in there changes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from harness import Workspace, refused
from tasking import Tasks, task

from cleared.processes.confinement import landlock_abi

pytestmark = pytest.mark.slow

PACKAGE = json.dumps({"name": "x", "version": "1.0.0", "scripts": {"test": "node test.js"}})
TEST = "const double = require('double'); if (double(require('fs').readFileSync('docs/n.txt')) !== 4) process.exit(1);"


@pytest.fixture
def tasks(ws: Workspace) -> Tasks:
    ws.put(".gitignore", ws.read(".gitignore") + "node_modules/\n.venv/\n")
    ws.commit(".gitignore")
    return Tasks(ws)


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_npm_test_finds_what_was_installed(tasks: Tasks) -> None:
    """The document's own example; without the setting, and where it is not approved, nothing is there."""
    tasks.ws.put("package.json", PACKAGE)
    tasks.ws.put("test.js", TEST)
    tasks.ws.commit("package.json", "test.js")
    tasks.ws.put("node_modules/double/index.js", "module.exports = n => 2 * n;\n")
    tasks.planned(task(1, files=["docs/n.txt"], verification_command="npm test"))
    assert tasks("run", "--command", "echo 2 > docs/n.txt").code == 7
    config = tasks.ws.read("config.yaml")
    tasks.ws.put("config.yaml", config + "tasks:\n  read_only_folders: [node_modules]\n")
    tasks.ok("retry", "T-001")
    assert tasks("run", "--command", "echo 2 > docs/n.txt").code == 7, "not approved"
    tasks.ws.put("config.yaml", config)
    tasks.ws.config("tasks.read_only_folders=[node_modules]")
    tasks.ok("retry", "T-001")
    done = tasks("run", "--command", "echo 2 > docs/n.txt")
    assert done.code == 6, (done, tasks.ws.read(".cleared/task-output/T-001.txt"))


@pytest.mark.skipif(not landlock_abi(), reason="the kernel has no Landlock")
def test_what_is_there_is_read_and_run_and_never_changed(tasks: Tasks) -> None:
    tasks.ws.put(".venv/bin/tool", "#!/bin/sh\necho tool\n")
    (tasks.ws.root / ".venv/bin/tool").chmod(0o755)
    tasks.ws.put(".venv/.env", "SECRET=1\n")
    tasks.ws.config("tasks.read_only_folders=[.venv]")
    command = f"""
    test "$(.venv/bin/tool)" = tool || exit 1
    echo x > .venv/more && exit 3
    echo x >> .venv/bin/tool && exit 4
    rm -f .venv/bin/tool && exit 5
    cat .venv/.env && exit 6
    cat {tasks.ws.root}/config.yaml && exit 7
    exit 0"""
    tasks.planned(task(1, verification_command=command))
    done = tasks("run", "--command", "echo x > docs/T-001.txt; test ! -e .venv", "--json")
    assert done.code == 6, (done, tasks.ws.read(".cleared/task-output/T-001.txt"))
    assert sorted(path.name for path in (tasks.ws.root / ".venv").iterdir()) == [".env", "bin"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("docs", "git has files of it"),
        ("free", "git does not ignore it"),
        ("node_modules", "it is a link"),
        (".cleared", "a part of the workspace itself"),
        ("/", "it holds the workspace"),
    ],
)
def test_only_what_git_ignores_is_opened(tasks: Tasks, tmp_path: Path, name: str, why: str) -> None:
    """What a push brings is not taken for what was installed here, nor is what it links to."""
    (tmp_path / "elsewhere").mkdir()
    (tasks.ws.root / "free").mkdir()
    (tasks.ws.root / "node_modules").symlink_to(tmp_path / "elsewhere")
    tasks.ws.config(f"tasks.read_only_folders=[{name}]")
    tasks.planned(task(1))
    tasks.ok("claim", "T-001")
    tasks.ws.put("docs/T-001.txt", "x")
    done = tasks("verify", "T-001")
    assert done.code == 3 and why in done.err, done
    tasks.ok("retry", "T-001")
    refused(tasks("run", "--command", "echo x > docs/T-001.txt"), 3, why)
    assert tasks.states() == {"T-001": "pending"}, "no task fails by a setting"


def test_a_name_leads_nowhere_else(tasks: Tasks) -> None:
    refused(tasks.ws("config", "set", "tasks.read_only_folders", "[../x]"), 4, "'../x'")
