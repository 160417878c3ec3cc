"""The domain that the page about plug-ins shows works as it says: approved, rehearsed, committed, guarded."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Done, Workspace, take_ok

from cleared.domains.installed_domains import use_plugins

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "add-a-domain.md"
AGENT = '"""\nname: probe\ntrigger: on_demand\nmax_remarks: 2\n"""\nremark_add("acme", "pays late")\n'


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def site(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's module as a package beside cleared."""
    beside = tmp_path / "site"
    info = beside / "remarks_domain-1.0.dist-info"
    info.mkdir(parents=True)
    (beside / "remarks_domain.py").write_text(block("python"), encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: remarks-domain\nVersion: 1.0\n", encoding="utf-8")
    points = block("toml").replace('[project.entry-points."cleared.domains"]', "[cleared.domains]").replace('"', "")
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(str(beside))
    yield beside
    sys.modules.pop("remarks_domain", None)
    use_plugins(())


def done_ok(done: Done) -> Done:
    assert done.code == 0, done
    return done


def test_the_shown_domain_is_proposed_approved_and_run(ws: Workspace, site: Path) -> None:
    ws.put("agents/probe.py", AGENT)
    unknown = ws("agent", "propose", "probe")
    assert unknown.code == 1 and "max_remarks" in unknown.err
    done_ok(ws("config", "set", "domains.plugins", "[remarks]"))
    said = done_ok(ws("agent", "propose", "probe"))
    assert "It may write remarks about customers" in said.out and "at most 2 remarks a run" in said.out
    take_ok(ws, "agent", "approve", "P1")
    done_ok(ws("agent", "run", "probe"))
    assert ws.read("remarks/list.csv") == "customer,text\nacme,pays late\n"
    assert "succeeded: 1 remark, 0 cards" in ws.read("logs/agent-log.csv")
    assert done_ok(ws("check", "--json")).json["ok"]
    ws.put("remarks/list.csv", "customer,text\nacme,pays early\n")
    assert ws("agent", "run", "probe").code == 4


def test_where_it_is_missing_nothing_runs_but_settings_can_be_mended(ws: Workspace, site: Path) -> None:
    done_ok(ws("config", "set", "domains.plugins", "[remarks]"))
    shutil.rmtree(site)
    use_plugins(())  # as in a new process
    refused = ws("agent", "run", "ingest")
    assert refused.code == 4 and "the domain 'remarks' cannot be loaded: it is not installed" in refused.err
    done_ok(ws("config", "unset", "domains.plugins"))
    done_ok(ws("agent", "run", "ingest"))


def test_a_pushed_setting_loads_nothing(ws: Workspace, site: Path) -> None:
    ws.put("config.yaml", ws.read("config.yaml") + "\ndomains:\n  plugins: [remarks]\n")
    ws.commit("config.yaml")
    (site / "remarks_domain.py").write_text("raise SystemExit('loaded')", encoding="utf-8")
    assert "loaded" not in ws("agent", "run", "ingest").err
