"""One turn of an AI as a job: disabled unless allowed, and even then only as a dry run. No engine is ever started."""

from __future__ import annotations

from typing import Final

from cleared.clock import Clock, format_iso
from cleared.jobs import file_schemas
from cleared.jobs.records import JobRequest
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.loop.loop_settings import LoopSettings
from cleared.workspace.safe_files import write_atomic

REFERENCE: Final = "scripts/freedom_claude_loop_single_agent_v3.sh"
"""What the contract names for a future real bridge. It is never executed."""

_PROMPT: Final = """# One turn of work

Job {job}, asked for by {by} at {at}.

Target: {target}

Read the loop's state in {tree}. Work on one thing only. Read `git status` before you change anything. Do not read
.env files, keys or credentials. Decide nothing that a person has to decide: propose it. When done, say in one line
what you did.
"""


def turn(runtime: RuntimeDirectory, item: JobRequest, knobs: LoopSettings, clock: Clock) -> tuple[bool, str]:
    """Whether it succeeded, and the summary. A dry run leaves a bridge manifest and a prompt in the jobs folder."""
    if not knobs.allow_ai_turn:
        return False, (
            "the AI bridge is disabled: nothing was started (SINGLE_AGENT_ALLOW_AI_TURN=1 with "
            "SINGLE_AGENT_AI_DRY_RUN=1 makes a dry run)"
        )
    if not knobs.ai_dry_run:
        return False, (
            "the AI bridge is blocked: a live turn is not available, even where it is allowed; nothing was started "
            "(SINGLE_AGENT_AI_DRY_RUN=1 makes a dry run)"
        )
    job = item["job_id"]
    prompt = runtime.jobs_folder / f"{job}.bridge_prompt.md"
    text = _PROMPT.format(
        job=job,
        by=item["by"],
        at=item["enqueued_at"],
        target=item["target"],
        tree=runtime.display_path(runtime.tree_path),
    )
    write_atomic(prompt, text.encode("utf-8"), fsync=False, mode=file_schemas.PRIVATE_MODE)
    file_schemas.write_record(
        "bridge", runtime.jobs_folder / f"{job}.bridge_manifest.json",
        {"schema_version": "single_agent_bridge_manifest_v1", "job_id": job, "target": item["target"],
         "mode": "dry_run", "created_at": format_iso(clock.now()), "engine_invoked": False,
         "reference_command": REFERENCE,
         "prompt_path": runtime.display_path(prompt)},
    )  # fmt: skip
    return True, f"dry run: bridge manifest and prompt written to {runtime.display_path(prompt)}; no engine was started"
