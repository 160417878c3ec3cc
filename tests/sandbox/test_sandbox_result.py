"""A2: the last expression is the result; lines and columns stay the author's."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandbox_samples import FILE, INGEST, Host, run

from cleared.base.errors import Place
from cleared.sandbox.monty import Sandbox
from cleared.sandbox.script_failure import HostCallFailed, ScriptError
from cleared.sandbox.script_source import RewrittenScript

ROWS = [
    {"date": "2025-01-03", "description": "GITHUB *PRO", "amount": -4.0, "reference": "a", "type": "ACH_DEBIT"},
    {"date": "2025-01-04", "description": "AWS credit", "amount": 9.5, "reference": "b", "type": "ACH_CREDIT"},
    {"date": "2025-01-05", "description": "Corner shop", "amount": -7.25, "reference": "c", "type": "ACH_DEBIT"},
]


def ingest_host(files: list[str]) -> Host:
    return Host(
        importer_scan=lambda: [{"name": name} for name in files],
        importer_parse=lambda filename: ROWS,
        importer_mark_processed=lambda filename: None,
        journal_add_double=lambda **entry: {"id": "e1"},
        queue_add_review=lambda **card: None,
        config_get=lambda key: 0.95,
        git_commit=lambda message: {"success": True},
        ctx_log=lambda message: None,
    )


def line_of(text: str, source: str = INGEST) -> int:
    return next(number for number, line in enumerate(source.split("\n"), 1) if text in line)


def test_A2_document_003_on_an_empty_folder(sandbox: Sandbox) -> None:
    assert run(sandbox, INGEST, ingest_host([])) == {"imported": 0, "confirmed": 0, "review": 0}


def test_A2_document_003_on_a_bank_file(sandbox: Sandbox) -> None:
    host = ingest_host(["a.csv", "b.csv"])
    assert run(sandbox, INGEST, host) == {"imported": 6, "confirmed": 4, "review": 2}
    at = {(name, position.line, position.column) for name, _, _, position in host.calls}
    assert ("importer_scan", line_of("importer_scan()"), 9) in at
    assert ("git_commit", line_of("git_commit("), 5) in at
    entry = next(kwargs for name, _, kwargs, _ in host.calls if name == "journal_add_double")
    assert entry["debit_account"] == 5020 and entry["amount"] == 4.0 and entry["date"] == "2025-01-03"


@pytest.mark.parametrize("files", [[], ["a.csv"]])
def test_A2_traceback_lines_are_unshifted(sandbox: Sandbox, files: list[str]) -> None:
    """A2: an error in either tail expression names the line and column that the author wrote."""
    source = INGEST.replace('{"imported": 0,', '{"imported": 1 // 0,').replace(
        '{"imported": total_imported,', '{"imported": 1 // 0,'
    )
    line = line_of("ctx_log") + 1 if not files else line_of('"review": total_review}')
    with pytest.raises(ScriptError) as caught:
        run(sandbox, source, ingest_host(files))
    error = caught.value
    assert (error.kind, error.type) == ("error", "ZeroDivisionError")
    assert error.place == Place(FILE, line, 18)
    assert error.frames[-1].source_line == source.split("\n")[line - 1]
    assert f'File "{FILE}", line {line}, in <module>' in error.traceback
    assert "__result__" not in error.traceback and "python-input" not in error.traceback


def test_A2_frames_through_functions(sandbox: Sandbox) -> None:
    source = "def g(n):\n    boom(n)\ndef f(n):\n    return [g(i) for i in [n]]\nif True:\n    é = 'é'; f(é)\n"

    def boom(value: object) -> None:
        raise ValueError(f"no {value}")

    with pytest.raises(HostCallFailed) as caught:
        run(sandbox, source, Host(boom=boom))
    failed = caught.value
    assert (failed.name, failed.position.line, failed.position.column) == ("boom", 2, 5)
    assert isinstance(failed.original, ValueError) and failed.__cause__ is failed.original
    assert [(f.line, f.column, f.function) for f in failed.frames] == [
        (6, 14, "<module>"),
        (4, 13, "f"),
        (2, 5, "g"),
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", None),
        ("1", 1),
        ("x = 1", None),
        ('"""name: x"""', None),
        ('"""name: x"""\n5', 5),
        ("if 0: 1\nelif 1: 2\nelse: 3", 2),
        ("if 0: 1", None),
        ("if 1:\n    if 0:\n        1\n    else:\n        (\n            2\n        )\n", 2),
        ("5\nx = 1", None),
        ("if 1:\n    7\n    x = 1", None),
        ("for i in [1]:\n    i", None),
        ("if 1:\n    1; 2; 'é'", "é"),
        ("1, 2", [1, 2]),
        ("x = 3; x", 3),
        ("(x := 4)", 4),
        ("...", None),
        ("__result__ = 5\n6", 6),
        ("__tail__ = 'x'\n6", 6),
        ("x = 1\r\nx\r\n", 1),
    ],
)
def test_A2_results(sandbox: Sandbox, source: str, expected: object) -> None:
    assert run(sandbox, source) == expected


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("range(5)", "result is a range"),
        ("{'x': [1, 2, range(3)]}", 'result["x"][2] is a range'),
        ("lambda: 1", "result is a function"),
        ("{1, 2}", "result is a set"),
        ("b'x'", "result is a bytes"),
        ("{1: 2}", "result has a key that is not a str but int"),
        ("[float('nan')]", "result[0] is not a finite number"),
        ("-float('inf')", "result is not a finite number"),
        ("print", "result is a builtin_function_or_method"),
        ("x = []\nfor i in range(40): x = [x]\nx", "nested more than 32 levels deep"),
        ("[0] * 200000", "more than 100000 values"),
        ("'x' * 2000000", "too much text"),
        ("10 ** 5000", "more than 4000 digits"),
        ("x = []\nx.append(x)\nx", "nested more than 32"),
        ("str = isinstance = type = list = 5\nrange(5)", "result is a range"),
    ],
)
def test_A2_a_result_is_never_silently_a_string(sandbox: Sandbox, source: str, told: str) -> None:
    with pytest.raises(ScriptError) as caught:
        run(sandbox, source)
    assert caught.value.kind == "result" and told in caught.value.message
    assert caught.value.place == Place(FILE, source.count("\n") + 1, 1)


@dataclass(frozen=True)
class Leaf:
    text: str
    value: object

    def lines(self, indent: str) -> list[str]:
        return [indent + self.text]

    def result(self, _: dict[str, bool]) -> object:
        return self.value


@dataclass(frozen=True)
class Branch:
    arms: list[tuple[str, list[Leaf], object]]
    otherwise: object

    def lines(self, indent: str) -> list[str]:
        found = []
        for number, (flag, before, last) in enumerate(self.arms):
            found.append(f"{indent}{'elif' if number else 'if'} {flag}:")
            for part in (*before, last):
                found += part.lines(indent + "  ")  # type: ignore[attr-defined]
        if self.otherwise is not None:
            found += [f"{indent}else:", *self.otherwise.lines(indent + "\t")]  # type: ignore[attr-defined]
        return found

    def result(self, flags: dict[str, bool]) -> object:
        for flag, _, last in self.arms:
            if flags[flag]:
                return last.result(flags)  # type: ignore[attr-defined]
        return self.otherwise.result(flags) if self.otherwise else None  # type: ignore[attr-defined]


LEAVES = {"7": 7, "'é🎉'": "é🎉", "y = 9": None, "[1, (2, 3)]": [1, [2, 3]], "pass": None, "y = 1; y + 1": 2}
LEAVES |= {"for i in [1]: i": None, "(1)": 1, "{'a': None}": {"a": None}}
LEAF = st.sampled_from([Leaf(text, value) for text, value in LEAVES.items()])


def _branch(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    arm = st.tuples(st.sampled_from("pqr"), st.lists(LEAF, max_size=2), inner)
    return st.builds(Branch, st.lists(arm, min_size=1, max_size=3), st.none() | inner)


TREE = st.recursive(LEAF, _branch, max_leaves=8)


@settings(max_examples=150, deadline=None)
@given(st.lists(LEAF, max_size=2), TREE, st.fixed_dictionaries({f: st.booleans() for f in "pqr"}))
def test_A2_any_nesting(before: list[Leaf], tree: Leaf, flags: dict[str, bool]) -> None:
    """A2: on real Monty the result is that of the branch taken, and every position maps back."""
    lines = [f"{flag} = {value}" for flag, value in flags.items()]
    for part in (*before, tree):
        lines += part.lines("")
    source = "\n".join(lines)
    assert run(_SANDBOX, source) == tree.result(flags)

    rewritten = RewrittenScript(source, ast.parse(source))
    assert rewritten.text.count("\n") == source.count("\n")
    offset = 0
    for number, line in enumerate(rewritten.text.split("\n"), 1):
        grown = len(line) - len(rewritten.original_line(number))
        for column, character in enumerate(line, 1):
            at = rewritten.original_position(offset)
            assert at == (number, rewritten.original_column(number, column))
            if grown == 0 or column - grown > line.index("__tail__"):
                assert rewritten.original_line(number)[at[1] - 1] == character
            offset += len(character.encode())
        offset += 1


_SANDBOX = Sandbox()
