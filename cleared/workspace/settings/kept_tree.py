"""The tree of ``config.yaml`` as it was parsed last: to load a YAML parser takes longer than all else of the settings.

It is kept sealed, under a name that is made from the text: what it says of that text is what the parser said.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from cleared.workspace.sealed_files import SealedFiles
from cleared.workspace.settings import yaml_tree
from cleared.workspace.settings.yaml_tree import Node, parse_yaml

_SUFFIX: Final = ".tree"
_MAX_TEXT: Final = 64 << 10
"""Characters of a text whose tree is kept: that of a longer one is parsed about as quickly as it is read."""
_MAX_TREE: Final = 4 << 20


def parse_kept(text: str, state_dir: Path) -> Node | None:
    """What ``parse_yaml`` makes of a text, from the sealed files in ``state_dir`` where they have it. Raises
    ``TreeError``."""
    if len(text) > _MAX_TEXT or not state_dir.is_dir():
        return parse_yaml(text)
    files = SealedFiles(state_dir, _parser_version())
    name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() + _SUFFIX
    kept = files.read(name, _MAX_TREE)
    if kept is not None:
        with suppress(msgspec.MsgspecError):
            return msgspec.msgpack.decode(kept, type=Node | None)
    root = parse_yaml(text)
    files.write(name, msgspec.msgpack.encode(root))
    files.remove_others((name,), (_SUFFIX,), spare=0)  # what was taken out of the file does not stay here
    return root


@cache
def _parser_version() -> bytes:
    """A digest of the program that parses; empty where it is not there to be read, and then nothing is kept."""
    with suppress(OSError):
        return hashlib.sha256(Path(yaml_tree.__file__).read_bytes()).hexdigest().encode()
    return b""
