"""Whether a change of one key in ``config.yaml`` makes anything wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from cleared.workspace.settings.loading import ConfigError, ConfigReading, Problem
from cleared.workspace.settings.tree_paths import find_node, find_pair
from cleared.workspace.settings.yaml_tree import Node


def refuse_new_problems(
    before: ConfigReading, after: ConfigReading, keys: Sequence[str | int], *, is_set: bool
) -> None:
    """Raises ``ConfigError`` where what a change leaves wrong was right before it, or lies at a key that was set.

    One mistake can hide another: what is only seen now, and was so before, is not the change's.
    """
    own = _written_path(after.root, keys)
    paths = {_path_of(each) for each in before.problems}
    around = {(_path_of(each), each.message) for each in before.problems}
    hidden = {_without_numbers(each) for each in before.unsure}

    def is_made(problem: Problem) -> bool:
        path = _path_of(problem)
        if path.startswith(own) and is_set:
            return True
        is_near = path.startswith(own) or own.startswith(path)
        was_there = (path, problem.message) in around if is_near else path in paths
        return not was_there and _without_numbers(problem) not in hidden

    # Entries that cannot be read are not counted, so the number of another one says nothing.
    unsure = [each for each in after.unsure if "[" not in (each.place.field or "") and _path_of(each).startswith(own)]
    if new := [each for each in [*after.problems, *unsure] if is_made(each)]:
        raise ConfigError(new)


def is_mended(before: ConfigReading, after: ConfigReading) -> bool:
    """Whether anything that was wrong is so no more."""
    was, left = (Counter(_without_lines(each) for each in [*of.problems, *of.unsure]) for of in (before, after))
    return bool(was - left)


def _without_lines(problem: Problem) -> tuple[str, str]:
    return _path_of(problem), re.sub("line [0-9]+", "line", problem.message)


def _path_of(problem: Problem) -> str:
    """Its key, with a full stop behind it."""
    return (problem.place.field or "").replace("[", ".").replace("]", "") + "."


def _without_numbers(problem: Problem) -> str:
    return re.sub(r"\[[0-9]+\]", "[]", f"{problem.place.field} {problem.message}")


def _written_path(root: Node | None, keys: Sequence[str | int]) -> str:
    """The key as a problem names it, with a full stop behind it."""
    node, names = root, []
    for key in keys:
        pair = find_pair(node, key) if node is not None and isinstance(key, str) else None
        names.append(pair[0].text if pair is not None else str(key))
        node = find_node(node, [key])
    return ".".join(names) + "."
