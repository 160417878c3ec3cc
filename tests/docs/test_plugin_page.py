"""The importer that the plug-in page shows is one: its own example passes the contract."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "importer-plugin.md"


def test_the_shown_importer_passes_the_shown_contract() -> None:
    code = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(code) == 2
    exec("\n".join(code), {"__name__": "tally_import"})
