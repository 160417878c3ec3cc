"""Building the trees of a commit: only those on the way to a changed path are written."""

from __future__ import annotations

from collections.abc import Mapping

from cleared.base.errors import WorkspaceError
from cleared.git.object_reader import ObjectReader, TreeEntry
from cleared.git.object_writer import LooseObjects, encode_name

Changes = Mapping[tuple[str, ...], TreeEntry | None]
"""Path, split at its slashes → what is to be there, or ``None``: nothing."""


def build_tree(
    reader: ObjectReader, base: str | None, changes: Mapping[str, TreeEntry | None], objects: LooseObjects
) -> str:
    """The id of the tree ``base`` with ``changes`` (``None`` removes); only the trees on the way are written.

    Raises ``WorkspaceError`` where a path is to be a file and a folder at once.
    """
    split = {tuple(path.split("/")): entry for path, entry in changes.items()}
    return _build_subtree(reader, base, split, (), objects) or objects.add_object("tree", b"")


def _build_subtree(
    reader: ObjectReader, base: str | None, changes: Changes, folder: tuple[str, ...], objects: LooseObjects
) -> str | None:
    """The id of the tree of ``folder``; ``None`` where it is empty now."""
    entries = {} if base is None else dict(reader.read_tree(base))
    in_folder: dict[str, TreeEntry | None] = {}
    below: dict[str, dict[tuple[str, ...], TreeEntry | None]] = {}
    for path, entry in changes.items():
        if len(path) == 1:
            in_folder[path[0]] = entry
        else:
            below.setdefault(path[0], {})[path[1:]] = entry

    for name, inner in below.items():
        old = entries.get(name)
        is_folder = old is not None and old.is_tree
        if not is_folder and all(entry is None for entry in inner.values()):
            continue
        if not is_folder and old is not None and in_folder.get(name, old) is not None:
            raise _file_and_folder_error(*folder, name)
        tree = _build_subtree(
            reader, old.oid if old is not None and is_folder else None, inner, (*folder, name), objects
        )
        _set_entry(entries, name, None if tree is None else TreeEntry("40000", tree))

    for name, entry in in_folder.items():
        old = entries.get(name)
        if old is None or not old.is_tree:
            _set_entry(entries, name, entry)
        elif entry is not None:
            raise _file_and_folder_error(*folder, name)
    return objects.add_object("tree", _encode_tree(entries)) if entries else None


def _set_entry(entries: dict[str, TreeEntry], name: str, entry: TreeEntry | None) -> None:
    if entry is None:
        entries.pop(name, None)
    else:
        entries[name] = entry


def _encode_tree(entries: Mapping[str, TreeEntry]) -> bytes:
    # git sorts a folder as if its name ended in a slash.
    keys = sorted((encode_name(name) + b"/" * entry.is_tree, name) for name, entry in entries.items())
    return b"".join(
        entries[name].mode.encode() + b" " + key.removesuffix(b"/") + b"\0" + bytes.fromhex(entries[name].oid)
        for key, name in keys
    )


def _file_and_folder_error(*names: str) -> WorkspaceError:
    return WorkspaceError(f"{'/'.join(names)!r} would have to be a file and a folder at once")
