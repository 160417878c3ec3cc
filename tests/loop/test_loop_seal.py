"""The key that queued jobs are sealed with."""

from __future__ import annotations

from pathlib import Path

import pytest

from cleared.jobs.signing import KEY, Sealer


def test_the_key_is_its_owners_alone_and_a_seal_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"job_id": "job_1", "kind": "git_status_summary", "target": "docs"}
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "home"))
    here = Sealer(tmp_path / "runtime")
    sealed = item | {"seal": here.seal(item)}
    assert (tmp_path / "home" / KEY).stat().st_mode & 0o777 == 0o600
    assert here.holds(sealed) and not here.holds(sealed | {"target": "books"})
    assert not Sealer(tmp_path / "elsewhere").holds(sealed), "it is for one runtime directory"
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "another"))
    assert not Sealer(tmp_path / "runtime").holds(sealed), "and for one key"
