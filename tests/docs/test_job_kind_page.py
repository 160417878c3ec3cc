"""The job types that the page about plug-ins shows run as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import Workspace

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "add-a-job-kind.md"


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def installed(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The page's module as a package beside cleared, switched on."""
    beside = tmp_path / "site"
    info = beside / "receipts_jobs-1.0.dist-info"
    info.mkdir(parents=True)
    (beside / "receipts_jobs.py").write_text(block("python"), encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: receipts-jobs\nVersion: 1.0\n", encoding="utf-8")
    points = block("toml").replace('[project.entry-points."cleared.jobs"]', "[cleared.jobs]").replace('"', "")
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(beside))
    monkeypatch.syspath_prepend(str(beside))
    plugins = re.search(r"plugins: (\[.*\])", block("yaml"))
    assert plugins
    ws.ok("config", "set", "loop.plugins", plugins[1])
    return ws


def summary(ws: Workspace, kind: str) -> tuple[str, str]:
    done = ws.process("loop", "run", "--once", "--enqueue", kind)
    assert done.code == 0, done
    job = ws.json("loop", "jobs")[0]
    assert job["kind"] == kind
    return job["status"], job["summary"]


def test_the_shown_kinds_run(installed: Workspace) -> None:
    names = [k["name"] for k in installed.json("loop", "job-types")]
    assert names[-2:] == ["receipts_report", "receipts_weight"]
    assert summary(installed, "receipts_report") == ("failed", "receipts: there is no such folder")
    (installed.root / "receipts").mkdir()
    (installed.root / "receipts" / "a.pdf").write_bytes(b"x")
    (installed.root / "receipts" / ".env").write_bytes(b"")
    assert summary(installed, "receipts_report") == ("succeeded", "1 receipts")
    status, said = summary(installed, "receipts_weight")
    assert (status, said.split()[1]) == ("succeeded", "receipts")
    (installed.root / "receipts" / "b.pdf").write_bytes(b"")
    assert summary(installed, "receipts_report")[1] == "1 of 2 receipts are empty, such as b.pdf"


def test_they_are_not_loaded_where_no_setting_names_them(installed: Workspace) -> None:
    installed.ok("config", "set", "loop.plugins", "[]")
    assert installed("loop", "enqueue", "receipts_report").code == 3
