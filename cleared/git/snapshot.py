"""The files of one commit, read lazily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cleared.git.object_reader import TreeEntry
from cleared.git.repository import Repository


class Snapshot:
    """The state of all files in ``commit`` (``None``: before the first commit, where there are none).

    Paths are relative to the top level, with ``/``; names that are not UTF-8 carry surrogate escapes.
    """

    def __init__(self, repo: Repository, commit: str | None) -> None:
        self._repo = repo
        self.commit = commit
        self.hash_name = repo.hash_name
        self.tree: str | None = None if commit is None else repo.objects.find_tree_id(commit)

    @property
    def repo(self) -> Repository:
        """The repository of the commit."""
        return self._repo

    def at_commit(self, commit: str) -> Snapshot:
        """The files of another commit of the same repository."""
        return Snapshot(self._repo, commit)

    def find_entry(self, path: str) -> TreeEntry | None:
        """What the commit has at ``path``: a file, a tree, a symlink, a submodule, or ``None``; at ``""`` its tree."""
        return None if self.tree is None else self._repo.objects.find_entry(self.tree, path)

    def read_file(self, path: str) -> bytes | None:
        """The content of the regular file at ``path``; ``None`` where the commit has none there."""
        oid = self.find_blob_id(path)
        return None if oid is None else self._repo.objects.read_object(oid)[1]

    def find_blob_id(self, path: str) -> str | None:
        """The blob id of the regular file at ``path``; ``None`` where the commit has none there."""
        entry = self.find_entry(path)
        return entry.oid if entry is not None and entry.is_file else None

    def has_file(self, path: str) -> bool:
        """Whether the commit has a file, a symlink or a submodule at ``path``, and no folder."""
        entry = self.find_entry(path)
        return entry is not None and not entry.is_tree

    def list_entries(self, prefix: str = "") -> dict[str, tuple[str, str]]:
        """``{path: (mode, id)}`` of all that lies under the folder ``prefix``, or of the one file it names.

        The mode is git's: ``100644``, ``100755``, ``120000`` (symlink) or ``160000`` (submodule).
        """
        prefix = prefix.strip("/")
        entry = self.find_entry(prefix)
        if entry is None:
            return {}
        if entry.is_tree:
            self._repo.objects.preload_trees(entry.oid)
        return {path: (found.mode, found.oid) for path, found in self._repo.objects.list_below(prefix, entry)}

    def read_files(self, prefix: str) -> dict[str, bytes]:
        """The contents of all regular files under the folder ``prefix``, by path."""
        oids = {path: oid for path, (mode, oid) in self.list_entries(prefix).items() if mode.startswith("100")}
        return dict(zip(oids, self.read_blobs(list(oids.values())), strict=True))

    def list_changes(self, before: Snapshot) -> dict[str, tuple[str, str]]:
        """What this commit has otherwise than another: path → the blob ids there and here, as ``CommitInfo.changes``
        has them."""
        entries = (None if each.tree is None else TreeEntry("40000", each.tree) for each in (before, self))
        return dict(self._compare("", *entries))

    def _compare(
        self, path: str, old: TreeEntry | None, new: TreeEntry | None
    ) -> Iterator[tuple[str, tuple[str, str]]]:
        contents = tuple("" if each is None or each.is_tree else _name_content(each) for each in (old, new))
        if contents != ("", ""):
            yield path, (contents[0], contents[1])
        trees = [self._repo.objects.read_tree(e.oid) if e is not None and e.is_tree else {} for e in (old, new)]
        for name in sorted({*trees[0], *trees[1]}):
            then, now = trees[0].get(name), trees[1].get(name)
            if then != now:
                yield from self._compare(f"{path}/{name}" if path else name, then, now)

    def list_folder(self, path: str) -> dict[str, TreeEntry]:
        """What lies directly in the folder, by name; empty where there is no such folder. Do not alter it."""
        entry = self.find_entry(path)
        return self._repo.objects.read_tree(entry.oid) if entry is not None and entry.is_tree else {}

    def read_blobs(self, oids: Sequence[str]) -> Iterator[bytes]:
        """The contents of many files by their ids, in that order, in a fraction of the time of single reads."""
        return (content for _, content in self._repo.objects.read_objects(oids))


def _name_content(entry: TreeEntry) -> str:
    return entry.oid if entry.is_file else f"{entry.mode} {entry.oid}"
