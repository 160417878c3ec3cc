"""What systemd has to say about the file of a service."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def verify_unit(path: Path, home: Path) -> str:
    """What ``systemd-analyze verify`` has to say: nothing where all is well. Without it the test ends here."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime:  # names of sockets in it are short
        done = subprocess.run(
            ["systemd-analyze", "verify", "--user", "--man=no", str(path)],
            capture_output=True,
            check=False,
            env={**os.environ, "XDG_RUNTIME_DIR": runtime, "HOME": str(home), "LC_ALL": "C.UTF-8"},
        )
    said = (done.stdout + done.stderr).decode()
    assert bool(said) == bool(done.returncode), said
    return said
