"""Rows of ``cleared doctor`` about the machine: Python, packages, git, sandbox, fence, temporary files."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cleared import __version__
from cleared.base.clock import SystemClock
from cleared.base.errors import ClearedError
from cleared.cli.doctor_row import Row, check_space, run_check
from cleared.git.git_process import NOT_INSTALLED, Git, find_git
from cleared.processes.fences import list_walls
from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.limits import Limits
from cleared.sandbox.monty import Sandbox

MIN_GIT: Final = (2, 28)


def check_machine() -> Iterator[Row]:
    import platform

    new = sys.version_info >= (3, 11)
    yield Row(
        "python",
        "ok" if new else "fail",
        f"{platform.python_version()} ({sys.executable})",
        "" if new else "Use Python 3.11 or newer.",
    )
    yield Row("platform", "ok", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Row("cleared", "ok", __version__)
    yield run_check("dependencies", _check_dependencies)
    yield run_check("git", _check_git)
    yield from _check_sandbox()
    yield from _check_fence()
    yield run_check("temporary files", _check_temporary_files)


def _check_dependencies() -> Row:
    from importlib.metadata import PackageNotFoundError, requires, version

    installed, wrong = [], []
    for text in requires("cleared") or []:
        spec, _, marker = text.partition(";")
        if "extra" in marker or ("win32" in marker and sys.platform != "win32"):
            continue
        name = re.split(r"[<>=!~ \[]", spec.strip())[0]
        try:
            have = version(name)
        except PackageNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        installed.append(f"{name} {have}")
        requirement = re.search(r"(==|>=)\s*([0-9.]+)", spec)
        if requirement and not (
            _version_numbers(have) >= _version_numbers(requirement[2])
            if requirement[1] == ">="
            else have == requirement[2]
        ):
            wrong.append(f"{name} is {have}, not {requirement[1]} {requirement[2]}")
    if wrong:
        return Row("dependencies", "fail", "; ".join(wrong), "Install again, in the checkout: pip install .")
    return Row("dependencies", "ok", ", ".join(installed))


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version)[:3])


def _check_git() -> Row:
    path = find_git()
    version = Git(Path.cwd()).run("version").decode("utf-8", "replace").strip().removeprefix("git version ")
    if _version_numbers(version)[:2] < MIN_GIT:
        return Row("git", "fail", f"{version} ({path}) is too old", NOT_INSTALLED)
    return Row("git", "ok", f"{version} ({path})")


def _check_sandbox() -> Iterator[Row]:
    clock = SystemClock()
    try:
        with Sandbox(confine="best") as sandbox:
            began = clock.monotonic()
            answer = sandbox.run(
                ScriptRun(
                    "1 + 1",
                    file="doctor",
                    call=lambda *_: None,
                    names=(),
                    limits=Limits(),
                    now=clock.now(),
                    seed="doctor",
                )
            )
            took = (clock.monotonic() - began) * 1000
            level = sandbox.level
    except ClearedError as e:
        yield Row("sandbox", "fail", e.message, e.remedy or "Install again, in the checkout: pip install .")
        return
    if answer != 2:
        yield Row(
            "sandbox", "fail", f"it says that 1 + 1 is {answer!r}", "Install again, in the checkout: pip install ."
        )
        return
    yield Row("sandbox", "ok", f"a worker started and ran 1 + 1 in {took:.0f} ms")
    if level.is_full:
        yield Row("confinement", "ok", f"{level} (Landlock ABI {level.landlock}), read back from a live worker")
        return
    remedy = (
        "Use a kernel with Landlock (5.13 or newer) and seccomp; in a container, allow both."
        if sys.platform == "linux"
        else "Only Linux has it. Scripts stay inside the interpreter all the same."
    )
    yield Row("confinement", "warn", f"{level}: beneath the interpreter, a worker is not fully confined", remedy)


def _check_fence() -> Iterator[Row]:
    """What holds jobs, verification commands and engines; a machine without it runs them with less."""
    remedy = (
        "Use a kernel from 5.13 on with Landlock, and allow user namespaces (in a container and in the distribution's "
        "settings); sandbox.confine: require runs nothing without."
        if sys.platform == "linux"
        else "Only Linux has it. Run jobs and engines of others on Linux."
    )
    for wall in list_walls():
        yield Row(wall.name, "ok" if wall.is_there else "warn", wall.gives, "" if wall.is_there else remedy)


def _check_temporary_files() -> Row:
    folder = Path(tempfile.gettempdir())
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")
    return check_space("temporary files", folder)
