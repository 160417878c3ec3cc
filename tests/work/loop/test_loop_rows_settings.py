"""What can be set about a loop, by flag, environment and settings; the documented commands, word for word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Done, State, command, refused
from looping import Loop, changed, eventually
from patience import PATIENCE

CONTROL_ROOM = "./scripts/single_agent_control_room.sh"  # as every new workspace has it


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with ``cleared`` as a command, as an installation has it."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "cleared").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cleared "$@"\n')
    (folder / "cleared").chmod(0o755)
    return folder


def shell(loop: Loop, tools: Path, text: str) -> Done:
    """A command as the document has it, in the workspace."""
    environment = changed({"PATH": f"{tools}:{os.environ['PATH']}"})
    done = subprocess.run(
        ["sh", "-c", text],
        cwd=loop.ws.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def exactly(loop: Loop) -> tuple[State, dict[str, bytes]]:
    """Every byte of the workspace, of git's and of the runtime's files too."""
    inner = {}
    for top in (".git", ".cleared"):
        for path in (loop.ws.root / top).rglob("*"):
            if path.is_file():
                inner[str(path)] = path.read_bytes()
    return loop.ws.state(), inner


# -- the documented commands ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["cleared loop run --loop --auto-rotate", CONTROL_ROOM])
def test_e23_the_bounded_smoke_run_touches_nothing(loop: Loop, tools: Path, tmp_path: Path, command: str) -> None:
    """E23: the document's command, with ``cleared loop`` and through its wrapper."""
    there = tmp_path / "smoke"
    status = loop.ws.git("status", "--porcelain", "--ignored")
    before = exactly(loop)
    done = shell(
        loop,
        tools,
        f"SINGLE_AGENT_RUNTIME_DIR={there} SINGLE_AGENT_MAX_CYCLES=2 SINGLE_AGENT_SLEEP_SECONDS=0 {command}",
    )
    assert exactly(loop) == before and loop.ws.git("status", "--porcelain", "--ignored") == status
    assert done.code == 0, done
    found = Loop(loop.ws, there)
    found.valid()
    assert found.jobs() == ["continuity_scan", "akela_meta_summary"] and found.state()["cycles"] == 2


@pytest.mark.parametrize(
    ("environment", "status", "said", "files"),
    [
        ("", "failed", "the AI bridge is disabled", []),
        (
            "SINGLE_AGENT_ALLOW_AI_TURN=1 SINGLE_AGENT_AI_DRY_RUN=1",
            "succeeded",
            "dry run",
            ["bridge_manifest.json", "bridge_prompt.md"],
        ),
        ("SINGLE_AGENT_ALLOW_AI_TURN=1", "failed", "blocked", []),
    ],
    ids=["blocked check", "dry-run check", "live"],
)
def test_e23_the_bridge_checks(
    loop: Loop, tools: Path, tmp_path: Path, environment: str, status: str, said: str, files: list[str]
) -> None:
    """E16, E17, E18, E23: the document's commands."""
    there = tmp_path / "smoke"
    command = "cleared loop run --init --enqueue ai_single_turn_bridge --once"
    before = exactly(loop)
    done = shell(loop, tools, f"SINGLE_AGENT_RUNTIME_DIR={there} {environment} {command}")
    assert done.code == 0, done
    found = Loop(loop.ws, there)
    found.valid()
    (result,) = found.results()
    assert result["status"] == status and said in result["summary"] and result["kind"] == "ai_single_turn_bridge"
    assert (
        sorted(
            p.name.split(".", 1)[1]
            for p in (there / "jobs").glob("*bridge_*.*")
            if "bridge_p" in p.name or "bridge_m" in p.name
        )
        == files
    )
    assert exactly(loop) == before


def test_e23_the_wrapper_sources_nothing(loop: Loop, tools: Path, tmp_path: Path) -> None:
    """E21, E23"""
    (loop.ws.root / ".env").write_text(f"touch {tmp_path}/sourced\nSINGLE_AGENT_MAX_CYCLES=1\n")
    there = tmp_path / "smoke"
    done = shell(loop, tools, f"SINGLE_AGENT_RUNTIME_DIR={there} {CONTROL_ROOM} --max-cycles 2 --sleep 0")
    assert done.code == 0 and len(Loop(loop.ws, there).jobs()) == 2
    assert not (tmp_path / "sourced").exists()
    for script in (loop.ws.root / "scripts").glob("single_agent_*.sh"):
        text = script.read_text()
        assert (
            ". " not in [line[:2] for line in text.splitlines()]
            and "source " not in text
            and os.access(script, os.X_OK)
        )


# -- which beats which ------------------------------------------------------------------------------------------------


def test_e24_the_runtime_directory(loop: Loop, tmp_path: Path) -> None:
    """E24"""
    loop.ws.config("loop.runtime_dir=continuity/loop/runtime")
    ws, flag, variable = loop.ws, tmp_path / "by-flag", tmp_path / "by-variable"
    environment = changed({"SINGLE_AGENT_RUNTIME_DIR": str(variable)})
    run = ["loop", "run", "--once", "--sleep", "0"]
    assert ws.process(*run, "--runtime-dir", str(flag), env=environment).code == 0
    assert flag.is_dir() and not variable.exists() and not (ws.root / "continuity").exists()
    assert ws.process(*run, env=environment).code == 0
    assert variable.is_dir() and not (ws.root / "continuity").exists()
    assert ws.process(*run, env=changed({"SINGLE_AGENT_RUNTIME_DIR": ""})).code == 0
    assert (ws.root / "continuity/loop/runtime/single_agent_state.json").exists()
    assert ws.git("status", "--porcelain") == ""


def test_e24_a_flag_is_below_where_one_is_a_variable_below_the_workspace(loop: Loop, tmp_path: Path) -> None:
    """E24"""
    here = tmp_path / "here"
    here.mkdir()
    run = ["loop", "run", "--once", "--sleep", "0"]
    assert loop.ws.process(*run, "--runtime-dir", "rt", env=changed({}), cwd=here).code == 0
    assert (here / "rt/single_agent_state.json").exists()
    assert loop.ws.process(*run, env=changed({"SINGLE_AGENT_RUNTIME_DIR": "rt"}), cwd=here).code == 0
    assert (loop.ws.root / "rt/single_agent_state.json").exists()


def test_e24_how_many_cycles(loop: Loop) -> None:
    """E24"""
    loop.ws.config("loop.max_cycles=1")

    def cycles(*flags: str, **environment: str | None) -> int:
        before = loop.state()["cycles"] if loop.folder.exists() else 0
        done = loop("run", "--sleep", "0", *flags, **environment)
        assert done.code == 0, done
        return int(loop.state()["cycles"]) - before

    assert cycles() == 1
    assert cycles(SINGLE_AGENT_MAX_CYCLES="2") == 2
    assert cycles("--max-cycles", "3", SINGLE_AGENT_MAX_CYCLES="2") == 3
    assert cycles("--once", SINGLE_AGENT_MAX_CYCLES="2") == 1


def test_e24_how_long_it_sleeps(loop: Loop) -> None:
    """E24"""
    loop.ws.config("loop.sleep_seconds=600")  # a command is waited for a minute

    for flags, environment in (([], "0"), (["--sleep", "0"], "600"), (["--sleep", "0.2"], "600")):
        assert loop("run", "--max-cycles", "2", *flags, SINGLE_AGENT_SLEEP_SECONDS=environment).code == 0
    process = loop.start("--max-cycles", "2", "--sleep", "600", SINGLE_AGENT_SLEEP_SECONDS="0")
    eventually(loop.asleep)
    assert process.poll() is None
    loop.end(process)


def test_e24_a_fresh_state(loop: Loop) -> None:
    """E24"""
    loop.ws.config("loop.init_on_start=true")

    def fresh(*flags: str, **environment: str | None) -> bool:
        assert loop("run", "--once", "--sleep", "0", *flags, **environment).code == 0
        return bool(loop.state()["cycles"] == 1)

    fresh()
    assert fresh()
    assert not fresh(SINGLE_AGENT_INIT_ON_START="0")
    assert fresh("--init", SINGLE_AGENT_INIT_ON_START="0")
    assert not fresh("--no-init", SINGLE_AGENT_INIT_ON_START="1")


def test_e24_rotation(loop: Loop) -> None:
    """E24: it has no variable."""
    loop.run("--once")
    assert loop.jobs() == []
    loop.ws.config("loop.auto_rotate=true", "loop.rotation=[git_status_summary]")
    loop.run("--once")
    loop.run("--once", "--no-auto-rotate")
    assert loop.jobs() == ["git_status_summary"]


def test_e24_the_turn_of_an_ai(loop: Loop) -> None:
    """E24"""
    loop.ws.config("loop.allow_ai_turn=true", "loop.ai_dry_run=true")

    def summary(*flags: str, **environment: str | None) -> str:
        return str(loop.once("ai_single_turn_bridge", None, *flags, **environment)["summary"])

    assert "dry run" in summary()
    assert "disabled" in summary(SINGLE_AGENT_ALLOW_AI_TURN="no")
    assert "blocked" in summary(SINGLE_AGENT_AI_DRY_RUN="off")
    assert "dry run" in summary("--allow-ai-turn", SINGLE_AGENT_ALLOW_AI_TURN="0")
    assert "disabled" in summary("--no-allow-ai-turn", SINGLE_AGENT_ALLOW_AI_TURN="TRUE")
    assert "blocked" in summary("--no-ai-dry-run", SINGLE_AGENT_AI_DRY_RUN="1")


def test_e24_where_the_log_is(loop: Loop, tmp_path: Path) -> None:
    """E24"""
    places = [loop.ws.root / "logs-of-the-loop", tmp_path / "variable", tmp_path / "flag"]
    loop.ws.config("loop.log_dir=logs-of-the-loop")
    loop.run("--once")
    loop.run("--once", SINGLE_AGENT_LOG_DIR=str(places[1]))
    loop.run("--once", "--log-dir", str(places[2]), SINGLE_AGENT_LOG_DIR=str(places[1]))
    for place in places:
        text = (place / "control_room.log").read_text()
        assert text.count("the loop is up") == 1, place
    assert not (loop.folder / "logs/control_room.log").exists()
    assert loop.here("tail").out == (places[0] / "control_room.log").read_text()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SINGLE_AGENT_MAX_CYCLES", "two"),
        ("SINGLE_AGENT_MAX_CYCLES", "0"),
        ("SINGLE_AGENT_MAX_CYCLES", "-1"),
        ("SINGLE_AGENT_MAX_CYCLES", "1.5"),
        ("SINGLE_AGENT_INIT_ON_START", "maybe"),
        ("SINGLE_AGENT_ALLOW_AI_TURN", "2"),
        ("SINGLE_AGENT_AI_DRY_RUN", "ja"),
        ("SINGLE_AGENT_TMUX_SESSION", "a:b"),
    ],
)
def test_e24_a_variable_that_cannot_be_meant_is_named(loop: Loop, variable: str, value: str) -> None:
    """E24"""
    done = loop("run", "--once", **{variable: value})
    refused(done, 2, variable)
    assert not loop.folder.exists()


def test_flags_that_contradict_one_another(loop: Loop) -> None:
    for flags in (["--once", "--loop"], ["--once", "--max-cycles", "2"], ["--target", "x"], ["--max-cycles", "0"]):
        assert loop.here("run", *flags).code == 2, flags
    assert not loop.folder.exists()


def test_a_workspace_that_is_none(tmp_path: Path, plain_environment: None) -> None:
    for argv in (["run", "--once"], ["status"], ["start"]):
        done = command("loop", *argv, "-C", str(tmp_path), env=changed({}))
        assert done.code != 0 and "Traceback" not in done.err and done.err.startswith("cleared: ")
