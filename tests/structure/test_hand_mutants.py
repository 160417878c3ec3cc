"""The changes by hand can still be made."""

from __future__ import annotations

import pytest
from hand_mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: f"{each.file} {each.old.split()[-1]}")
def test_what_is_changed_stands_once_in_its_file(mutant: Mutant) -> None:
    text = (ROOT / "cleared" / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
