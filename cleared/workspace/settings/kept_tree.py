"""The tree of ``config.yaml`` as it was parsed last: to load a YAML parser takes longer than all else of the settings.

It is kept sealed, under a name that is made from the text: what it says of that text is what the parser said. It has
only where everything stands, and none of the words: a secret in the settings is in no second file.
"""

from __future__ import annotations

import hashlib
import signal
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
_QUOTED: Final = "'"
_held: Final = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
"""What was held back before. Ctrl-C while msgspec learns a type, for which it runs Python, may end in a crash of the
process: so the type is learned here, once, and Ctrl-C comes after that."""
_decode: Final = msgspec.msgpack.Decoder(Node | None).decode
signal.pthread_sigmask(signal.SIG_SETMASK, _held)
_waiting: Final[dict[Path, tuple[SealedFiles, str, bytes]]] = {}
"""Trees that this process has parsed and not kept yet: state folder → its files, name and content."""


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
            root = _decode(kept)
            for node in _list_scalars(root):
                node.text = text[node.start : node.end] if not node.text else text[node.start + 1 : node.end - 1]
            return root
    root = parse_yaml(text)
    if (places := _cut_words(root, text)) is not None:
        _waiting[state_dir] = files, name, places
    return root


def keep_tree(state_dir: Path) -> None:
    """Keep the tree that was parsed here last, if it is not kept yet: for who may write, as what only reads leaves
    everything as it was."""
    if state_dir in _waiting:
        files, name, places = _waiting.pop(state_dir)
        files.write(name, places)
        files.remove_others((name,), (_SUFFIX,), spare=0)


def _cut_words(root: Node | None, text: str) -> bytes | None:
    """The tree without its words: of each scalar, whether it stands in quotes. None where one is not written as it is
    read, such as one with an escape."""
    copy = _decode(msgspec.msgpack.encode(root))
    for node in _list_scalars(copy):
        written = text[node.start : node.end]
        if node.text not in (written, written[1:-1]):
            return None
        node.text = "" if node.text == written else _QUOTED
    return msgspec.msgpack.encode(copy)


def _list_scalars(root: Node | None) -> list[Node]:
    nodes = [root] if root is not None else []
    for node in nodes:  # which grows meanwhile
        nodes += node.items
        nodes += [each for pair in node.pairs for each in pair]
    return [node for node in nodes if node.kind == "scalar"]


@cache
def _parser_version() -> bytes:
    """A digest of the program that parses; empty where it is not there to be read, and then nothing is kept."""
    with suppress(OSError):
        return hashlib.sha256(Path(yaml_tree.__file__).read_bytes()).hexdigest().encode()
    return b""
