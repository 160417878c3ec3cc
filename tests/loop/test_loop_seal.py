"""The key that queued jobs are sealed with."""

from __future__ import annotations

from pathlib import Path

import pytest

from cleared.jobs.signing import KEY_NAME, JobSigner


def test_the_key_is_its_owners_alone_and_a_seal_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"job_id": "job_1", "kind": "git_status_summary", "target": "docs"}
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "home"))
    here = JobSigner(tmp_path / "runtime")
    sealed = item | {"seal": here.sign(item)}
    assert (tmp_path / "home" / KEY_NAME).stat().st_mode & 0o777 == 0o600
    assert here.is_valid(sealed) and not here.is_valid(sealed | {"target": "books"})
    assert not JobSigner(tmp_path / "elsewhere").is_valid(sealed), "it is for one runtime directory"
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "another"))
    assert not JobSigner(tmp_path / "runtime").is_valid(sealed), "and for one key"
