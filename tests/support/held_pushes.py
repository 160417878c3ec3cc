"""A git host whose pushes wait."""

from __future__ import annotations

from pathlib import Path


def hold_push(shared: Path, folder: Path, name: str = "pre-receive") -> Path:
    """A push to ``shared`` waits until the file is gone; the file ``…-waits`` says that one does. ``name``: the hook
    in which it waits, *post-receive* where the push has been taken."""
    held = folder / "held"
    held.touch()
    hook = shared / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n: > {held}-waits\nwhile [ -e {held} ]; do sleep 0.05; done\n")
    hook.chmod(0o755)
    return held
