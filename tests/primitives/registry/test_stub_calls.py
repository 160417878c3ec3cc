"""Every primitive can be called as scripts are written: with literals, with variables, and with results of others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import pytest
from harness import Workspace

from cleared.primitives import primitive_registry
from cleared.primitives.registry.primitive import Primitive
from cleared.primitives.registry.projections import list_records, render_stubs
from cleared.sandbox.type_check import TypeChecker

REGISTRY = primitive_registry()
MONEY = "Decimal | int | float | str"
LINES = '[{"account_id": 5020, "debit": 4}, {"account_id": 1010, "credit": 4}]'
LITERALS = {
    "str": ['"a text"'],
    "int": ["1010"],
    "bool": ["True"],
    "object": ['{"a": [1, "b", None]}', "1", "None"],
    MONEY: ["4", "4.5", '"4.50"', "-4"],
    "Decimal | int | float": ["1", "0.5"],
    "str | datetime.date": ['"2025-01-31"'],
    "Status": ['"pending-review"'],
    "list[str] | tuple[str, ...]": ['["a", "b"]', '("a", "b")'],
    f"Sequence[{MONEY}]": ["[1, 2]", "[0.5, 1]", '["1", "2"]', '[1, "2"]', "(1, 2)"],
    "Sequence[object]": ['[{"reference": "f1:1"}]', "[]"],
    "Sequence[JournalLineLike]": [LINES, f"({LINES[1:-1]})"],
    "Sequence[EntrySpecLike]": [
        f'[{{"date": "2025-01-31", "description": "x", "lines": {LINES}, "tags": ["a"]}}]',
        '[{"date": "2025-01-31", "description": "x", "debit_account": 5020, "credit_account": 1010, "amount": 4.5}]',
    ],
}
"""What a parameter of a type may be given, as a script writes it."""


def split_union(stub: str) -> set[str]:
    return {stub} if stub.startswith("Sequence[") else set(stub.split(" | "))


def required_type(stub: str) -> str:
    return stub.removesuffix(" | None")


@cache
def list_results() -> tuple[tuple[str, str], ...]:
    """(expression, type) of all that primitives give, down to the fields of their records."""
    fields = {
        record.__name__: dict(line.strip().split(": ", 1) for line in block.splitlines() if line.startswith("    "))
        for record in list_records(REGISTRY)
        for block in [render_stubs(REGISTRY).split(f"class {record.__name__}(TypedDict):\n", 1)[1].split("\n\n", 1)[0]]
    }

    def walk(expression: str, stub: str, depth: int) -> Iterator[tuple[str, str]]:
        yield expression, stub
        inner = stub.removesuffix(" | None")
        if inner != stub or depth > 3:
            return
        if stub.startswith("list["):
            yield from walk(f"{expression}[0]", stub[5:-1], depth + 1)
        for name, field in fields.get(stub, {}).items():
            yield from walk(f'{expression}["{name}"]', field, depth + 1)

    return tuple(
        each
        for p in REGISTRY.values()
        if p.takes.returns.stub != "None"
        for each in walk(write_call(p), p.takes.returns.stub, 0)
    )


def write_call(p: Primitive, **given: str) -> str:
    """A call with all required arguments; ``given``: expressions for some."""
    shown = {q.name: LITERALS[required_type(q.shape.stub)][0] for q in p.takes.params if q.required} | given
    return f"{p.name}({', '.join(f'{name}={value}' for name, value in shown.items())})"


def find_fitting(stub: str) -> list[str]:
    """Results that fit a parameter of this type: as they are, or as a list's items."""
    wanted = split_union(stub)
    items = stub.removeprefix("Sequence[").removesuffix("]")
    fitting = [expression for expression, given in list_results() if split_union(given) <= wanted]
    if stub.startswith("Sequence[") and items in ("object", MONEY):
        fits = (lambda given: True) if items == "object" else (lambda given: given in split_union(items))
        fitting += [e for e, given in list_results() if given.startswith("list[") and fits(given[5:-1])]
    if "list[str]" in wanted:
        fitting += [f"[{e}]" for e, given in list_results() if given == "str"]
    return list(dict.fromkeys(fitting))[:40]


def write_script(p: Primitive) -> str:
    """The primitive with everything that each of its parameters may be given."""
    lines, numbers = [write_call(p)], itertools.count()
    for q in p.takes.params:
        stub = required_type(q.shape.stub)
        for literal in LITERALS[stub]:
            name = f"v{next(numbers)}"
            lines += [write_call(p, **{q.name: literal}), f"{name} = {literal}", write_call(p, **{q.name: name})]
            if literal.startswith(("[{", "[1")):
                lines += [f"items_{name} = []", f"for item in {literal}:", f"    items_{name}.append(item)"]
                lines.append(write_call(p, **{q.name: f"items_{name}"}))
                lines.append(write_call(p, **{q.name: f"[item for item in {name}]"}))
        for expression in find_fitting(stub):
            name = f"r{next(numbers)}"
            lines += [f"{name} = {expression}", write_call(p, **{q.name: name}), write_call(p, **{q.name: expression})]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def checker() -> Iterator[TypeChecker]:
    with TypeChecker(render_stubs(REGISTRY)) as found:
        yield found


@pytest.mark.parametrize("name", REGISTRY)
def test_each_takes_literals_variables_and_results(checker: TypeChecker, name: str) -> None:
    script = write_script(REGISTRY[name])
    lines = script.splitlines()
    found = checker.check_script(script, "agents/probe.py")
    assert [(lines[(f.place.line or 1) - 1], f.message) for f in found] == []


def test_there_is_something_to_give_from_results() -> None:
    """The test above would pass with nothing to call with."""
    given = {stub: find_fitting(stub) for stub in LITERALS}
    assert {"str", "int", MONEY, "Status", "Sequence[object]", f"Sequence[{MONEY}]", "list[str] | tuple[str, ...]"} <= {
        stub for stub, fitting in given.items() if fitting
    }


@pytest.mark.parametrize(
    ("script", "rule"),
    [
        ('journal_add("2025-01-31", "x", [{"acount_id": 5020, "debit": 4}])', "type:invalid-key"),
        ('journal_add("2025-01-31", "x", [{"debit": 4}])', "type:missing-typed-dict-key"),
        ('journal_add("2025-01-31", "x", [{"account_id": "5020", "debit": 4}])', "type:invalid-argument-type"),
        ('journal_add("2025-01-31", "x", "lines")', "type:invalid-argument-type"),
        ('lines = [{"account_id": None}]\njournal_add("2025-01-31", "x", lines)', "type:invalid-argument-type"),
        ("weights = [None]\nmoney_allocate(1, weights)", "type:invalid-argument-type"),
        ('journal_add_many([{"date": 5, "description": "x"}])', "type:invalid-argument-type"),
        ('journal_add("2025-01-31", "x", [], tags="travel")', "type:invalid-argument-type"),
        ('status = "sure"\njournal_query(status)', "type:invalid-argument-type"),
    ],
)
def test_what_is_wrong_is_still_found_once(checker: TypeChecker, script: str, rule: str) -> None:
    found = [f.rule for f in checker.check_script(script + "\n", "agents/probe.py")]
    assert rule in found and len(found) <= 2


VARIABLES = """
txns = []
for file in importer_scan():
    txns = importer_parse(file["name"])
fresh = importer_deduplicate(txns)
weights = [1, 2]
parts = money_allocate("4.50", weights)
amounts = [part for part in parts]
shares = money_allocate(4, amounts)
lines = [{"account_id": 5020, "debit": part} for part in parts]
lines.append({"account_id": 3100, "credit": parts[0] + parts[1]})
journal_add("2025-01-31", "split", lines, tags=["a"])
entries = []
for t in fresh:
    entry = {"date": t["date"], "description": t["description"], "amount": abs(t["amount"])}
    entry["debit_account"] = 5020
    entry["credit_account"] = 3100
    entries.append(entry)
journal_add_many(entries)
for e in journal_query(status="pending-review"):
    journal_update_status(e["entry_id"], e["status"])
"""


def test_they_run_with_variables(checker: TypeChecker, ws: Workspace) -> None:
    """What the type check lets pass the host takes: lists in variables, made of results."""
    assert checker.check_script(VARIABLES, "agents/probe.py") == []
    ws.drop("january.csv")
    ws.script(VARIABLES)
    assert len(ws.entries()) == 5
