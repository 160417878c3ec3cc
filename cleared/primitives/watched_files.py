"""The files of the folders that an agent's approved header watches, as one run reads them: each once."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.clock import check_deadline
from cleared.base.errors import ClearedError, Place, PolicyError, PrimitiveError
from cleared.base.safe_files import read_stable
from cleared.base.safe_names import relative_problem
from cleared.jobs.input_files import InputFiles
from cleared.workspace.watched_names import WatchedNames

MAX_RUN_BYTES: Final = 128 << 20
"""Of all files that one run reads."""


class WatchedFiles(Struct):
    """``watch``: what the header says; nothing else can be read."""

    root: Path
    max_bytes: int
    """Of one file."""
    inputs: InputFiles
    """What may be read at all: records are read by the primitives that say what they mean."""
    watch: Sequence[str] = ()
    _paths: list[str] | None = None
    _texts: dict[str, str] = {}
    _bytes: int = 0
    digests: dict[str, str] = {}
    """Path → SHA-256 of what was read."""
    told: set[str] = set()
    """Those of which the log has a row."""

    def list_paths(self) -> list[str]:
        """The files that can be read, sorted: as they lay there when the run first asked."""
        if self._paths is None:
            found = WatchedNames(os.path.realpath(self.root), self.watch).list_files([]) if self.watch else []
            self._paths = [path for path in check_deadline(found) if self.inputs.has_path(path)]
        return self._paths

    def read_text(self, path: str) -> str:
        """The text of a file. Raises ``PolicyError`` where the header does not watch it, ``PrimitiveError`` where it is
        no text, is too large, or is still being written."""
        if path in self._texts:
            return self._texts[path]
        if relative_problem(path) or path not in self.list_paths():
            raise PolicyError(
                f"{path[:200]!r} is no file that this agent watches",
                place=Place(field="path"),
                remedy="file_list() says which there are; `trigger: file_watch` and `watch:` in its header say where. "
                "Settings, scripts, records and keys are never among them.",
            )
        try:
            data, _ = read_stable(self.root / path, min(self.max_bytes, MAX_RUN_BYTES - self._bytes), shown=path)
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _refuse_file(path, f"byte {error.start} is not UTF-8", "Save it as UTF-8.") from None
        except ClearedError as error:
            raise _refuse_file(path, error.message, error.remedy or "See what lies there.") from None
        if problem := self.inputs.explain_refusal(path):
            raise _refuse_file(path, problem, "Do without it.")
        if "\0" in text:
            raise _refuse_file(path, "it holds a NUL character", "That is no text.")
        self._bytes += len(data)
        self.digests[path] = hashlib.sha256(data).hexdigest()
        self._texts[path] = text.removeprefix("\ufeff")
        return self._texts[path]

    def read_rows(self, path: str, delimiter: str) -> list[dict[str, str]]:
        """The rows of a CSV file by its first line. Raises as ``read_text``, and where a row has more or less fields
        than the first."""
        rows: list[dict[str, str]] = []
        reader = csv.reader(io.StringIO(self.read_text(path), newline=""), delimiter=delimiter, strict=True)
        try:
            names = [name.strip() for name in next(reader, [])]
            if not names or not all(names) or len(set(names)) < len(names):
                raise _refuse_file(path, "its first line does not name each column once", "Mend the file.", 1)
            for row in check_deadline(reader):
                if not row:
                    continue
                if len(row) != len(names):
                    message = f"the row has {len(row)} fields, the first line {len(names)}"
                    raise _refuse_file(path, message, "Mend the file, or pass another delimiter.", reader.line_num)
                rows.append(dict(zip(names, row, strict=True)))
        except csv.Error as error:
            raise _refuse_file(path, f"it is not readable as CSV: {error}", "Mend the file.", reader.line_num) from None
        return rows


def _refuse_file(path: str, message: str, remedy: str, line: int | None = None) -> PrimitiveError:
    where = f"{path}:{line}" if line else path
    return PrimitiveError(f"{where}: {message}", place=Place(field="path"), remedy=remedy)
