"""The configuration's keys as a table, from the sections and what is written below their attributes."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cache

from msgspec import Struct

from cleared.workspace.settings import model
from cleared.workspace.settings.loading import type_name
from cleared.workspace.settings.protected_settings import is_protected
from cleared.workspace.settings.section import Section
from cleared.workspace.settings.setting_keys import setting_fields


class SettingInfo(Struct, frozen=True):
    key: str
    """Dotted; ``bank_accounts[]`` is any entry of the list, ``<name>`` a name of your choice."""
    type: str
    default: str
    """As it would be written in YAML; empty: none, the key stays unset; ``required`` where it must be given."""
    doc: str
    reserved: bool
    """Accepted, but no part of the program reads it yet."""

    @property
    def is_protected(self) -> bool:
        """Whether it takes effect only when approved."""
        return is_protected(self.key)


def list_settings() -> list[SettingInfo]:
    """Every key of ``config.yaml``, in order."""
    return list(_list_section(model.Config, ""))


def _list_section(section: type[Section], path: str) -> Iterator[SettingInfo]:
    docs = _read_field_docs(section.__module__).get(section.__name__, {})
    for key, field in setting_fields(section).items():
        dotted = f"{path}{key}"
        if field.section:
            yield from _list_section(field.section, f"{dotted}.")
        elif field.entries:
            yield from _list_section(
                field.entries, f"{dotted}[]." if "tuple" in str(field.type) else f"{dotted}.<name>."
            )
        else:
            default = "required" if field.required else _format_value(field.default)
            kind, doc = type_name(field.type).removeprefix("a "), docs.get(field.attribute, "")
            yield SettingInfo(dotted, kind, default, doc, field.reserved)


def _format_value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(_format_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{}" if not value else str(value)
    if isinstance(value, (date, Decimal)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"' if not value or not value[0].isalpha() else value
    return str(value)


@cache
def _read_field_docs(module: str) -> dict[str, dict[str, str]]:
    """Class of a module → attribute → the text below it (which Python itself does not keep)."""
    docs: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if not isinstance(node, ast.ClassDef):
            continue
        texts = docs[node.name] = {}
        for attribute, following in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(attribute, ast.AnnAssign)
                and isinstance(attribute.target, ast.Name)
                and isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
            ):
                texts[attribute.target.id] = " ".join(str(following.value.value).split())
    return docs
