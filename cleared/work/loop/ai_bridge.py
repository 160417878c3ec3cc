"""The job type for one turn of an AI: disabled unless allowed, and then only a dry run. It never starts an engine."""

from __future__ import annotations

from typing import Final

from cleared.base.clock import Clock, format_iso
from cleared.base.safe_files import write_atomic
from cleared.jobs import file_schemas
from cleared.jobs.job_types import JobType
from cleared.jobs.records import JobRequest
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.work.loop.loop_settings import LoopSettings

REFERENCE: Final = "scripts/freedom_claude_loop_single_agent_v3.sh"
"""What the loop contract names for a real bridge. It is never executed."""

_PROMPT: Final = """# One turn of work

Job {job}, asked for by {by} at {at}.

Target: {target}

Read the loop's state in {tree}. Work on one thing only. Read `git status` before you change anything. Do not read
.env files, keys or credentials. Decide nothing that a person has to decide: propose it. When done, say in one line
what you did.
"""


def run_ai_turn(
    runtime: RuntimeDirectory, request: JobRequest, settings: LoopSettings, clock: Clock
) -> tuple[bool, str]:
    """Whether it succeeded, and the summary. A dry run writes a bridge manifest and a prompt into the jobs folder."""
    if not settings.allow_ai_turn:
        return False, (
            "the AI bridge is disabled: nothing was started (SINGLE_AGENT_ALLOW_AI_TURN=1 with "
            "SINGLE_AGENT_AI_DRY_RUN=1 makes a dry run)"
        )
    if not settings.ai_dry_run:
        return False, (
            "the AI bridge is blocked: a live turn is not available, even where it is allowed; nothing was started "
            "(SINGLE_AGENT_AI_DRY_RUN=1 makes a dry run)"
        )
    job_id = request["job_id"]
    prompt = runtime.jobs_folder / f"{job_id}.bridge_prompt.md"
    text = _PROMPT.format(
        job=job_id,
        by=request["by"],
        at=request["enqueued_at"],
        target=request["target"],
        tree=runtime.display_path(runtime.tree_path),
    )
    write_atomic(prompt, text.encode("utf-8"), fsync=False, mode=file_schemas.PRIVATE_MODE)
    file_schemas.write_record(
        "bridge",
        runtime.jobs_folder / f"{job_id}.bridge_manifest.json",
        {
            "schema_version": "single_agent_bridge_manifest_v1",
            "job_id": job_id,
            "target": request["target"],
            "mode": "dry_run",
            "created_at": format_iso(clock.now()),
            "engine_invoked": False,
            "reference_command": REFERENCE,
            "prompt_path": runtime.display_path(prompt),
        },
    )
    shown = runtime.display_path(prompt)
    return True, f"dry run: bridge manifest and prompt written to {shown}; no engine was started"


JOB_TYPES: Final = (
    JobType(
        "ai_single_turn_bridge",
        "One turn of an AI: disabled, or a dry run that asks nobody.",
        function="cleared.work.loop.ai_bridge:run_ai_turn",
        default_target="one AI turn",
        rotates=False,
        in_loop=True,
        reads=(),
    ),
)
