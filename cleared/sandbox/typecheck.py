"""Type checking a script without running any of it.

The interpreter has no call that only checks. A first line that is sure to fail the check keeps the script from ever
starting; its own diagnostic is left out again. Should it be missing, the stubs were not understood: that is a fault of
ours and is raised, since broken stubs are otherwise ignored without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from cleared.errors import Place, WorkspaceError
from cleared.sandbox.finding import Finding
from cleared.sandbox.source import normalise, parse
from cleared.sandbox.workers import prepare_client

if TYPE_CHECKING:
    from pydantic_monty import Monty

_GUARD: Final = '__lint__: int = ""'
_SELF_TEST: Final = "ctx_log(0)\nno_such_primitive()\n"
_SECONDS: Final = 20.0
_REMEDIES: Final = {
    "unresolved-reference": "Only primitives, builtins and the script's own names exist (cleared primitives).",
    "unknown-argument": "See its signature in cleared primitives --stubs.",
    "missing-argument": "See its signature in cleared primitives --stubs.",
    "invalid-argument-type": "Pass a value of the type the primitive takes.",
    "invalid-key": "See the shapes in cleared primitives --stubs.",
    "unsupported-operator": "Amounts are Decimal: calculate with int or Decimal, split with money_allocate.",
}
# Working builtins that the checker's own stubs leave out.
_BUILTINS: Final = """
def map(function: Any, *iterables: Any) -> list[Any]: ...
def filter(function: Any, iterable: Any) -> list[Any]: ...
def format(value: Any, spec: str = "") -> str: ...
def callable(value: Any) -> bool: ...
def __input__() -> Any: ...
"""


class TypeChecker:
    """Checks scripts against stubs. A context manager: it owns a worker, which grows by some 50 MB with its first
    check and is therefore not one of those that run scripts."""

    def __init__(self, stubs: str) -> None:
        self._stubs = stubs + _BUILTINS
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
        """Every type error of the script, in the order of its text. ``inputs``: names a shared script is given."""
        source = normalise(source)
        tree = parse(source, file)
        if isinstance(tree, Finding):
            return [tree]
        return [self._finding(d, file) for d in self._diagnostics(source, inputs)]

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
                return [d for d in found if _row(d) > 1 and d.get("severity") == "error"]
        except MontyCrashedError:
            raise WorkspaceError(
                f"the type checker did not end within {_SECONDS:g} s", remedy="Make the script smaller."
            ) from None
        except MontyError as e:
            raise WorkspaceError(f"the type checker cannot read the script: {e}", remedy="Simplify it.") from None
        raise WorkspaceError("the type checker did not understand its stubs", remedy="This is a fault of cleared.")

    def _self_test(self) -> None:
        codes = {str(d.get("code")) for d in self._diagnostics(_SELF_TEST)}
        if not {"invalid-argument-type", "unresolved-reference"} <= codes:
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
        return Finding(f"type:{code}", message, place, _REMEDIES.get(code, "Correct the line."))


def _row(diagnostic: dict[str, object]) -> int:
    location = diagnostic.get("location")
    return int(location["row"]) if isinstance(location, dict) else 0
