"""Type checking a script without running any of it.

The interpreter has no call that only checks. A first line that is sure to fail the check keeps the script from ever
starting; its own diagnostic is left out again. Should it be missing, the stubs were not understood: that is a fault of
ours and is raised, since broken stubs are otherwise ignored without a word.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from cleared.errors import Place, WorkspaceError
from cleared.sandbox.finding import Finding, rules
from cleared.sandbox.source import dead, misplaced, normalise, parse, walk
from cleared.sandbox.workers import prepare_client

if TYPE_CHECKING:
    from pydantic_monty import Monty

_GUARD: Final = '__lint__: int = ""'
_SELF_TEST: Final = "format(1, 2)\nno_such_primitive()\n"
# The lint refuses those comments; that there was nothing to silence is no second mistake.
_UNUSED: Final = {"unused-type-ignore-comment", "unused-ignore-comment"}
_SECONDS: Final = 20.0
_SIGNATURE: Final = "See its signature in cleared primitives --stubs."
_SHAPE: Final = "See the shapes in cleared primitives --stubs."
_LATER: Final = "It would fail in the run that first comes there, which need not be the rehearsal."

RULES: Final = rules(
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
# Working builtins that the checker's own stubs leave out.
_BUILTINS: Final = """
def map(function: Any, *iterables: Any) -> list[Any]: ...
def filter(function: Any, iterable: Any) -> list[Any]: ...
def format(value: Any, spec: str = "") -> str: ...
def callable(value: Any) -> bool: ...
def __input__() -> Any: ...
"""


_DEF: Final = re.compile(r"^def (\w+)\(", re.MULTILINE)
_MARK: Final = re.compile(r"\s*__reached_(\d+): int = ''$")


class _Unfinished(WorkspaceError):
    """The checker ran out of time or memory over a script."""


class TypeChecker:
    """Checks scripts against stubs. A context manager: it owns a worker, which grows by some 50 MB with its first
    check and is therefore not one of those that run scripts."""

    def __init__(self, stubs: str) -> None:
        self._stubs = stubs + _BUILTINS
        self._primitives = frozenset(_DEF.findall(stubs))
        self._pool: Monty | None = None

    def __enter__(self) -> Self:
        prepare_client()
        from pydantic_monty import Monty

        self._pool = Monty(min_processes=1, max_processes=1, request_timeout=_SECONDS, max_checkouts_per_worker=200)
        self._pool.__enter__()
        try:
            self._self_test()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.__exit__(kind, error, traceback)
            self._pool = None

    def check(self, source: str, file: str, inputs: Iterable[str] = ()) -> list[Finding]:
        """Every type error of the script, in the order of its text; none where it cannot be parsed, as the lint says
        so. ``inputs``: names a shared script is given."""
        inputs = tuple(inputs)
        source = normalise(source)
        tree = parse(source, file)
        if isinstance(tree, Finding):
            return []
        try:
            found = [self._finding(d, file) for d in self._diagnostics(source, inputs)]
            found += self._unchecked(tree, source, file, inputs)
        except _Unfinished as e:
            rule = RULES["type:unfinished"]
            return [Finding(rule.id, str(e), Place(file, 1, 1), rule.remedy)]
        if any(f.rule == "type:invalid-syntax" for f in found) and misplaced(source, file):
            found = [f for f in found if f.rule != "type:invalid-syntax"]
        return sorted(found, key=lambda f: (f.place.line or 0, f.place.column or 0, f.rule))

    def _unchecked(self, tree: ast.Module, source: str, file: str, inputs: tuple[str, ...]) -> Iterator[Finding]:
        """Calls of primitives that the checker takes for unreachable and therefore passes over.

        A line that is sure to fail is put before each statement that has such a call: where it does not fail, the
        statement was not looked at.
        """
        said = {id(part) for _, _, parts in dead(tree) for node in parts for part in ast.walk(node)}  # by the traps
        lines = source.split("\n")
        places: list[tuple[str, Place]] = []
        for node in list(walk(tree)):
            for field in ("body", "orelse"):
                body = getattr(node, field, None)
                if not isinstance(body, list):
                    continue
                marked: list[ast.stmt] = []
                for statement in body:
                    call = self._call(statement) if id(statement) not in said else None
                    if call is not None:
                        column = len(lines[call.lineno - 1].encode()[: call.col_offset].decode(errors="ignore")) + 1
                        name = call.func.id if isinstance(call.func, ast.Name) else ""
                        marked.append(_mark(len(places)))
                        places.append((name, Place(file, call.lineno, column)))
                    marked.append(statement)
                setattr(node, field, marked)
        if not places:
            return
        try:
            text = ast.unparse(ast.fix_missing_locations(tree))
        except (RecursionError, ValueError):
            return
        rows = text.split("\n")
        reached = set()
        for diagnostic in self._diagnostics(f"{text}\n", inputs):
            row = _row(diagnostic) - 2
            if 0 <= row < len(rows) and (mark := _MARK.match(rows[row])):
                reached.add(int(mark[1]))
        for i, (name, place) in enumerate(places):
            if i not in reached:
                rule = RULES["type:unchecked"]
                yield Finding(rule.id, f"by the types, this call of {name} is never reached", place, rule.remedy)

    def _call(self, statement: ast.stmt) -> ast.Call | None:
        """The first call of a primitive in a statement itself, without the statements that it holds."""
        todo: list[ast.AST] = [statement]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._primitives:
                return node
            if not isinstance(node, ast.FunctionDef | ast.Lambda):
                todo += reversed(
                    [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt | ast.match_case)]
                )
        return None

    def _diagnostics(self, source: str, inputs: Iterable[str] = ()) -> list[dict[str, object]]:
        from pydantic_monty import MontyCrashedError, MontyError, MontyTypingError

        assert self._pool is not None
        guard = "; ".join((_GUARD, *(f"{name} = __input__()" for name in inputs)))
        try:
            with self._pool.checkout(
                type_check=True,
                type_check_stubs=self._stubs,
                type_check_format="jsonlines",
                limits={"max_feed_duration_secs": 1.0, "max_memory": 64 << 20, "max_suspensions": 1},
            ) as session:
                session.feed_run(f"{guard}\n{source}")
        except MontyTypingError as e:
            found = [json.loads(line) for line in e.display().splitlines() if line.strip()]
            if any(_row(d) == 1 for d in found):
                found = [d for d in found if _row(d) > 1 and d.get("severity") == "error"]
                return [d for d in found if d.get("code") not in _UNUSED]
        except MontyCrashedError:
            raise _Unfinished(f"the type check did not end within {_SECONDS:g} s") from None
        except MontyError as e:
            raise _Unfinished(f"the type check did not end: {e}") from None
        raise WorkspaceError("the type checker did not understand its stubs", remedy="This is a fault of cleared.")

    def _self_test(self) -> None:
        """A script with two mistakes that names every primitive: both mistakes must be found, and every name known."""
        names = "".join(f"{name}\n" for name in sorted(self._primitives))
        codes = sorted(str(d.get("code")) for d in self._diagnostics(_SELF_TEST + names))
        if codes != ["invalid-argument-type", "unresolved-reference"]:
            raise WorkspaceError(
                "the stubs of the primitives are broken: the type checker lets a known-bad script pass",
                remedy="This is a fault of cleared.",
            )

    def _finding(self, diagnostic: dict[str, object], file: str) -> Finding:
        location = diagnostic["location"]
        assert isinstance(location, dict)
        code = str(diagnostic.get("code"))
        message = str(diagnostic.get("message")).rstrip(".")
        place = Place(file, int(location["row"]) - 1, int(location["column"]))
        return Finding(f"type:{code}", message, place, RULES.get(f"type:{code}", RULES["type:*"]).remedy)


def _mark(number: int) -> ast.stmt:
    target = ast.Name(f"__reached_{number}", ast.Store())
    return ast.AnnAssign(target, ast.Name("int", ast.Load()), ast.Constant(""), 1)


def _row(diagnostic: dict[str, object]) -> int:
    location = diagnostic.get("location")
    return int(location["row"]) if isinstance(location, dict) else 0
