"""The domain that the page about plug-ins shows works as it says: approved, rehearsed, committed, guarded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Done, Workspace, take_ok
from modelled import open_host
from patience import PATIENCE

from cleared.api.mcp_server.client_calls import TOOLS
from cleared.api.rpc.methods import COMMANDS
from cleared.base.errors import WorkspaceError
from cleared.domains.installed_domains import use_plugins
from cleared.gate import lint_rules
from cleared.service.operations.table import OPERATIONS

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
    assert "probe may write remarks about customers" in said.out and "at most 2 remarks a run" in said.out
    take_ok(ws, "agent", "approve", "P1")
    done_ok(ws("agent", "run", "probe"))
    assert ws.read("remarks/list.csv") == "customer,text\nacme,pays late\n"
    assert "succeeded: 1 remark, 0 cards" in ws.read("logs/agent-log-2025-02.csv")
    assert done_ok(ws("check", "--json")).json["ok"]
    ws.put("remarks/list.csv", "customer,text\nacme,pays early\n")
    assert ws("agent", "run", "probe").code == 4


def test_what_is_wrong_with_its_primitives_is_told_of_it_and_of_no_script(ws: Workspace, site: Path) -> None:
    module = site / "remarks_domain.py"
    text = module.read_text(encoding="utf-8")
    wrong = text.replace("customer: Line", "customer: bytes", 1)
    assert wrong != text
    module.write_text(wrong, encoding="utf-8")
    done_ok(ws("config", "set", "domains.plugins", "[remarks]"))
    refused = ws("agent", "run", "ingest")  # which calls none of them
    assert refused.code == 4 and "the domain 'remarks' cannot be loaded: DeclarationError" in refused.err
    assert "cleared config unset domains.plugins" in refused.err and "Traceback" not in refused.err


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


RULES = """
import ast

from cleared.gate.linted_script import RuleSet
from cleared.gate.operation import Operation
from remarks_domain import PATH, parse_remarks

RULES = RuleSet()
SHOUTED = RULES.declare("shouted-remark", finds="a remark in capitals", why="It is rude.", remedy="Write it small.")


@RULES.check
def find_shouting(script):
    for node in script.nodes_of(ast.Constant):
        if isinstance(node.value, str) and node.value.isupper():
            yield script.finding(SHOUTED, node, f"{node.value!r} is in capitals")


def list_remarks(host):
    return parse_remarks((host.root / PATH).read_bytes())


OPERATIONS = (Operation("NAME", "Every remark.", "EFFECT", list_remarks),)
"""


def add_rules(site: Path, name: str = "remark.list", effect: str = "read") -> None:
    """The page's domain, with a lint rule and an operation of its own."""
    module = site / "remarks_domain.py"
    more = '    lint_modules=("remark_rules",),\n    operation_modules=("remark_rules",),\n'
    text = module.read_text(encoding="utf-8")
    module.write_text(text.replace("    comparison=RemarkComparison,\n", f"{more}    comparison=RemarkComparison,\n"))
    (site / "remark_rules.py").write_text(RULES.replace("NAME", name).replace("EFFECT", effect), encoding="utf-8")


@pytest.fixture
def ruled(ws: Workspace, site: Path) -> Iterator[Workspace]:
    """A workspace with that domain, in a process that had all tables of the program before."""
    assert "remark.list" not in OPERATIONS and "shouted-remark" not in lint_rules.RULES
    add_rules(site)
    done_ok(ws("config", "set", "domains.plugins", "[remarks]"))
    ws.put("agents/probe.py", AGENT.replace("pays late", "PAYS LATE"))
    yield ws
    sys.modules.pop("remark_rules", None)


def test_its_lint_rules_count_also_where_the_program_was_loaded_before(ruled: Workspace) -> None:
    done = ruled("agent", "check", "probe", "--json")
    assert done.code == 1 and "shouted-remark" in done.out and "It is rude." in done.out


def test_its_lint_rules_count_at_the_first_command(ruled: Workspace, site: Path) -> None:
    argv = [sys.executable, "-m", "cleared", "agent", "check", "probe", "-C", str(ruled.root)]
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        argv, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 1 and "'PAYS LATE' is in capitals" in done.stdout + done.stderr


def test_its_operations_are_offered_and_go_with_it(ruled: Workspace) -> None:
    ruled.put("agents/probe.py", AGENT)
    done_ok(ruled("agent", "propose", "probe"))
    take_ok(ruled, "agent", "approve", "P1")
    done_ok(ruled("agent", "run", "probe"))
    host = open_host(ruled.root)
    assert OPERATIONS["remark.list"].call_function(host, {}) == [["acme", "pays late"]]
    assert "remark_list" in TOOLS and "remark.list" in COMMANDS
    use_plugins(())
    assert "remark.list" not in OPERATIONS and "remark_list" not in TOOLS and "remark.list" not in COMMANDS


@pytest.mark.parametrize(
    ("name", "effect", "said"),
    [("agent.propose", "read", "is there already"), ("remark.add", "run", "does more than read")],
)
def test_an_operation_may_stand_in_for_none_and_only_read(
    ws: Workspace, site: Path, name: str, effect: str, said: str
) -> None:
    add_rules(site, name, effect)
    done_ok(ws("config", "set", "domains.plugins", "[remarks]"))
    with pytest.raises(WorkspaceError, match=said):
        list(OPERATIONS)
    sys.modules.pop("remark_rules", None)
