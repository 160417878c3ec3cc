from __future__ import annotations

from collections.abc import Iterator

import pytest

from cleared.changes.backup import sealed_stream


@pytest.fixture(scope="module", autouse=True)
def cheap_passphrases() -> Iterator[None]:
    """An eighth of the work for each passphrase in this process; commands in processes of their own do all of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed_stream, "SCRYPT_N", 1 << 14)
        yield
