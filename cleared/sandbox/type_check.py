"""Type checks a script without running it.

The interpreter cannot only check. So a first line that always fails the check keeps the script from starting; its
diagnostic is removed again. Where that diagnostic is missing the stubs are broken, which the interpreter would silently
ignore: that is a fault of this program, and is raised.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Self

from cleared.base.errors import Place, WorkspaceError
from cleared.processes.confinement import limit_processor_time
from cleared.sandbox.finding import Finding, make_rules
from cleared.sandbox.script_source import find_dead_code, find_misplaced, normalise_text, parse_script, walk_in_order
from cleared.sandbox.worker_pool import Worker, start_worker

_GUARD: Final = '__lint__: int = ""'
_SELF_TEST: Final = "format(1, 2)\nno_such_primitive()\n"
# The lint refuses such comments; that one was not needed is no second mistake.
_UNUSED_IGNORES: Final = {"unused-type-ignore-comment", "unused-ignore-comment"}
_SECONDS: Final = 20.0
"""Of processor time, so that a busy machine gives the same findings as an idle one."""
_PATIENCE: Final = 15 * _SECONDS
"""Of time on the clock, for a worker that waits for ever, and where processor time cannot be limited. It is also the
time that a script may run, which it never does: the client gives a request hardly more time than that."""
_MAX_CHECKS: Final = 200
"""Checks after which a worker is replaced, as it grows a little with each."""
_SIGNATURE: Final = "See its signature in cleared primitives --stubs."
_SHAPE: Final = "See the shapes in cleared primitives --stubs."
_LATER: Final = "It would fail in the run that first comes there, which need not be the rehearsal."

RULES: Final = make_rules(
    "types",
    {
        "type:unresolved-reference": (
            "a name that nothing defines, or that is not granted",
            _LATER,
            "Only primitives, builtins and the script's own names exist (cleared primitives).",
        ),
        "type:unresolved-global": (
            "`global` for a name that the script never assigns at its top",
            _LATER,
            "Assign it at the top of the script first.",
        ),
        "type:unresolved-attribute": (
            "an attribute or method that a value does not have",
            "Records are dicts; an attribute that does not exist fails in the run that first comes there.",
            "Write record[key] for a record's field; correct the method's name.",
        ),
        "type:unknown-argument": ("a keyword that a function does not take", _LATER, _SIGNATURE),
        "type:missing-argument": ("a call without an argument that the function needs", _LATER, _SIGNATURE),
        "type:parameter-already-assigned": ("an argument given by place and by name", _LATER, "Pass it once."),
        "type:too-many-positional-arguments": ("more arguments than a function takes", _LATER, _SIGNATURE),
        "type:invalid-argument-type": (
            "an argument of the wrong type, or a text that is not among the choices",
            _LATER,
            "Pass a value of the type the primitive takes.",
        ),
        "type:no-matching-overload": (
            "arguments for which a builtin has no form",
            _LATER,
            "Pass values of types that it takes, e.g. str(x) for a text.",
        ),
        "type:invalid-key": ("a key that a record does not have", _LATER, _SHAPE),
        "type:missing-typed-dict-key": ("a record without a key that it must have", _LATER, _SHAPE),
        "type:unsupported-operator": (
            "an operator between types that do not go together, such as an amount and a float",
            "An amount that meets a float is no longer exact, and the interpreter refuses it.",
            "Amounts are Decimal: calculate with int or Decimal, split with money_allocate.",
        ),
        "type:not-iterable": ("a loop over what is not a list or the like", _LATER, "Loop over a list, or range(n)."),
        "type:not-subscriptable": ("`x[…]` of what has no parts", _LATER, "Take the part of a list, dict or text."),
        "type:call-non-callable": ("a call of what is not a function", _LATER, "Call a function."),
        "type:invalid-assignment": (
            "a value assigned to a name, a key or an unpacking that it does not fit",
            "Every use of the name is checked by its declared type: a wrong value would make all of them wrong.",
            "Assign a value of that type, or use another name.",
        ),
        "type:invalid-return-type": ("a function that returns another type than it declares", _LATER, "Correct one."),
        "type:empty-body": ("a function that declares a result and never returns one", _LATER, "Return a value."),
        "type:unchecked": (
            "a call of a primitive that, by the types, is never reached",
            "The type check does not look at what is never reached: its mistakes would show when it is, after all.",
            "Remove it, or the condition that never holds.",
        ),
        "type:unfinished": (
            "a script over which the type check ends without an answer, for want of time or memory",
            "A script that cannot be checked is not checked.",
            "Simplify it: split long expressions, keep many cases in a list.",
        ),
        "type:*": (
            "anything else that the type checker (ty) calls an error, under its own name",
            _LATER,
            "Correct the line.",
        ),
    },
)
# Builtins that work, but are missing in the checker's own stubs.
_BUILTINS: Final = """
def map(function: Any, *iterables: Any) -> list[Any]: ...
def filter(function: Any, iterable: Any) -> list[Any]: ...
def format(value: Any, spec: str = "") -> str: ...
def callable(value: Any) -> bool: ...
def __input__() -> Any: ...
"""


def _char_column(lines: list[str], line: int, offset: int) -> int:
    """1-based column of a byte offset."""
    return len(lines[line - 1].encode()[:offset].decode(errors="ignore")) + 1


_NAME: Final = "__reached__: int = "
_MARK: Final = f'{_NAME}""'


class _MarkedScript:
    """A script with marks, each of which always fails the check.

    Where a mark does not fail, the checker takes the statement after it for unreachable and has not checked it.
    """

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._marks: dict[int, list[int]] = {}
        """Line → columns."""
        self._calls: dict[tuple[int, int], tuple[str, int, int]] = {}
        self._at: dict[tuple[int, int], tuple[int, int]] = {}
        """Row and column of a mark's value → the statement's."""
        self._rows: list[tuple[int, list[tuple[int, int]]]] = []
        """Row → its line, and from which column on it is shifted by how much."""

    def add_mark(self, line: int, column: int, call: tuple[str, int, int]) -> None:
        """Mark a statement that makes a call: name, line, column of the call."""
        self._marks.setdefault(line, []).append(column)
        self._calls[line, column] = call

    def build_text(self) -> str:
        """The marked text. A mark has a line of its own, unless its statement shares a line with another one."""
        out: list[str] = []
        for number, text in enumerate(self._lines, 1):
            shifts: list[tuple[int, int]] = []
            shift = 0
            for column in sorted(self._marks.get(number, ())):
                indent = text[: column + shift - 1]
                if indent.strip():
                    self._at[len(out) + 1, column + shift + len(_NAME)] = (number, column)
                    text = f"{indent}{_MARK}; {text[column + shift - 1 :]}"
                    shift += len(_MARK) + 2
                    shifts.append((column, shift))
                else:
                    out.append(indent + _MARK)
                    self._rows.append((0, []))
                    self._at[len(out), column + len(_NAME)] = (number, column)
            out.append(text)
            self._rows.append((number, shifts))
        return "\n".join(out)

    def original_place(self, row: int, column: int) -> tuple[int, int] | None:
        """A diagnostic's place in the script; None where it is that of a mark, which was therefore reached."""
        if (row, column) in self._at:
            self._calls.pop(self._at[row, column], None)
            return None
        line, shifts = self._rows[row - 1] if row <= len(self._rows) else (len(self._lines), [])
        return line, column - max((shift for start, shift in shifts if column - shift >= start), default=0)

    def unreached_calls(self) -> list[tuple[str, int, int]]:
        """The calls whose marks did not fail."""
        return list(self._calls.values())


_DEFINITION: Final = re.compile(r"^def (\w+)\(", re.MULTILINE)


_LIKE: Final = re.compile(r"^(\w+Like) = (\w+) \| Mapping\[.*$", re.MULTILINE)
"""What is taken for a record: the record, or a dict of a variable."""
_OF_RECORDS: Final = frozenset({"invalid-key", "missing-typed-dict-key"})
_OF_KEYS: Final = "Invalid argument to key "


class _CheckUnfinished(WorkspaceError):
    """The checker ran out of time or memory over a script."""


_TESTED_STUBS: Final[set[str]] = set()
_DIAGNOSTICS: Final[dict[bytes, list[dict[str, object]]]] = {}
"""A digest of stubs and text → what was found, for the last few: who approves checks again what was proposed."""
_MAX_KNOWN: Final = 64


class TypeChecker:
    """Checks scripts against the primitives' stubs; a context manager.

    It has a worker of its own, as the first check grows it by some 50 MB. The worker is confined as those that run
    scripts are, and is replaced after ``_MAX_CHECKS`` checks, or when it has crashed.
    """

    def __init__(self, stubs: str) -> None:
        self._stubs = stubs + _BUILTINS
        self._exact_stubs = _LIKE.sub(r"\1 = \2", self._stubs)
        self._primitives = frozenset(_DEFINITION.findall(stubs))
        self._worker: Worker | None = None
        self._checks = 0

    def __enter__(self) -> Self:
        try:
            self._self_test()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._drop_worker()

    @contextlib.contextmanager
    def _open_session(self, stubs: str) -> Iterator[Any]:
        """A session with the confined worker, never with one that the client has started in its place."""
        if self._checks >= _MAX_CHECKS:
            self._drop_worker()
        while True:
            if self._worker is None:
                self._worker, self._checks = start_worker("best", _PATIENCE), 0
            with self._worker.pool.checkout(
                type_check=True,
                type_check_stubs=stubs,
                type_check_format="jsonlines",
                limits={"max_feed_duration_secs": _PATIENCE, "max_memory": 64 << 20, "max_suspensions": 1},
            ) as session:
                if session.worker_pid == self._worker.pid:
                    self._checks += 1
                    limit_processor_time(self._worker.pid, _SECONDS)
                    yield session
                    return
            self._drop_worker()

    def _drop_worker(self) -> None:
        worker, self._worker, self._checks = self._worker, None, 0
        if worker is not None:
            worker.stop()

    def check_script(self, source: str, file: str, inputs: Iterable[str] = ()) -> list[Finding]:
        """Every type error of the script, in the order of its text; none where it does not parse (see the lint).

        ``inputs``: the arguments of a shared script.
        """
        inputs = tuple(inputs)
        source = normalise_text(source)
        tree = parse_script(source, file)
        if isinstance(tree, Finding):
            return []
        try:
            marked = self._mark_script(tree, source.split("\n"))
            text = marked.build_text()
            if isinstance(
                parse_script(text, file), Finding
            ):  # a mark cannot stand everywhere, such as in a continued line
                marked = _MarkedScript(source.split("\n"))
                text = marked.build_text()
            findings = []
            diagnostics = self._run_checker(text, inputs)
            diagnostics += [d for d in self._check_literal_records(tree, text, inputs) if d not in diagnostics]
            for diagnostic in diagnostics:
                location = diagnostic["location"]
                assert isinstance(location, dict)
                place = marked.original_place(int(location["row"]) - 1, int(location["column"]))
                if place is not None:
                    findings.append(_make_finding(diagnostic, Place(file, *place)))
        except _CheckUnfinished as e:
            rule = RULES["type:unfinished"]
            return [Finding(rule.id, str(e), Place(file, 1, 1), rule.remedy)]
        rule = RULES["type:unchecked"]
        for name, line, column in marked.unreached_calls():
            message = f"by the types, this call of {name} is never reached"
            findings.append(Finding(rule.id, message, Place(file, line, column), rule.remedy))
        if any(f.rule == "type:invalid-syntax" for f in findings) and find_misplaced(source, file):
            findings = [f for f in findings if f.rule != "type:invalid-syntax"]
        return sorted(findings, key=lambda f: (f.place.line or 0, f.place.column or 0, f.rule))

    def _mark_script(self, tree: ast.Module, lines: list[str]) -> _MarkedScript:
        """The script with a mark before each statement that calls a primitive."""
        dead = {
            id(part) for _, _, parts in find_dead_code(tree) for node in parts for part in ast.walk(node)
        }  # the semantic lint reports calls in dead code
        marked = _MarkedScript(lines)
        for node in walk_in_order(tree):
            if isinstance(node, ast.stmt) and id(node) not in dead and (call := self._first_call(node)):
                column = _char_column(lines, node.lineno, node.col_offset)
                if not lines[node.lineno - 1].startswith("elif", column - 1):
                    assert isinstance(call.func, ast.Name)
                    at = _char_column(lines, call.lineno, call.col_offset)
                    marked.add_mark(node.lineno, column, (call.func.id, call.lineno, at))
        return marked

    def _first_call(self, statement: ast.stmt) -> ast.Call | None:
        """The first call of a primitive in a statement, without the statements inside of it."""
        pending: list[ast.AST] = [statement]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._primitives:
                return node
            if not isinstance(node, ast.FunctionDef | ast.Lambda):
                pending += reversed(
                    [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt | ast.match_case)]
                )
        return None

    def _check_literal_records(self, tree: ast.Module, text: str, inputs: Iterable[str]) -> list[dict[str, object]]:
        """What is wrong with dicts that stand in a call of a primitive: as such they are checked key by key. A dict of
        a variable is known by the types of its keys and values only, so that the stubs take any that may be right."""
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        taking = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in self._primitives]
        if not any(isinstance(node, ast.Dict) for call in taking for node in ast.walk(call)):
            return []
        found = self._run_checker(text, inputs, exact=True)
        return [d for d in found if d.get("code") in _OF_RECORDS or str(d.get("message")).startswith(_OF_KEYS)]

    def _run_checker(self, source: str, inputs: Iterable[str] = (), *, exact: bool = False) -> list[dict[str, object]]:
        from pydantic_monty import MontyCrashedError, MontyError, MontyTypingError

        stubs = self._exact_stubs if exact else self._stubs
        text = "; ".join((_GUARD, *(f"{name} = __input__()" for name in inputs))) + f"\n{source}"
        key = hashlib.sha256(f"{len(stubs)} {stubs}{text}".encode("utf-8", "surrogatepass")).digest()
        known = _DIAGNOSTICS.get(key)
        if known is not None:
            return [*known]
        try:
            with self._open_session(stubs) as session:
                session.feed_run(text)
        except MontyTypingError as e:
            diagnostics = [json.loads(line) for line in e.display().splitlines() if line.strip()]
            if any(_row_of(d) == 1 for d in diagnostics):
                errors = [d for d in diagnostics if _row_of(d) > 1 and d.get("severity") == "error"]
                known = _DIAGNOSTICS[key] = [d for d in errors if d.get("code") not in _UNUSED_IGNORES]
                for oldest in list(_DIAGNOSTICS)[:-_MAX_KNOWN]:
                    _DIAGNOSTICS.pop(oldest, None)
                return [*known]
        except MontyCrashedError as e:
            self._drop_worker()
            if "SIGXCPU" in str(e):
                raise _CheckUnfinished(f"the type check did not end within {_SECONDS:g} s of processor time") from None
            raise _CheckUnfinished(f"the type checker crashed over it: {e}") from None
        except MontyError as e:
            raise _CheckUnfinished(f"the type check did not end: {e}") from None
        raise WorkspaceError("the type checker did not understand its stubs", remedy="This is a fault of cleared.")

    def _self_test(self) -> None:
        """Check a script with two mistakes that names every primitive: it must give just those two findings.

        Once for the same stubs in this process.
        """
        if self._stubs in _TESTED_STUBS:
            return
        names = "".join(f"{name}\n" for name in sorted(self._primitives))
        codes = sorted(str(d.get("code")) for d in self._run_checker(_SELF_TEST + names))
        if codes != ["invalid-argument-type", "unresolved-reference"]:
            raise WorkspaceError(
                "the stubs of the primitives are broken: the type checker lets a known-bad script pass",
                remedy="This is a fault of cleared.",
            )
        _TESTED_STUBS.add(self._stubs)


def _make_finding(diagnostic: dict[str, object], place: Place) -> Finding:
    code = str(diagnostic.get("code"))
    message = str(diagnostic.get("message")).rstrip(".")
    return Finding(f"type:{code}", message, place, RULES.get(f"type:{code}", RULES["type:*"]).remedy)


def _row_of(diagnostic: dict[str, object]) -> int:
    location = diagnostic.get("location")
    return int(location["row"]) if isinstance(location, dict) else 0
