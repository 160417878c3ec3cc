"""The prompt of one cycle: PROMPT.md, the guardrails, the consensus and the cycle's number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.base.short_text import list_first

PROMPT_FILE: Final = "PROMPT.md"
_MAX_BYTES: Final = 4 << 20
_MOST_PATHS: Final = 100
"""That a cycle is told of."""
_GUARDRAILS: Final = """## Guardrails

- You work in a private clone. It has no remote; never push, and never change git's settings.
- Read `git status` before you change anything. Work on one thing, the Next Action, and finish it.
- Never touch books/, accounts/, queue/, logs/, import/, agents/approvals/, .env files, keys or credentials.
  What you change there is thrown away.
- Changes of agents/, scripts/, config.yaml, tests/cases/, rules/ and templates/ are checked and then shown to a person,
  who decides. Other files wait on a branch for a person.
- Nobody can answer a question now. Decide nothing that a person has to decide; write it into the consensus.
- Before you end, write memories/consensus.md anew. It must keep the headings `# Auto Company Consensus`,
  `## Company State` and `## Next Action`.
"""
_STALLED: Final = """
**The last two cycles ended with the same Next Action.** Do not repeat it. Find out why it does not get done, then do
something else or split it, and write another Next Action.
"""


def read_prompt(root: Path) -> bytes:
    """The content of PROMPT.md. Raises ``WorkspaceError`` where there is none, or it is empty."""
    path = root / PROMPT_FILE
    if not path.is_file() or path.is_symlink():
        raise WorkspaceError(
            "there is no prompt; nothing was started", place=Place(PROMPT_FILE), remedy="Make one: cleared cycle init."
        )
    data = read_stable(path, _MAX_BYTES, shown=PROMPT_FILE)[0]
    if not data.strip():
        raise WorkspaceError("it is empty; nothing was started", place=Place(PROMPT_FILE), remedy="Say what to do.")
    return data


def describe_pending(waiting: Iterable[str], declined: Sequence[str]) -> str:
    """The part of the prompt that says what became of the work of earlier cycles; empty where there is nothing."""
    parts = []
    if waits := list_first(sorted(waiting), _MOST_PATHS):
        parts.append(f"In your clone, and waiting for a person, who may still refuse it: {waits}.")
    if gone := list_first(declined, _MOST_PATHS):
        parts.append(f"A person has refused this, so it is not in your clone; do not make it again: {gone}.")
    return "\n## The work of earlier cycles\n\n" + "\n".join(parts) + "\n" if parts else ""


def assemble_prompt(prompt: bytes, consensus: bytes, cycle: int, *, stalled: bool, waits: str = "") -> str:
    """The whole text that goes to the engine's standard input. ``stalled``: the Next Action was the same twice;
    ``waits``: as ``describe_pending`` has it."""
    warning = _STALLED if stalled else ""
    text, state = (data.decode("utf-8", "replace") for data in (prompt, consensus))
    return (
        f"{text.rstrip()}\n\n---\n\n{_GUARDRAILS}{warning}{waits}\n---\n\n"
        f"## Current consensus (memories/consensus.md)\n\n"
        f"{state.strip()}\n\n---\n\nThis is cycle #{cycle}. Act on the Next Action.\n"
    )
