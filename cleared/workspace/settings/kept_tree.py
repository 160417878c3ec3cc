"""The tree of ``config.yaml`` as it was parsed last: to load a YAML parser takes longer than all else of the settings.

It is kept sealed, under a name that is made from the text: what it says of that text is what the parser said.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import msgspec

from cleared.workspace.sealed_files import SealedFiles
from cleared.workspace.settings.yaml_tree import Node, parse_yaml

_VERSION: Final = b"yaml tree 1"
"""Raised with every change of what ``parse_yaml`` makes of a text."""
_SUFFIX: Final = ".tree"


def parse_kept(text: str, state_dir: Path) -> Node | None:
    """What ``parse_yaml`` makes of a text, from the sealed files in ``state_dir`` where they have it. Raises
    ``TreeError``."""
    if not state_dir.is_dir():
        return parse_yaml(text)
    files = SealedFiles(state_dir, _VERSION)
    name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() + _SUFFIX
    kept = files.read(name)
    if kept is not None:
        return msgspec.json.decode(kept, type=Node | None)
    root = parse_yaml(text)
    files.write(name, msgspec.json.encode(root))
    files.remove_others((name,), (_SUFFIX,), spare=2)
    return root
