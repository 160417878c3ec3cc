"""Script texts to fuzz with: noise, headers, and real scripts that something was done to."""

from __future__ import annotations

import io
import tokenize

from hypothesis import strategies as st

from cleared.workspace import template

SNIPPETS = (
    '"""\nname: a\ntrigger: on_demand\n"""\nx = [t["amount"] for t in importer_parse("a.csv")]\nsum(x)\n',
    '"""\nname: b\ntrigger: schedule\nschedule: */5 * * * *\ntimezone: Europe/London\ngrants: [journal.read, ctx.log]\n'
    'max_total: 1500.00\naccounts: [5010, 5020]\nmax_calls: 10\ntimeout: 5m\n"""\nif ctx_dry_run():\n    "dry"\nelse:\n'
    '    journal_add_double(date="2025-01-03", description="é", debit_account=5020, credit_account=1010, amount="1")\n',
    "def f(n, /, *a, k=1, **kw):\n    return f\"{n!r:>{k}} {{}} {a[0]['x']}\" if n else lambda: (yield)\nf(1)\n",
    "match queue_pending():\n    case [{'id': str(x), **rest}, *_] if x:\n        x\n    case Cls(a=1) | None:\n        ...\n",
    "try:\n    with open('x') as f, g() as (a, b):\n        import os.path as p\nexcept* E as e:\n    del e\nfinally:\n    pass\n",
    "class A(B, metaclass=C):\n    x: int = 1\n    async def f(self):\n        async for i in self: await i\n",
    'script_run("tax", month=1, **{"a": 1})\nsorted(journal_query(), key=lambda e: accounts_get(e["id"])["name"])\n',
    "while True:\n    continue\n    x = 1\nfor i in range(3):\n    break\nelse:\n    global y\n    y = (z := i)\n",
    "x = 1 if y else 2; x += 1 # type: ignore\nround(x, 2) \\\n    + 1\n'''a\nb''' f'{x}' b'c' rb'\\x' 0x1F 1_000 1e309 1j\n",
)
SEEDS = (*(data.decode() for data in template.starter_files().values()), *SNIPPETS)

HOSTILE = (
    "\0",
    "\ufeff",
    "\u202e",
    "\u2066",
    "\ud800",
    "\udc80",
    "\u2028",
    "\x0b",
    "\x0c",
    "\r",
    "\r\n",
    "\x85",
    "\x1b[2J",
    "\t",
    "\u200b",
    "\u212a",
    "\u00aa",
    "\ufe33",
    "\uff3f\uff3f",
    "\U0001d4ee",
    "e\u0301",
    "\u0660",
    "\\\n",
    "\\",
    "'''",
    '"""',
    "'",
    '"',
    "f'{",
    "}}",
    "{{",
    "rb'",
    "f'''{'''",
    "#",
    "# type: ignore",
    "# -*- coding: latin-1 -*-\n",
    ";",
    ":",
    "::",
    ":=",
    "->",
    "@",
    "**",
    "*",
    "...",
    "!",
    "$",
    "?",
    "`",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "lambda:",
    "not ",
    "-",
    "~",
    "await ",
    "async ",
    "yield ",
    "del ",
    "global ",
    "nonlocal ",
    "match ",
    "case ",
    "type ",
    "elif 1:\n",
    "else:\n",
    "if 1:\n ",
    "class ",
    "def ",
    "try:\n",
    "except*",
    "with ",
    "import ",
    "from . ",
    "__class__",
    "__builtins__",
    "open",
    "eval",
    "9" * 5000,
    "0x" + "f" * 5000,
    "1e999999999",
    "name:",
    "trigger: ",
    "schedule: @daily\n",
    "schedule: 0 0 31 2 *\n",
    "schedule: " + "*/1," * 60 + "\n",
    "timezone: ../../etc/passwd\n",
    "grants: [",
    "accounts: [5010, 5010]\n",
    "max_total: 1e9\n",
    "timeout: 99999999999h\n",
    "watch: ../x\n",
    "args: [a, a, if]\n",
)
KEYS = (
    "name",
    "trigger",
    "schedule",
    "timezone",
    "watch",
    "event",
    "description",
    "grants",
    "args",
    "timeout",
    "memory_mb",
    "max_calls",
    "max_entries",
    "max_total",
    "accounts",
    "namee",
    "__class__",
    "a b",
    "é",
    "",
)
VALUES = (
    "",
    "x",
    "on_demand",
    "schedule",
    "file_watch",
    "event",
    "[event, schedule]",
    "*/5 * * * *",
    "0 0 30 2 *",
    "@daily",
    "@never",
    "60 * * * *",
    "* * * * * *",
    "1-0 * * * *",
    "*/0 * * * *",
    "0 0 1 jan mon#6",
    "0 0 L * *",
    "r r r r r",
    "UTC",
    "Europe/London",
    "../etc",
    "/abs",
    "a/../b",
    "**/*",
    "[a, b]",
    "[a, [b]]",
    "[]",
    "[",
    "5m",
    "0",
    "-1",
    "1e5",
    "999999999999999",
    "9" * 400,
    "journal.read",
    "journal_add",
    "1500.00",
    "NaN",
    "٣",
    "5010",
)

characters = st.text(max_size=8) | st.sampled_from(HOSTILE)
noise = st.lists(characters, max_size=30).map("".join)
values = st.sampled_from(VALUES) | st.text(max_size=20) | st.lists(st.sampled_from(VALUES), max_size=8).map(" ".join)
header_lines = st.tuples(
    st.sampled_from(KEYS) | st.text(max_size=6), st.sampled_from((": ", ":", " : ", "=", ":\t")), values
)


@st.composite
def headers(draw: st.DrawFn) -> str:
    quote = draw(st.sampled_from(('"""', "'''", '"', "r'''", "f'''", "b'''", "")))
    lines = ["".join(line) for line in draw(st.lists(header_lines, max_size=12))]
    end = draw(st.sampled_from(("\n", "\r\n", "\r")))
    return quote + end + end.join(lines) + end + quote[-3:] + end + draw(st.sampled_from(("", "1\n", *SNIPPETS[2:4])))


def _tokens(text: str) -> list[str]:
    try:
        return [token.string for token in tokenize.generate_tokens(io.StringIO(text).readline)]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return text.split(" ")


@st.composite
def mutants(draw: st.DrawFn, most: int = 6) -> str:
    """A real script after one to ``most`` mutations."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, most))):
        how = draw(st.integers(0, 9))
        at = draw(st.integers(0, max(len(text) - 1, 0)))
        lines = text.split("\n")
        row = draw(st.integers(0, len(lines) - 1))
        other = draw(st.integers(0, len(lines) - 1))
        if how == 0:
            text = text[:at] + draw(characters) + text[at:]
        elif how == 1:
            text = text[:at] + text[at + draw(st.integers(1, 9)) :]
        elif how == 2:
            lines[row:row] = [lines[other]] * draw(st.integers(1, 3))
            text = "\n".join(lines)
        elif how == 3:
            del lines[row : row + draw(st.integers(1, 4))]
            text = "\n".join(lines)
        elif how == 4:
            lines[row], lines[other] = lines[other], lines[row]
            text = "\n".join(lines)
        elif how == 5:
            lines[row] = draw(st.sampled_from((" ", "    ", "\t"))) + lines[row]
            text = "\n".join(lines)
        elif how == 6:  # a token becomes another script's
            tokens, others = _tokens(text), _tokens(draw(st.sampled_from(SEEDS)))
            old = tokens[draw(st.integers(0, len(tokens) - 1))]
            new = others[draw(st.integers(0, len(others) - 1))]
            text = text[:at] + text[at:].replace(old, new, 1) if old else text
        elif how == 7:
            opening, closing = draw(
                st.sampled_from(
                    (
                        ("(", ")"),
                        ("[", "]"),
                        ("{1:", "}"),
                        ("f(", ")"),
                        ("-", ""),
                        ("not ", ""),
                        ("lambda: ", ""),
                        ("f'{", "}'"),
                        ("if 1:\n ", ""),
                        ("a.", ""),
                    )
                )
            )
            deep = draw(st.sampled_from((2, 30, 63, 64, 65, 100, 200, 1000, 20_000)))
            text = text[:at] + opening * deep + "x" + closing * deep + text[at:]
        elif how == 8:
            text = text[:at] + text[at : at + 40] * draw(st.sampled_from((2, 10, 1000))) + text[at:]
        else:  # bytes that are no text, as a file has them
            data = bytearray(text.encode("utf-8", "surrogatepass"))
            if data:
                data[min(at, len(data) - 1)] ^= 1 << draw(st.integers(0, 7))
            text = data.decode("utf-8", "surrogateescape")
    return text


texts = st.one_of(mutants(), mutants(), headers(), noise)
