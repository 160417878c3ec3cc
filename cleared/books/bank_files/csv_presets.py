"""CSV files of banks and processors that many have: one small data file a bank, ``presets/NAME.json``.

``profile`` is what ``import.profiles`` of the configuration has; ``required`` are columns that no other bank's file has
together; ``constant`` are texts that columns always have. Where a bank writes dates or amounts differently from country
to country, ``variants`` are tried: a file is read only where all that fit it mean the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from cleared.books.bank_files.base import ImportFileError, Sample
from cleared.books.bank_files.csv_profile import ProfileImporter
from cleared.books.bank_files.csv_table import fold_names, read_records
from cleared.books.ledger.bank_row import ParsedFile
from cleared.workspace.settings.bank_section import CsvProfile

FOLDER: Final = Path(__file__).with_name("presets")
_TUPLES: Final = frozenset(
    {"headers", "more_description", "currency_symbols", "pending", "posted", "out_words", "in_words"}
)


class PresetImporter:
    """Reads the files of one bank, as its data file describes them."""

    def __init__(self, name: str, data: Mapping[str, Any], max_rows: int | None = None) -> None:
        self.name = name
        self.title: str = data["title"]
        self.account_type: str = data.get("account_type", "checking")
        self.columns: tuple[str, ...] = tuple(data["required"])
        self.required = set(fold_names(self.columns))
        self.constant: Mapping[str, str] = data.get("constant", {})
        self.readers = [
            ProfileImporter(_make_profile(name, {**data["profile"], **variant}), max_rows)
            for variant in data.get("variants", [{}])
        ]

    @property
    def profile(self) -> CsvProfile:
        """Its first variant, as a profile."""
        return self.readers[0].profile

    def identify(self, sample: Sample) -> bool:
        reader = self.readers[0]
        text = sample.view(reader.encoding)
        header = reader.find_header(text)
        if header is None or not reader.has_columns(header[1]) or not self.required <= set(fold_names(header[1])):
            return False
        return not self.profile.headers or self._has_constants(text)

    def _has_constants(self, text: str) -> bool:
        """Of a file without column headers: whether each whole record has the texts that it always has."""
        headers = list(self.profile.headers)
        try:
            for _, fields in read_records(text, self.profile.delimiter):
                if len(fields) != len(headers):
                    return False
                if any(fields[headers.index(name)].strip() != value for name, value in self.constant.items()):
                    return False
        except ImportFileError:  # a sample may end in the middle of a record
            pass
        return True

    def parse(self, text: str, places: int) -> ParsedFile:
        parsed: list[ParsedFile] = []
        failures: list[ImportFileError] = []
        for reader in self.readers:
            try:
                parsed.append(reader.parse(text, places))
            except ImportFileError as error:
                failures.append(error)
        if not parsed:
            raise min(failures, key=lambda error: len(error.faults) + error.more)
        if any(each != parsed[0] for each in parsed[1:]):
            raise ImportFileError(
                f"the dates or amounts of this {self.title} file can be read in two ways, and no row decides which",
                remedy="Download a longer period, or say how they are written: cleared bank add FILE --date-format …",
            )
        return parsed[0]


def _make_profile(name: str, values: Mapping[str, Any]) -> CsvProfile:
    fields: dict[str, Any] = {key: tuple(value) if key in _TUPLES else value for key, value in values.items()}
    return CsvProfile(name=name, **fields)


@cache
def load_presets(max_rows: int | None = None) -> Mapping[str, PresetImporter]:
    """All presets by name."""
    presets = {}
    for path in sorted(FOLDER.glob("*.json")):
        presets[path.stem] = PresetImporter(path.stem, json.loads(path.read_text("utf-8")), max_rows)
    return presets


def find_profile(profiles: Mapping[str, CsvProfile], format: str) -> tuple[CsvProfile, Mapping[str, str]] | None:
    """The profile behind a format's name, the configuration's own or a preset's; and the further columns that its files
    are known by, with the text in them."""
    if format in profiles:
        return profiles[format], {}
    preset = load_presets().get(format)
    return (preset.profile, {**dict.fromkeys(preset.columns, ""), **preset.constant}) if preset is not None else None
