"""How an operation is declared: its parameters, its effect, its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, UsageError
from cleared.base.json_arguments import ArgumentFault, read_arguments
from cleared.changes.host import Host
from cleared.gate.file_kinds import file_kind
from cleared.gate.proposals.author import Author
from cleared.workspace.location import Layout

REQUIRED: Final = object()
MAX_INTEGER: Final = 10**9
MAX_FILES: Final = 100
MAX_NAMES: Final = 100
_MAX_PATH: Final = 300

Effect = Literal["read", "check", "propose", "run"]
"""``read``: changes nothing. ``check``: runs what nobody approved in the sandbox, and keeps nothing of it. ``propose``:
makes a proposal, about which a person decides. ``run``: runs an approved agent."""

_SCHEMAS: Final[Mapping[str, dict[str, Any]]] = {
    "any": {},
    "files": {"type": "object", "additionalProperties": {"type": ["string", "null"]}, "maxProperties": MAX_FILES},
    "names": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_NAMES},
}


class InvalidArgument(UsageError):
    """An argument of an operation is wrong, missing or unknown; ``place.field`` names it, where it is one."""

    def __init__(self, message: str, field: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message, place=Place(field=field) if field else None, remedy=remedy)


def settings_refusal() -> PolicyError:
    """Why a program gets no further with ``config.yaml``, not even to try it: it says what holds scripts back."""
    return PolicyError(
        "a program may not propose settings",
        place=Place(Layout.config_file),
        remedy="A person changes them: cleared config set, cleared agent propose config.yaml.",
    )


class Parameter(Struct, frozen=True):
    """A parameter. ``type``: a JSON type, ``any``, ``names`` (a list of texts), or ``files`` (path → text, null to
    remove the file; a function gets bytes). Null stands for the default, where it has one."""

    name: str
    type: str
    default: Any = REQUIRED
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = MAX_INTEGER
    doc: str = ""

    @property
    def json_schema(self) -> dict[str, Any]:
        if self.type == "any":
            return {}
        schema = dict(_SCHEMAS.get(self.type) or {"type": self.type})
        if self.type == "integer":
            schema |= {"minimum": self.least, "maximum": self.most}
        if self.default is None:
            schema["type"] = [schema["type"], "null"]
        if self.choices:
            schema["enum"] = [*self.choices, None] if self.default is None else list(self.choices)
        return schema if self.default in (REQUIRED, None) else {**schema, "default": self.default}

    def read_files(self, value: Any) -> dict[str, bytes | None]:
        """The files, as bytes. Raises ``InvalidArgument``."""
        if not isinstance(value, dict) or not 0 < len(value) <= MAX_FILES:
            raise InvalidArgument(f"{self.name} must be an object of 1 to {MAX_FILES} files, path → text", self.name)
        files: dict[str, bytes | None] = {}
        for path, text in value.items():
            if path.removeprefix("./") == Layout.config_file:
                raise settings_refusal()
            if len(path) > _MAX_PATH or file_kind(path) is None:
                raise InvalidArgument(
                    f"{path[:_MAX_PATH]!r} is no file that can be proposed",
                    self.name,
                    "Use agents/NAME.py, scripts/NAME.py, rules/NAME.md, templates/NAME.md or tests/cases/NAME.json.",
                )
            if text is not None and not isinstance(text, str):
                raise InvalidArgument(f"{path} must be a text, or null to remove the file", self.name)
            try:
                files[path] = None if text is None else text.encode("utf-8")
            except UnicodeEncodeError:
                raise InvalidArgument(f"{path} is not valid Unicode text", self.name) from None
        return files


class Operation(Struct, frozen=True):
    """``function`` takes the host and the parameters by name, and gives plain JSON data of the shape ``result``; one of
    effect ``propose`` also takes ``author``."""

    name: str
    doc: str
    effect: Effect
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...] = ()
    result: Mapping[str, Any] = {}
    """JSON Schema of what it gives."""
    is_oldest_first: bool = False
    """Whether of many rows the last ones are those to show."""
    write_line: Callable[[Mapping[str, Any]], str] | None = None
    """A row on one line, for who reads many; None: as JSON."""

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, as one object."""
        return {
            "type": "object",
            "properties": {p.name: p.json_schema | ({"description": p.doc} if p.doc else {}) for p in self.parameters},
            "required": [p.name for p in self.parameters if p.default is REQUIRED],
            "additionalProperties": False,
        }

    def read_arguments(self, arguments: list[Any] | Mapping[str, Any]) -> dict[str, Any]:
        """The value of each parameter, by name. Raises ``InvalidArgument``."""
        names = [p.name for p in self.parameters]
        if isinstance(arguments, list):
            if len(arguments) > len(names):
                raise InvalidArgument(f"{self.name} takes at most {len(names)} arguments, not {len(arguments)}")
            arguments = dict(zip(names, arguments, strict=False))
        try:
            values = read_arguments(arguments, self.parameters_schema)
        except ArgumentFault as fault:
            raise InvalidArgument(f"{self.name}: {fault}", fault.name or None) from None
        files = [p for p in self.parameters if p.type == "files" and values[p.name] is not None]
        return values | {p.name: p.read_files(values[p.name]) for p in files}

    def call_function(self, host: Host, arguments: list[Any] | Mapping[str, Any], *, author: str | None = None) -> Any:
        """The result, as plain data. ``author``: the program that asks, such as ``mcp:NAME``; what proposes needs it.

        Raises ``InvalidArgument`` for wrong arguments, ``ClearedError`` for a refusal.
        """
        values = self.read_arguments(arguments)
        if self.effect == "propose":
            if not author:
                raise ValueError(f"{self.name} needs an author")
            values["author"] = Author(author, is_human=False)
        return self.function(host, **values)
