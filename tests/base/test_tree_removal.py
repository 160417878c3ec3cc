"""Deleting a folder in which others are at work."""

from __future__ import annotations

import threading
from pathlib import Path

from cleared.base.tree_removal import remove_tree


def test_a_folder_is_deleted_while_somebody_writes_in_it(tmp_path: Path) -> None:
    """As git does for a moment after its starter was killed; once its folder is gone, it ends."""
    place = tmp_path / "tree" / ".git"
    place.mkdir(parents=True)
    (place / "objects" / "pack").mkdir(parents=True)

    def write() -> None:
        try:
            for number in range(100_000):
                (place / f"{number}.lock").touch()
                (place / f"{number}.lock").rename(place / str(number % 20))
        except OSError:
            return

    writer = threading.Thread(target=write)
    writer.start()
    remove_tree(place.parent)
    writer.join()
    assert not list(tmp_path.iterdir())


def test_a_folder_is_deleted_by_two_at_once(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"tree/{number % 10}/{number}").mkdir(parents=True)
    failures: list[OSError] = []

    def remove() -> None:
        try:
            remove_tree(tmp_path / "tree")
        except OSError as error:
            failures.append(error)

    removers = [threading.Thread(target=remove) for _ in range(2)]
    for remover in removers:
        remover.start()
    for remover in removers:
        remover.join()
    assert not failures and not list(tmp_path.iterdir())
