"""A3: the construct lint."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox_samples import INGEST

from cleared.sandbox.construct_lint import lint_script

REFUSED = [
    ("import os", "import", 1, 1),
    ("x = 1\nfrom os import path", "import", 2, 1),
    ("class A:\n    pass", "class", 1, 1),
    ("try:\n    x = 1\nexcept ValueError:\n    x = 2", "try", 1, 1),
    ("if True:\n    with x as y:\n        pass", "with", 2, 5),
    ("@cache\ndef f():\n    pass", "decorator", 1, 2),
    ("def f():\n    yield 1", "yield", 2, 5),
    ("def f():\n    yield from x", "yield", 2, 5),
    ("async def f():\n    pass", "async", 1, 1),
    ("x = [i async for i in y]", "async", 1, 18),
    ("await f()", "async", 1, 1),
    ("x = 1\ndel x", "del", 2, 1),
    ("'é'; x = open('x')", "forbidden-name", 1, 10),
    ("eval('1')", "forbidden-name", 1, 1),
    ("exec('1')", "forbidden-name", 1, 1),
    ("compile('1', '', 'eval')", "forbidden-name", 1, 1),
    ("__import__('os')", "forbidden-name", 1, 1),
    ("__builtins__", "forbidden-name", 1, 1),
    ("globals()", "forbidden-name", 1, 1),
    ("locals()", "forbidden-name", 1, 1),
    ("vars()", "forbidden-name", 1, 1),
    ("getattr(x, 'y')", "forbidden-name", 1, 1),
    ("setattr(x, 'y', 1)", "forbidden-name", 1, 1),
    ("delattr(x, 'y')", "forbidden-name", 1, 1),
    ("input()", "forbidden-name", 1, 1),
    ("breakpoint()", "forbidden-name", 1, 1),
    ("help()", "forbidden-name", 1, 1),
    ("f = open", "forbidden-name", 1, 5),
    ("def open():\n    pass", "forbidden-name", 1, 1),
    ("x = ().__class__", "dunder", 1, 8),
    ("__name__", "dunder", 1, 1),
    ("def f():\n    global __x__", "dunder", 2, 5),
    ("f(__x__=1)", "dunder", 1, 3),
    ("match x:\n    case {'a': 1, **__y__}:\n        pass", "dunder", 2, 10),
    ("x = f'{open(1)}'", "forbidden-name", 1, 8),
    ("x = 1  # type: ignore", "type-ignore", 1, 8),
    ("x = 1  #type:ignore[assignment]", "type-ignore", 1, 8),
    ("x = (1 +", "syntax", 1, 5),
    ("x = 1\n\0", "character", 2, 1),
    ("x = '\ud800'", "character", 1, 6),
    ("x = '\u202e'", "bidi", 1, 6),
    ("# \u2066", "bidi", 1, 3),
]


@pytest.mark.parametrize(("source", "rule", "line", "column"), REFUSED)
def test_A3_refused(source: str, rule: str, line: int, column: int) -> None:
    """A3: each with line, column, why and what to do instead."""
    finding = lint_script(source, "agents/x.py")[0]
    assert (finding.rule, finding.place.line, finding.place.column) == (rule, line, column)
    assert finding.place.file == "agents/x.py" and finding.message and finding.remedy


@pytest.mark.parametrize(
    "source",
    [
        INGEST,
        "x = 'open('",
        "# import os, type ignore",
        "x = '# type: ignore'",
        "x = f'{1 + 1:.2f}'",
        "f = lambda x: x + 1",
        "x = sum(i for i in [1, 2])",
        "x = {'open': 1}\nx.open",
        "def f():\n    global y\n    y = 1",
        "match x:\n    case 1:\n        y = 2",
        "_ = __ = 1",
        "x = [[[1]]]\n" + "y = " + "+".join("1" * 150),
        "\ufeffx = 1\r\ny = 2\r",
        "\f\nx = 1",
        "if x == 0:\n  y = 1\n" + "".join(f"elif x == {i}:\n  y = {i}\n" for i in range(150)),
    ],
)
def test_A3_accepted(source: str) -> None:
    assert lint_script(source, "x.py") == ()


def test_A3_all_are_named_in_order() -> None:
    found = lint_script("import a, b\nclass C:\n    import d\ntry:\n    open(1)\nfinally:\n    pass", "x.py")
    assert [(f.rule, f.place.line) for f in found] == [
        ("import", 1),
        ("class", 2),
        ("import", 3),
        ("try", 4),
        ("forbidden-name", 5),
    ]


HOSTILE = [
    "(" * 200_000,
    "f(" * 64 + "x y" + ")" * 64,
    "{**" * 60 + "x y" + "}" * 60,
    "-" * 200_000 + "1",
    "not " * 60_000 + "1",
    "1" + "+1" * 100_000,
    "a" + ".b" * 100_000,
    "x if y else " * 20_000 + "z",
    "lambda: " * 30_000 + "1",
    '"""\\' * 60_000,
    '"""\\"' * 40_000,
    "'" * 250_000,
    "x = " * 60_000 + "1",
    "if x:\n" * 40_000,
    "if 1:\n 1\n" + "elif 1:\n 1\n" * 20_000,
    "x" * 1_000_000,
    "\n" * 250_000,
    "9" * 250_000,
]


@pytest.mark.parametrize("source", HOSTILE, ids=lambda source: ascii(source[:12]))
def test_A3_hostile_text_ends(source: str) -> None:
    began = time.process_time()
    for finding in lint_script(source, "x.py"):
        assert finding.rule in {"nesting", "syntax", "size"}
    assert time.process_time() - began < 10


def test_A3_a_script_has_a_size() -> None:
    """A3: 256 kB of text, also where characters have several bytes."""
    assert lint_script("#" * (256 << 10), "x.py") == ()
    for source in ("#" * ((256 << 10) + 1), "#" + "é" * (128 << 10)):
        (finding,) = lint_script(source, "x.py")
        assert finding.rule == "size" and "256 kB" in finding.message


TOKENS = r"class try: open( __a__ f'{ }' ''' ' # \ ( ) [ { } : lambda é 1 = . else: match case async await @ * ** := 0x"
CHARACTERS = [
    "\n",
    "\t",
    "\u202e",
    "\0",
    "\r",
    "\f",
    "\ud800",
    "\u2028",
    "if x:\n ",
    "# type: ignore",
    "del x",
    "import x\n",
]
PIECES = st.sampled_from([*TOKENS.split(), *CHARACTERS])


@given(st.lists(PIECES | st.text(max_size=5), max_size=25).map("".join))
def test_A3_fuzz(source: str) -> None:
    for finding in lint_script(source, "x.py"):
        line, column = finding.place.line, finding.place.column
        assert line is not None and column is not None
        assert 1 <= line <= source.count("\n") + source.count("\r") + 1
        assert 1 <= column <= len(source) + 2
