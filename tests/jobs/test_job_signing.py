"""The key that signs queued jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cleared.jobs.signing import KEY_NAME, JobSigner


def test_the_key_is_its_owners_alone_and_a_signature_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"job_id": "job_1", "kind": "git_status_summary", "target": "docs"}
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "home"))
    here = JobSigner(tmp_path / "runtime")
    signed = item | {"seal": here.sign(item)}
    assert (tmp_path / "home" / KEY_NAME).stat().st_mode & 0o777 == 0o600
    assert here.is_valid(signed) and not here.is_valid(signed | {"target": "books"})
    assert not JobSigner(tmp_path / "elsewhere").is_valid(signed), "it is for one runtime directory"
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "another"))
    assert not JobSigner(tmp_path / "runtime").is_valid(signed), "and for one key"
