"""Reading ``config.yaml`` whole: every problem is found and named by file, line and key, or there is none."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import Place, WorkspaceError
from cleared.workspace.settings import yaml_tree
from cleared.workspace.settings.bank_section import BankAccount, CsvProfile
from cleared.workspace.settings.column_checks import nearest_names
from cleared.workspace.settings.kept_tree import parse_kept
from cleared.workspace.settings.model import Config, ModelPrice
from cleared.workspace.settings.section import Section
from cleared.workspace.settings.setting_keys import ALIASES, REFUSED, SettingField, is_section, to_plain_values
from cleared.workspace.settings.setting_keys import setting_fields as keys_of
from cleared.workspace.settings.value_checks import CHECKS, check_config
from cleared.workspace.settings.yaml_tree import Node

MAX_BYTES = 1_000_000
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_NUMBER = r"(?a)[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?"
_MONEY = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?", re.ASCII)
_BOOLS = {**dict.fromkeys(("true", "yes", "on"), True), **dict.fromkeys(("false", "no", "off"), False)}
_PROFILE = r"[a-z0-9_-]{1,60}"
_MODEL = r"(?a)[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,119}"


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
_INVALID: Final = _Missing()


class Problem(Struct, frozen=True):
    place: Place
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class ConfigError(WorkspaceError):
    """The configuration cannot be used. ``problems`` has all reasons, ``message`` one a line."""

    def __init__(self, problems: list[Problem], remedy: str | None = None) -> None:
        self.problems = sorted(problems, key=lambda p: p.place.line or 0)
        super().__init__("\n".join(str(p) for p in self.problems), place=self.problems[0].place, remedy=remedy)

    def __str__(self) -> str:
        return f"{self.message.rstrip('.')}. {self.remedy}" if self.remedy else self.message


def load_config(text: str, file: str = "config.yaml") -> Config:
    """The configuration that ``text`` says. ``file`` names it in messages. Raises ``ConfigError``."""
    return read_config(text, file)[0]


def read_config(text: str, file: str = "config.yaml") -> tuple[Config, Node | None]:
    """``load_config``, with the tree it was read from (for ``set_value``). Raises ``ConfigError``."""
    found = read_valid_part(text, file)
    if found.problems:
        raise ConfigError(found.problems)
    return found.config, found.root


class ConfigReading(Struct, frozen=True):
    """What was read from a text; ``config`` has only what is of the right kind, all else in it is as shipped.

    ``unsure``: of values that do not fit each other, where others are not there, so that they may fit."""

    config: Config
    root: Node | None
    problems: list[Problem]
    unsure: list[Problem]


@lru_cache(maxsize=16)
def read_valid_part(text: str, file: str = "config.yaml", state_dir: Path | None = None) -> ConfigReading:
    """The settings that ``text`` says, and what is wrong in it. Raises ``ConfigError`` where it is not YAML at all.

    A command, and more so a service, reads the same text again and again: do not alter what it gives. ``state_dir``:
    where its tree is kept from one process to the next."""
    if len(text) > MAX_BYTES:
        raise ConfigError([Problem(Place(file), f"longer than {MAX_BYTES:,} characters")])
    try:
        root = yaml_tree.parse_yaml(text) if state_dir is None else parse_kept(text, state_dir)
    except yaml_tree.TreeError as error:
        raise ConfigError([Problem(Place(file, error.line, error.column), error.message)]) from None
    reader = _ConfigReader(file)
    config = Config()
    if root is not None and not root.is_null:
        section = reader.read_section(root, Config, "")
        if isinstance(section, Config):
            config = section
    certain, checks = reader.problems, _ConfigReader(file, reader.lines)
    for key, message in check_config(config):
        checks.add_problem_at(key, message)
    problems, unsure = (certain, checks.problems) if certain else (checks.problems, [])
    return ConfigReading(replace(config, data=to_plain_values(config)), root, problems, unsure)


def read_entry(text: str, section: type[Section], dotted: str) -> tuple[Any, Node]:
    """An entry as it is typed on one line, ``{ input: 3, output: 15 }`` or without the brackets, with the tree it was
    read from. Raises ``ValueError`` with all that is wrong."""
    try:
        node = yaml_tree.parse_yaml(text if text.lstrip().startswith("{") else f"{{ {text} }}")
    except yaml_tree.TreeError as error:
        raise ValueError(f"not an entry such as {{ {next(iter(keys_of(section)))}: … }}: {error.message}") from None
    reader = _ConfigReader("")
    entry = _INVALID
    if node is not None:
        named = {"name": dotted.rpartition(".")[2]} if section is CsvProfile else {}
        entry = reader.read_section(node, section, dotted, **named)
    if node is None or reader.problems:
        raise ValueError("; ".join(f"{each.place.field}: {each.message}" for each in reader.problems) or "is empty")
    return entry, node


class _ConfigReader:
    """Walks the tree along the sections, goes on after each problem, and leaves out what has one."""

    def __init__(self, file: str, lines: dict[str, int] | None = None) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.lines = {} if lines is None else lines

    def add_problem(self, node: Node, key: str, message: str) -> None:
        self.problems.append(Problem(Place(self.file, node.line, field=key or None), message))

    def add_problem_at(self, key: str, message: str) -> None:
        line = next((self.lines[k] for k in _list_ancestors(key) if k in self.lines), None)
        self.problems.append(Problem(Place(self.file, line, field=key), message))

    def read_section(self, node: Node, section: type[Section], path: str, **known: Any) -> Any:
        """An instance of ``section``; ``_INVALID`` where it lacks what it needs."""
        if node.kind != "map":
            self.add_problem(node, path, f"must be a section with keys such as {', '.join(list(keys_of(section))[:3])}")
            return _INVALID
        known_fields = keys_of(section)
        values: dict[str, Any] = dict(known)
        seen: dict[str, int] = {}
        for key_node, value_node in node.pairs:
            written = key_node.text
            dotted = f"{path}.{written}" if path else written
            key = ALIASES.get((section, written), written)
            if key not in known_fields:
                refusal = REFUSED.get((section, written))
                refusal = refusal or suggest_known_name(written, known_fields, "unknown key")
                self.add_problem(key_node, dotted, refusal)
            elif key in seen:
                self.add_problem(key_node, dotted, f"given twice; first on line {seen[key]}")
            else:
                seen[key] = self.lines[dotted] = key_node.line
                field = known_fields[key]
                value = self.read_value(value_node, field, dotted)
                if value is not MISSING and value is not _INVALID:
                    check = CHECKS.get((section, key))
                    message = check(value) if check and value is not None else None
                    if message:
                        self.add_problem(key_node, dotted, message)
                    else:
                        values[field.attribute] = value
        needed = {key: field.attribute for key, field in known_fields.items() if field.required}
        for key in [each for each in needed if each not in seen]:
            self.add_problem(node, f"{path}.{key}", "missing")
        return section(**values) if values.keys() >= {*needed.values()} else _INVALID

    def read_value(self, node: Node, field: SettingField, path: str) -> Any:
        """The value of one key; ``MISSING`` where nothing stands there, so that the default holds."""
        if node.is_null:
            if field.optional:
                return None
            if field.section or field.entries:
                return MISSING
            self.add_problem(node, path, "has no value; leave the key out to have its default")
            return _INVALID
        if field.section:
            return self.read_section(node, field.section, path)
        origin, arguments = typing.get_origin(field.type), typing.get_args(field.type)
        if origin is tuple:
            return self.read_list(node, arguments[0], path)
        if origin is Mapping:
            return self.read_map(node, arguments[1], path)
        return self.read_scalar(node, field.type, path)

    def read_list(self, node: Node, inner: Any, path: str) -> Any:
        if node.kind != "list":
            self.add_problem(node, path, "must be a list: [a, b], or one entry a line after a dash")
            return _INVALID
        items = []
        for number, item in enumerate(node.items):
            dotted = f"{path}[{number}]"
            self.lines[dotted] = item.line
            items.append(
                self.read_section(item, inner, dotted) if is_section(inner) else self.read_scalar(item, inner, dotted)
            )
        return tuple(item for item in items if item is not _INVALID)

    def read_map(self, node: Node, inner: Any, path: str) -> Any:
        if node.kind != "map":
            self.add_problem(node, path, "must be a section: one name: value a line")
            return _INVALID
        entries: dict[str, Any] = {}
        for key_node, value_node in node.pairs:
            key = key_node.text
            dotted = f"{path}.{key}"
            if key in entries:
                self.add_problem(key_node, dotted, f"given twice; first on line {self.lines[dotted]}")
                continue
            self.lines[dotted] = key_node.line
            if inner is CsvProfile:
                if not re.fullmatch(_PROFILE, key):
                    self.add_problem(key_node, dotted, "a profile's name has only a–z, 0–9, - and _")
                entries[key] = self.read_section(value_node, CsvProfile, dotted, name=key)
            elif inner is ModelPrice:
                if not re.fullmatch(_MODEL, key):
                    self.add_problem(key_node, dotted, "a model's name has only letters, digits and . _ : / @ + -")
                entries[key] = self.read_section(value_node, ModelPrice, dotted)
            else:
                entries[key] = self.read_scalar(value_node, inner, dotted)
        return {key: entry for key, entry in entries.items() if entry is not _INVALID}

    def read_scalar(self, node: Node, expected_type: Any, path: str) -> Any:
        if node.kind != "scalar":
            self.add_problem(node, path, f"must be {type_name(expected_type)}, not a {node.kind}")
            return _INVALID
        try:
            return convert_scalar(node.text, expected_type, node.plain)
        except ValueError as error:
            self.add_problem(node, path, str(error))
            return _INVALID


def convert_scalar(text: str, expected_type: Any, is_plain: bool) -> Any:
    """The text of a scalar as a value of ``expected_type``. Raises ``ValueError`` with the reason."""
    if typing.get_origin(expected_type) is Literal:
        choices = typing.get_args(expected_type)
        if text in choices:
            return text
        raise ValueError(suggest_known_name(text, choices, f"{text[:40]!r} is not one of {', '.join(choices)}"))
    if expected_type is str:
        if any(ord(c) < 32 and c not in "\t\n" for c in text) or "\x7f" in text:
            raise ValueError("holds a control character")
        return text
    mistake = ValueError(f"must be {type_name(expected_type)}, not {text[:40]!r}")
    if expected_type is date:
        try:
            return date.fromisoformat(text) if len(text) == 10 else _raise_error(mistake)
        except ValueError:
            raise mistake from None
    if expected_type is Decimal:
        return Decimal(text) if _MONEY.fullmatch(text) else _raise_error(mistake)
    if not is_plain:
        raise ValueError(f"must be {type_name(expected_type)}, without quotes")
    if expected_type is bool:
        return _BOOLS[text.lower()] if text.lower() in _BOOLS else _raise_error(mistake)
    if expected_type is int:
        return int(text) if _INTEGER.fullmatch(text) else _raise_error(mistake)
    if expected_type is float:
        number = float(text) if re.fullmatch(_NUMBER, text) else _raise_error(mistake)
        return number if abs(number) < 1e15 else _raise_error(mistake)
    raise TypeError(f"no way to read a {expected_type}")  # a new kind of field in the model


def type_name(annotation: Any) -> str:
    """A type in a user's words, with its article."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return f"one of {', '.join(arguments)}"
    if origin is tuple:
        return "a list"
    if origin is Mapping or is_section(annotation):
        return "a section"
    return _TYPE_NAMES[annotation]


_TYPE_NAMES = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    date: "a date (YYYY-MM-DD)",
    Decimal: "an amount such as 1250.00",
}


def suggest_known_name(written: str, known: Iterable[str], message: str) -> str:
    """``message``, with the nearest known word where there is one."""
    near = nearest_names(written.lower(), known)
    return f"{message}; did you mean {near[0]}?" if near else message


def _list_ancestors(key: str) -> Iterable[str]:
    while key:
        yield key
        key = re.sub(r"(\.[^.\[]+|\[\d+\])$", "", key) if re.search(r"[.\[]", key) else ""


def _raise_error(error: ValueError) -> Any:
    raise error


__all__ = [
    "MISSING",
    "BankAccount",
    "ConfigError",
    "Problem",
    "load_config",
    "read_config",
    "read_valid_part",
    "to_plain_values",
]
