"""Job types: each declared once, with what it runs and what it may touch. Nothing else can be a job.

A built-in job type is declared beside its function, in one of ``BUILT_IN_MODULES`` or a module that a domain names; a
plug-in's is an entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, UsageError, WorkspaceError
from cleared.base.safe_names import require_safe_name
from cleared.domains.installed_domains import cache_by_domains, load_domains
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.workspace.plugin_group import PluginGroup
from cleared.workspace.settings.model import Config

PLUGINS: Final = PluginGroup("job type", "cleared.jobs", "loop.plugins")
BUILT_IN_MODULES: Final = (
    "cleared.work.loop.report_jobs",
    "cleared.work.loop.ai_bridge",
    "cleared.work.loop.workspace_jobs",
    "cleared.work.task_runs.task_jobs",
    "cleared.work.cycles.cycle_jobs",
)
"""Each has ``JOB_TYPES``. They are loaded by name, as plug-ins are: what a job runs may use every layer above."""
AGENT_PREFIX: Final = "agent:"
"""``agent:NAME`` is short for the job type ``agent_run`` with the target NAME."""
PROTECTED: Final = (".git", ".cleared", "agents", "scripts")
"""Folders that no plug-in's job may write."""
_BUILT_IN_ONLY: Final = ("reads_setting", "confinement", "opt_in", "configured_by", "paced_by", "counts_failures")


class JobType(Struct, frozen=True):
    """A type of job. Either ``command`` or ``function`` says what it runs."""

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
    """Key of ``loop:`` that names what it reads where no target was given: ``JobContext.default_paths``."""
    writes: tuple[str, ...] = ()
    """Paths below the workspace that it may write. A plug-in's may not be the whole workspace, nor ``PROTECTED``."""
    timeout: float = 60.0
    """Seconds after which it is stopped."""
    max_output: int = 256 * 1024
    """Bytes of output that are kept."""
    rotates: bool = True
    """Whether ``loop.rotation`` may name it."""
    in_loop: bool = False
    """Whether the loop's own code runs it, without a process of its own. Not for plug-ins."""
    confinement: Literal["fence", "engine"] = "fence"
    """``fences``: no network, and no other file than ``reads``, ``writes`` and its own folder. ``engine``: the host's
    code, with the environment of the loop, starts a coding engine. That has the network, and of the files its clone,
    its credential and programs. Such a job is ended where its loop is killed. Not for plug-ins."""
    opt_in: bool = False
    """Whether only a loop that was started with ``--allow-ai`` runs it."""
    configured_by: str = ""
    """``module:function``, called with the job type and the configuration: returns it with the limits that the settings
    name, and raises ``PolicyError`` where they forbid it. Not for plug-ins."""
    paced_by: str = ""
    """``module:function``, called with the workspace: returns the ``JobPace``. Not for plug-ins."""
    counts_failures: bool = True
    """Whether failures in a row stop the loop (``loop.max_failures``)."""

    def read_pace(self, root: Path) -> JobPace:
        """When a job of this type may start in the workspace at ``root``."""
        pace: JobPace = load_function(self.paced_by)(root) if self.paced_by else JobPace()
        return pace


class JobPace(Struct, frozen=True):
    """When a job may start: not before ``not_before`` (UTC; None: at once), and not while ``is_held``.
    ``goes_on_since``: another is to follow the one that has ended, as was decided then; None where none is."""

    not_before: datetime | None = None
    is_held: bool = False
    goes_on_since: datetime | None = None


def load_function(reference: str) -> Callable[..., Any]:
    """Import the function that ``module:name`` names."""
    module, _, name = reference.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def load_job_types(config: Config) -> Mapping[str, JobType]:
    """All job types by name. Raises ``WorkspaceError`` for a plug-in that is missing or wrong."""
    return _add_plugins(config.loop.plugins) if config.loop.plugins else load_built_in()


@cache_by_domains
def load_built_in() -> Mapping[str, JobType]:
    """The built-in job types by name."""
    modules = [*BUILT_IN_MODULES, *(module for domain in load_domains() for module in domain.job_type_modules)]
    declared = [job_type for module in modules for job_type in import_module(module).JOB_TYPES]
    return MappingProxyType({job_type.name: job_type for job_type in declared})


@cache_by_domains
def _add_plugins(plugins: tuple[str, ...]) -> Mapping[str, JobType]:
    """Cached, as looking up an entry point reads the metadata of every installed package."""
    job_types = dict(load_built_in())
    for name in dict.fromkeys(plugins):
        if name in job_types:
            raise PLUGINS.error(name, "there is such a job type already")
        job_types[name] = _load_plugin(name)
    return MappingProxyType(job_types)


def read_rotation(config: Config) -> tuple[str, ...]:
    """The names in ``loop.rotation``. Raises ``WorkspaceError`` for one that does not exist, or may not rotate."""
    job_types = load_job_types(config)
    place = Place(file="config.yaml", field="loop.rotation")
    for name in config.loop.rotation:
        if name not in job_types:
            raise WorkspaceError(f"there is no job type {name!r}", place=place, remedy="See: cleared loop job-types.")
        if not job_types[name].rotates or job_types[name].target == "agent":
            raise WorkspaceError(f"{name} does not rotate", place=place, remedy="Take it out; enqueue it by hand.")
    return config.loop.rotation


def resolve_request(config: Config, root: Path, name: str, target: str | None) -> tuple[JobType, str]:
    """The job type and the target of a job that is asked for in the workspace at ``root``.

    Raises ``PolicyError`` where no such job may be run.
    """
    if name.startswith(AGENT_PREFIX) and target is None:
        name, target = "agent_run", name.removeprefix(AGENT_PREFIX)
    job_types = load_job_types(config)
    job_type = job_types.get(name)
    if job_type is None:
        from difflib import get_close_matches

        near = get_close_matches(name, list(job_types), 1)
        raise PolicyError(
            f"{name[:60]!r} is no job type that may be run",
            place=Place(field="kind"),
            remedy=f"Did you mean {near[0]}?" if near else "See: cleared loop job-types.",
        )
    if job_type.configured_by:
        job_type = load_function(job_type.configured_by)(job_type, config)
    return job_type, _check_target(job_type, target, ForbiddenFiles(root, config.loop.forbidden_paths))


def _check_target(job_type: JobType, target: str | None, forbidden: ForbiddenFiles) -> str:
    """The target, or the default one. Raises ``PolicyError`` where the job type does not take it."""
    if target is None or target == job_type.default_target:
        if job_type.target == "agent":
            raise PolicyError(f"{job_type.name} needs the name of an agent", remedy="Give it with --target NAME.")
        return job_type.default_target
    if len(target) > 200 or not target.isprintable():
        raise PolicyError("a target is at most 200 characters that can be seen", place=Place(field="target"))
    if job_type.target == "path":
        forbidden.resolve_path(target)
    elif job_type.target == "agent":
        try:
            require_safe_name(target, "agent")
        except UsageError as error:
            raise PolicyError(str(error), place=Place(field="target")) from None
    elif target:
        raise PolicyError(f"{job_type.name} takes no target", place=Place(field="target"), remedy="Leave it out.")
    return target


def _load_plugin(name: str) -> JobType:
    """The job type of an entry point. Raises ``WorkspaceError`` where it is missing or wrong."""
    job_type = PLUGINS.load(name, JobType)
    for problem in _find_problems(job_type):
        raise PLUGINS.error(name, problem)
    return job_type


def _find_problems(job_type: JobType) -> Iterator[str]:
    """What a plug-in's job type may not have."""
    if bool(job_type.command) == bool(job_type.function) or job_type.in_loop:
        yield "a plug-in's job type has either a command or a function"
    if job_type.timeout <= 0 or job_type.max_output < 0:
        yield "its limits must be positive"
    for name in _BUILT_IN_ONLY:
        if getattr(job_type, name) != getattr(JobType("", ""), name):
            yield f"it may not have what only built-in job types have ({name})"
    tops = [path.strip("/").split("/")[0] for path in job_type.writes]
    if any(top in ("", ".", "..", *PROTECTED) for top in tops) or any(".." in p.split("/") for p in job_type.writes):
        yield f"it may not write the whole workspace, nor {', '.join(PROTECTED)}"
