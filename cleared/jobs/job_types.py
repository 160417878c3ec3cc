"""Kinds of jobs: each declared once, with what it runs and what it may do. Nothing else can be a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from cleared.config.model import Config
from cleared.errors import Place, PolicyError, UsageError, WorkspaceError
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.workspace.safe_names import require_safe_name

ENTRY_POINT_GROUP: Final = "cleared.jobs"
_PROTECTED: Final = (".git", ".cleared", "agents", "scripts")
"""What no plug-in's job may write."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
AGENT_RUN: Final = "cleared.loop.workspace_jobs:agent_run"
AGENT_PREFIX: Final = "agent:"
"""``agent:NAME`` is short for the kind ``agent_run`` with the target NAME."""


@dataclass(frozen=True, slots=True)
class JobType:
    """A kind of job. Either ``command`` or ``function`` says what it runs."""

    name: str
    about: str
    """One line for people."""
    command: tuple[str, ...] = ()
    """A fixed argument vector; no shell. ``{target}`` as an argument of its own is the only thing filled in."""
    function: str = ""
    """``module:function``, called with a ``JobContext`` in a process of its own; returns the summary."""
    target: Literal["none", "path", "agent"] = "none"
    """What ``--target`` may be: nothing, a path below the workspace, or the name of an agent."""
    default_target: str = ""
    """What results say where no target was given."""
    reads: tuple[str, ...] = (".",)
    """Paths below the workspace that it may read, beside its target; never what is forbidden."""
    reads_setting: str = ""
    """Key of ``loop:`` that names what it reads where no target was given; its function gets it as ``settings``."""
    writes: tuple[str, ...] = ()
    """Paths below the workspace that it may write. Plug-ins may not ask for the whole, or for ``_KEPT``."""
    timeout: float = 60.0
    """Seconds after which it is stopped."""
    max_output: int = 256 * 1024
    """Bytes of output that are kept."""
    rotates: bool = True
    """Whether ``loop.rotation`` may name it."""
    in_loop: bool = False
    """Whether it is done by the loop's own code, with no process of its own. Not for plug-ins."""


def load_job_types(config: Config) -> Mapping[str, JobType]:
    """All kinds by name. Raises ``WorkspaceError`` for a plug-in that is missing or wrong."""
    return _add_plugins(config.loop.plugins) if config.loop.plugins else BUILT_IN


@cache
def _add_plugins(plugins: tuple[str, ...]) -> Mapping[str, JobType]:
    """To look a plug-in up reads the metadata of every installed package: once is enough."""
    found = dict(BUILT_IN)
    for name in dict.fromkeys(plugins):
        if name in found:
            raise _plugin_error(name, "there is such a kind already")
        found[name] = _load_plugin(name)
    return MappingProxyType(found)


def read_rotation(config: Config) -> tuple[str, ...]:
    """The kinds that rotate, in order. Raises ``WorkspaceError`` for one that is none, or may not rotate."""
    known = load_job_types(config)
    place = Place(file="config.yaml", field="loop.rotation")
    for name in config.loop.rotation:
        if name not in known:
            raise WorkspaceError(f"there is no kind of job {name!r}", place=place, remedy="See: cleared loop kinds.")
        if not known[name].rotates or known[name].target == "agent":
            raise WorkspaceError(f"{name} does not rotate", place=place, remedy="Take it out; enqueue it by hand.")
    return config.loop.rotation


def resolve_request(config: Config, root: Path, kind: str, target: str | None) -> tuple[JobType, str]:
    """The kind and the target that were asked for in the workspace at ``root``, checked.

    Raises ``PolicyError`` where no such job may be run.
    """
    if kind.startswith(AGENT_PREFIX) and target is None:
        kind, target = "agent_run", kind.removeprefix(AGENT_PREFIX)
    known = load_job_types(config)
    found = known.get(kind)
    if found is None:
        from difflib import get_close_matches

        near = get_close_matches(kind, list(known), 1)
        raise PolicyError(
            f"{kind[:60]!r} is no kind of job that may be run",
            place=Place(field="kind"),
            remedy=f"Did you mean {near[0]}?" if near else "See: cleared loop kinds.",
        )
    return found, _check_target(found, target, ForbiddenFiles(root, config.loop.forbidden_paths))


def _check_target(kind: JobType, target: str | None, forbidden: ForbiddenFiles) -> str:
    if target is None or target == kind.default_target:
        if kind.target == "agent":
            raise PolicyError(f"{kind.name} needs the name of an agent", remedy="Give it with --target NAME.")
        return kind.default_target
    if len(target) > 200 or not target.isprintable():
        raise PolicyError("a target is at most 200 characters that can be seen", place=Place(field="target"))
    if kind.target == "path":
        forbidden.resolve_path(target)
    elif kind.target == "agent":
        try:
            require_safe_name(target, "agent")
        except UsageError as error:
            raise PolicyError(str(error), place=Place(field="target")) from None
    elif target:
        raise PolicyError(f"{kind.name} takes no target", place=Place(field="target"), remedy="Leave it out.")
    return target


def _load_plugin(name: str) -> JobType:
    from importlib.metadata import entry_points

    points = list(entry_points(group=ENTRY_POINT_GROUP, name=name))
    if len(points) != 1:
        raise _plugin_error(name, "two packages have it" if points else "it is not installed")
    try:
        kind = points[0].load()
    except Exception as error:  # somebody else's code
        raise _plugin_error(name, f"it cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(kind, JobType) or kind.name != name or not _NAME.fullmatch(name):
        raise _plugin_error(name, f"{points[0].value} is no kind of that name")
    for problem in _find_problems(kind):
        raise _plugin_error(name, problem)
    return kind


def _find_problems(kind: JobType) -> Iterator[str]:
    if bool(kind.command) == bool(kind.function) or kind.in_loop:
        yield "a plug-in's kind has either a command or a function"
    if kind.timeout <= 0 or kind.max_output < 0:
        yield "its limits must be positive"
    if kind.reads_setting:
        yield "it may not have what only built-in kinds have (reads_setting)"
    if any(
        path.strip("/").split("/")[0] in ("", ".", "..", *_PROTECTED) or ".." in path.split("/") for path in kind.writes
    ):
        yield f"it may not write the whole workspace, nor {', '.join(_PROTECTED)}"


def _plugin_error(name: str, what: str) -> WorkspaceError:
    return WorkspaceError(
        f"the kind of job {name!r} cannot be had: {what}",
        place=Place(file="config.yaml", field="loop.plugins"),
        remedy=f"Have one package with the entry point {name!r} in the group {ENTRY_POINT_GROUP}, or remove it.",
    )


_OPERATIONAL = (".cleared",)

BUILT_IN: Final[Mapping[str, JobType]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            JobType(
                "continuity_scan", "Which documents there are, how large, and when each was last changed.",
                function="cleared.loop.report_jobs:continuity_scan",
                target="path", default_target="continuity documents",
                reads=(),
                reads_setting="continuity",
            ),
            JobType(
                "akela_meta_summary", "What the report named in loop.akela_report says.",
                function="cleared.loop.report_jobs:akela_meta_summary", target="path",
                default_target="Akela meta report", reads=(),
                reads_setting="akela_report",
            ),
            JobType(
                "git_status_summary", "Which files differ from the last commit (git status --short).",
                function="cleared.loop.report_jobs:git_status_summary", default_target="git status",
            ),
            JobType(
                "ai_single_turn_bridge", "One turn of an AI: disabled, or a dry run that asks nobody.",
                function="cleared.loop.ai_bridge:turn", default_target="one AI turn", rotates=False, in_loop=True,
                reads=(),
            ),
            JobType(
                "queue_summary", "What waits in the review queue.",
                function="cleared.loop.workspace_jobs:queue_summary",
                default_target="review queue", writes=_OPERATIONAL,
            ),
            JobType(
                "books_check", "Check every invariant of the books.",
                function="cleared.loop.workspace_jobs:books_check",
                default_target="books", writes=_OPERATIONAL, timeout=600.0,
            ),
            JobType(
                "runs_report", "How the last runs of the agents went.",
                function="cleared.loop.workspace_jobs:runs_report",
                default_target="last runs", writes=_OPERATIONAL,
            ),
            JobType(
                "agent_run", "Run an agent, as cleared agent run does (short: agent:NAME).",
                function=AGENT_RUN, target="agent", writes=(".",),
                timeout=3600.0, rotates=False,
            ),
            JobType(
                "gate_check_all", "Every check of the gate over all agents.",
                function="cleared.loop.workspace_jobs:gate_check_all", default_target="all agents",
                writes=_OPERATIONAL, timeout=1800.0,
            ),
        )
    }
)  # fmt: skip
