"""What a command imports before it is done: each package costs every call of it some milliseconds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from harness import Workspace

CODE = """
import atexit, json, os, sys
before = set(sys.modules)  # a virtual environment may import of its own: setuptools' _distutils_hack

def report():
    packages, parts = set(), set()
    for name, module in [pair for pair in sys.modules.items() if pair[0] not in before]:
        if "site-packages" in (getattr(module, "__file__", None) or ""):
            packages.add(name.split(".")[0])
        if name.startswith("cleared."):
            parts.add(name.removeprefix("cleared."))
    standard = {"asyncio", "ssl", "sqlite3", "logging", "zoneinfo", "ctypes"} & (set(sys.modules) - before)
    os.write(2, b"\\nimported " + json.dumps([sorted(packages), sorted(parts), sorted(standard)]).encode())

atexit.register(report)
from cleared.cli import main
main()
"""
RECORDS = {"msgspec", "typing_extensions"}
TYPER = RECORDS | {"typer", "annotated_doc", "shellingham"}
OLDER_TYPER = {"click", "typing_extensions"}
VALUES = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
"""What typer takes to turn an option's text into its value."""
MONTY = {"pydantic_monty", "typing_extensions", "opentelemetry", "importlib_metadata", "zipp"}
SIGNING = {"cryptography", "_cffi_backend", "cffi", "pycparser"}
START = ("cli", "base.errors", "base.bounds", "base.short_text", "base.terminal", "base.unseen_characters")
BRIDGE = ("sandbox", "processes", "base")
NO_BOOKS = ("api", "cli.demo", "cli.tui", "gate", "jobs", "meta", "review", "work")


def outside(parts: set[str], *allowed: str) -> set[str]:
    """The modules that are in none of these rooms (``base`` is there with ``base.errors``, but empty)."""
    return {
        name for name in parts - inside(parts, *allowed) if not any(room.startswith(f"{name}.") for room in allowed)
    }


def inside(parts: set[str], *rooms: str) -> set[str]:
    """The modules that are in one of these rooms."""
    return {name for name in parts if any(f"{name}.".startswith(f"{room}.") for room in rooms)}


def imports(*argv: str, root: str | None = None) -> tuple[set[str], set[str], set[str]]:
    """Installed packages, modules of the program, and costly modules of the standard library."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", CODE, *argv],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=root,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    packages, parts, standard = json.loads(done.stderr.rpartition("\nimported ")[2])
    return set(packages), set(parts), set(standard)


def test_help_imports_typer_and_records() -> None:
    packages, parts, standard = imports("--help")
    assert packages <= TYPER | OLDER_TYPER
    assert not outside(parts, *START)
    assert not standard


def test_a_bridge_starts_without_typer() -> None:
    packages, parts, standard = imports("bridge")
    assert packages <= RECORDS, "the sandbox's client is imported by the first script"
    assert not outside(parts, *START, *BRIDGE)
    assert standard <= {"ctypes"}


@pytest.mark.parametrize(
    ("argv", "installed", "library"),
    [
        (("journal", "balance"), {"yaml", "_yaml"}, {"sqlite3", "zoneinfo"}),
        (
            ("agent", "run", "ingest"),
            {"yaml", "_yaml"} | MONTY | SIGNING,
            {"asyncio", "ssl", "sqlite3", "logging", "zoneinfo", "ctypes"},
        ),
    ],
)
def test_a_command_imports_what_it_needs(
    ws: Workspace, argv: tuple[str, ...], installed: set[str], library: set[str]
) -> None:
    """GitPython, rich, jsonschema and httpx are not among it."""
    ws.drop("january.csv")
    ws.ok("config", "get", "business.name")  # the first command on a machine verifies who approved the settings
    packages, parts, standard = imports(*argv, root=str(ws.root))
    assert packages <= TYPER | OLDER_TYPER | VALUES | installed
    known = {"gate", "gate.manual_runs", "jobs", "jobs.input_files", "jobs.forbidden_files"}
    assert inside(parts, *NO_BOOKS) <= known, "what starts a run, and no check of it; and what is no input"
    assert not inside(parts, "service")
    assert standard <= library


@pytest.mark.parametrize(
    "argv",
    [("journal", "balance"), ("journal", "list", "--month", "2025-01"), ("queue", "list"), ("report", "pnl")],
)
def test_books_that_are_indexed_are_read_without_opening_the_workspace(
    posted: Workspace, argv: tuple[str, ...]
) -> None:
    for _ in range(2):  # the first one on a machine notes what it knows
        assert posted(*argv).code == 0
    packages, parts, _ = imports(*argv, root=str(posted.root))
    assert packages <= TYPER | OLDER_TYPER | VALUES
    assert not outside(parts, *START, "base", "books", "cards", "workspace")
    assert argv[0] != "queue" or not inside(parts, "books", "workspace.settings")
