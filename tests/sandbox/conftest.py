from __future__ import annotations

from collections.abc import Iterator

import pytest

from cleared.sandbox.monty import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox
