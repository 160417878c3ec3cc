"""Names and paths that come from outside: accepted only where they cannot lead anywhere else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from cleared.base.errors import PolicyError, UsageError

MAX_NAME_BYTES = 120
# Control, invisible formatting (text direction), surrogates, line and paragraph separators.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Devices on Windows, with any extension: a workspace that holds one cannot be checked out there.
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?")
_PLAIN = r"[A-Za-z0-9_.-]"
_DRIVE = re.compile(r"[A-Za-z]:")
_MAX_ENDING = 20


def require_safe_name(name: str, noun: str) -> str:
    """``name`` itself, if it can be one path component on any system; ``noun`` names its kind in the refusal.

    Raises ``UsageError``.
    """
    problem = _name_problem(name)
    if problem:
        raise UsageError(
            f"{name[:60]!r} is not a name for {_with_article(noun)}: it {problem}",
            remedy="Use letters, digits, - and _, such as my-name_2.",
        )
    return name


def require_plain_name(name: str, noun: str) -> str:
    """As ``require_safe_name``, of a name that people know a file by: letters of other alphabets look like these."""
    odd = next((c for c in require_safe_name(name, noun) if not re.fullmatch(_PLAIN, c)), None)
    if odd is not None:
        what = unicodedata.name(odd, "a character without a name").lower()
        raise UsageError(
            f"{name[:60]!r} is not a name for {_with_article(noun)}: it holds U+{ord(odd):04X}, {what}",
            remedy=f"Use letters a to z, digits, -, _ and dots only: {_suggest_name(name)}.",
        )
    return name


def mend_name(name: str, default: str) -> str:
    """The name itself where ``require_safe_name`` takes it, else the nearest to it that it takes; ``default`` where
    nothing of it can stay."""
    if _name_problem(name) is None:
        return name
    seen = "".join("-" if c in "/\\" or unicodedata.category(c) in _UNSEEN else c for c in name)
    plain = seen.lstrip(" .~").rstrip(" .")
    if _DRIVE.match(plain):
        plain = plain.replace(":", "-", 1)
    if _RESERVED.fullmatch(plain):
        plain = f"{default}-{plain}"
    stem, ending = PurePosixPath(plain).stem, PurePosixPath(plain).suffix[:_MAX_ENDING]
    room = MAX_NAME_BYTES - len(ending.encode())
    plain = stem.encode()[:room].decode(errors="ignore").rstrip(" .") + ending
    return plain if _name_problem(plain) is None else default


def choose_free_name(path: str, is_taken: Callable[[str], bool]) -> str:
    """The first of the path itself, ``name-2``, ``name-3`` … that nobody has. ``path``: with ``/``."""
    wanted, name, number = PurePosixPath(path), path, 1
    while is_taken(name):
        number += 1
        name = str(wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}"))
    return name


def _suggest_name(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.replace(" ", "-"))
    return "".join(c for c in decomposed if re.fullmatch(_PLAIN, c)).strip(".-") or "my-name_2"


def _name_problem(name: str) -> str | None:
    if not name or not name.strip():
        return "is empty"
    if "/" in name or "\\" in name:
        return "holds a slash; only a name is wanted, not a path"
    if name in (".", "..") or name.startswith("."):
        return "starts with a dot"
    if name.startswith("~") or _DRIVE.match(name):
        return "starts as a home directory or a drive does"
    if any(unicodedata.category(c) in _UNSEEN for c in name):
        return "holds characters that cannot be seen"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"is longer than {MAX_NAME_BYTES} bytes"
    if name[-1] in ". " or name[0] == " ":
        return "begins or ends with a space, or ends with a dot"
    if _RESERVED.fullmatch(name):
        return "is the name of a device on Windows"
    return None


def _with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def fold_path(path: str) -> str:
    """The path as the least exact file system reads it, for comparing: two paths that are one file somewhere are the
    same text. Without case, invisible characters, dots or blanks at the end, and streams."""
    return "/".join(_fold_name(name) for name in path.split("/"))


def _fold_name(name: str) -> str:
    if not name.isascii():
        name = "".join(c for c in unicodedata.normalize("NFC", name) if unicodedata.category(c) != "Cf")
    return name.casefold().split(":")[0].rstrip(" .")


def relative_problem(path: str) -> str | None:
    """Why ``path`` is not a plain relative POSIX path below the workspace, or None if it is one."""
    if not path:
        return "is empty"
    if "\\" in path:
        return "holds a backslash; separate folders with /"
    if path.startswith(("/", "~")) or _DRIVE.match(path):
        return "is absolute; give it relative to the workspace"
    if ".." in PurePosixPath(path).parts:
        return "holds .. and could lead out of the workspace"
    if any(unicodedata.category(c) in _UNSEEN for c in path):
        return "holds characters that cannot be seen"
    return None


def resolve_inside(root: Path, relative: str) -> Path:
    """The real path of ``relative`` below ``root``, symbolic links followed. It need not exist.

    Raises ``UsageError`` where the text is not a relative path, ``PolicyError`` where a link leads out.
    """
    problem = relative_problem(relative)
    if problem:
        raise UsageError(f"the path {relative[:200]!r} {problem}")
    base = root.resolve()
    try:
        real = (base / relative).resolve()
    except (OSError, RuntimeError) as error:  # a loop of links: RuntimeError before Python 3.13
        raise PolicyError(f"{relative!r} cannot be followed: {error}") from None
    if real != base and base not in real.parents:
        raise PolicyError(
            f"{relative!r} leads out of the workspace, to {real}",
            remedy="Replace the symbolic link by the file itself.",
        )
    return real
