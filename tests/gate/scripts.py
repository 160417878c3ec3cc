"""Agent scripts, good and bad, each with what the static stages must find in it, and nothing else.

``#! rule`` at the end of a line is a finding there, ``#! rule:column`` one at that column, several after commas. The
marks are taken out before the script is checked. A script without marks must pass.
"""

from __future__ import annotations

import re
from typing import Final

HEADER: Final = '"""\nname: Probe\ntrigger: on_demand\ndescription: a probe\n"""\n'
_MARK: Final = re.compile(r"[ \t]*#! (.+)$", re.MULTILINE)
_ONE: Final = re.compile(r"((?:type:)?[a-z-]+)(?::([0-9]+))?")

Expected = list[tuple[str, int, int | None]]


def unmarked(text: str) -> tuple[str, Expected]:
    """The script as it is checked, and (rule, line, column) of what is to be found."""
    expected: Expected = []
    for number, line in enumerate(text.split("\n"), 1):
        if mark := _MARK.search(line):
            for one in mark[1].split(", "):
                found = _ONE.fullmatch(one)
                assert found, one
                expected.append((found[1], number, int(found[2]) if found[2] else None))
    return _MARK.sub("", text), expected


# -- bodies: a good header is put before each -----------------------------------------------------------------------

BODIES: Final[dict[str, str]] = {
    # A3: what the language leaves out
    "import": "import os  #! import:1\nfrom os import path  #! import:1\n",
    "import of several": "import json, re as r  #! import:1\n",
    "import in a function": """
def total(rows):
    import math  #! import:5
    return math.fsum(rows)
""",
    "relative import": "from . import books  #! import:1, type:unresolved-import\n",
    "star import": "from os import *  #! import:1\n",
    "import of the future": "x = 1\nif x:\n    from json import loads as ctx  #! import:5\n",
    "import by its builtin": "os = __import__('os')  #! forbidden-name:6, type:unresolved-reference:6\n",
    "class": "class Account:  #! class:1\n    pass\n",
    "class in a class": "class A:  #! class:1\n    class B:  #! class:5\n        pass\n",
    "class by type()": "A = type('A', (), {})  #! class:5\n",
    "class by type() and a star": "parts = ['A', (), {}]\nA = type(*parts)  #! class:5\n",
    "try": "try:  #! try:1\n    x = 1\nexcept ValueError:\n    x = 2\n",
    "try with finally": "try:  #! try:1\n    x = 1\nfinally:\n    x = 2\n",
    "try in a loop": """
for i in [1, 2]:
    try:  #! try:5
        x = 1 / i
    except ZeroDivisionError as error:
        x = 0
""",
    "try of groups": "try:  #! try:1\n    x = 1\nexcept* ValueError:\n    x = 2\n",
    "with": "with ctx_log('x') as y:  #! with:1, type:invalid-context-manager:6\n    pass\n",
    "with of a file": "with open('x') as f:  #! with:1, forbidden-name:6, type:unresolved-reference:6\n    x = 1\n",
    "decorator": """
def twice(f):
    return f

@twice  #! decorator:2
def one():
    return 1
""",
    "yield": "def rows():\n    yield 1  #! yield:5\nx = list(rows())\n",
    "yield from": "def rows():\n    yield from [1, 2]  #! yield:5\n",
    "yield as a value": "def rows():\n    x = yield  #! yield:9\n    return x\n",
    "yield at the top": "yield 1  #! yield:1\n",
    "async def": "async def post():  #! async:1\n    pass\n",
    "await": "async def post():  #! async:1\n    await other()  #! async:5, type:unresolved-reference:11\n",
    "async for and with": """
async def post(rows):  #! async:1
    async for row in rows:  #! async:5
        x = row
    async with rows as r:  #! async:5
        x = r
""",
    "async comprehension": "async def f(rows):  #! async:1\n    return [r async for r in rows]  #! async:25\n",
    "del": "x = {'a': 1}\ndel x['a']  #! del:1\n",
    "del of a name": "x = 1\nif x:\n    del x  #! del:5\n",
    "open": "text = open('books.csv')  #! forbidden-name:8, type:unresolved-reference:8\n",
    "open under another name": "f = open  #! forbidden-name:5, type:unresolved-reference:5\n",
    "open in an f-string": "x = f'{open(1)}'  #! forbidden-name:8, type:unresolved-reference:8\n",
    "open behind letters of other widths": "'é'; open('x')  #! forbidden-name:6, type:unresolved-reference:6\n",
    "a filler in a string": "x = 'a\u3164b'  #! invisible:7\n",
    "open in a lambda": "f = lambda: open('x')  #! forbidden-name:13, type:unresolved-reference:13\n",
    "open as a default": "def f(a=open):  #! forbidden-name:9, type:unresolved-reference:9\n    return a\n",
    "a function called open": "def open(x):  #! forbidden-name:1\n    return x\n",
    "an argument called input": "def f(input):  #! forbidden-name:7\n    return 1\n",
    "a loop over a name of a builtin": "for vars in [1]:  #! forbidden-name:5\n    x = 1\n",
    "eval": "x = eval('1 + 1')  #! forbidden-name:5\n",
    "eval in letters of full width": "ｅｖａｌ('1')  #! ascii-name:1, forbidden-name:1\n",
    "exec": "exec('x = 1')  #! forbidden-name:1\n",
    "compile": "c = compile('1', 'x', 'eval')  #! forbidden-name:5, type:unresolved-reference:5\n",
    "globals, locals, vars": """
a = globals()  #! forbidden-name:5, type:unresolved-reference:5
b = locals()  #! forbidden-name:5
c = vars()  #! forbidden-name:5, type:unresolved-reference:5
""",
    "getattr and its like": """
x = [1]
getattr(x, 'pop')  #! forbidden-name:1, type:unresolved-reference:1
setattr(x, 'a', 1)  #! forbidden-name:1, type:unresolved-reference:1
delattr(x, 'a')  #! forbidden-name:1, type:unresolved-reference:1
hasattr(x, 'a')  #! forbidden-name:1, type:unresolved-reference:1
""",
    "input, breakpoint, help, dir": """
a = input()  #! forbidden-name:5, type:unresolved-reference:5
breakpoint()  #! forbidden-name:1, type:unresolved-reference:1
help(a)  #! forbidden-name:1
dir(a)  #! forbidden-name:1, type:unresolved-reference:1
""",
    "dunder attribute": "x = ().__class__  #! dunder:8\n",
    "dunder chain": "x = ().__class__.__base__  #! dunder:8, dunder:18\n",
    "dunder name": "x = __name__  #! dunder:5\n",
    "dunder assigned": "__all__ = []  #! dunder:1\n",
    "dunder function": "def __getattr__(x):  #! dunder:1\n    return x\n",
    "builtins by their name": "x = __builtins__  #! forbidden-name:5\n",
    "dunder in an f-string": "x = 1\ny = f'{x.__doc__}'  #! dunder:10\n",
    "dunder over two lines": "x = (1)\ny = (x\n    .__doc__)  #! dunder:6\n",
    "type: ignore": "x = 1  # type: ignore  #! type-ignore:8\n",
    "type: ignore with a code": "x = 1  #type:ignore[assignment]  #! type-ignore:8\n",
    "ty: ignore": "x = 1  # ty: ignore[invalid-assignment]  #! type-ignore:8\n",
    "type: ignore silences nothing that the lint says": "import os  # type: ignore  #! import:1, type-ignore:12\n",
    "type: ignore behind another comment": "x = 1  # fine # TYPE : IGNORE  #! type-ignore:15\n",
    "return outside a function": "x = 1\nreturn x  #! syntax\n",
    "break outside a loop": "break  #! syntax\n",
    "continue in a function in a loop": "for i in [1]:\n    def f():\n        continue  #! syntax\n",
    "nonlocal at the top": "nonlocal x  #! syntax\n",
    "argument declared twice": "def f(a, a):  #! syntax\n    return a\n",
    "keyword given twice": "ctx_log(message='a', message='b')  #! syntax\n",
    "global after its use": "def f():\n    x = 1\n    global x  #! syntax, type:unresolved-global\n",
    "unfinished bracket": "x = (1 +  #! syntax\n",
    "Python 2": "print 'hello'  #! syntax\n",
    "bad indentation": "if True:\n    x = 1\n  y = 2  #! syntax\n",
    "everything at once": """
import os  #! import:1
class A:  #! class:1
    def f(self):
        try:  #! try:9
            return eval('x')  #! forbidden-name:20
        finally:
            os.remove('x')
""",
    # A3: what must pass
    "nothing": "",
    "open( in a text": "x = 'open(' + \"import os\" + 'class A: # type: ignore'\n",
    "forbidden words in comments": "# import os; open('x'), type ignore, __class__\nx = 1\n",
    "open as a key and a method": "x = {'open': 1, '__class__': 2}\ny = x['open'] + x['__class__']\n",
    "f-strings": """
name = "Acme"
amount = 12.5
x = f"{name!r:>10} {amount:.2f} {{literal}} {'nested' + name}"
""",
    "comprehensions": """
a = [i * 2 for i in range(5) if i % 2]
b = {str(i): i for i in a}
c = {i for i in a}
d = sum(i for i in a)
e = [(i, j) for i in a for j in c if i != j]
""",
    "helpers": """
def cents(text: str) -> int:
    \"\"\"Of an amount as written.\"\"\"
    whole, _, part = text.partition(".")
    return int(whole) * 100 + int((part + "00")[:2])

def both(a, b=1, *rest, c=2, **more):
    return a + b + c + len(rest) + len(more)

x = cents("12.5") + both(1, 2, 3, c=4, d=5)
""",
    "closures and recursion": """
def adder(n):
    def add(x):
        return x + n
    return add

def fact(n):
    return 1 if n < 2 else n * fact(n - 1)

x = adder(3)(4) + fact(5)
""",
    "nonlocal and global": """
count = 0
def bump():
    global count
    count = count + 1
def outer():
    n = 0
    def inner():
        nonlocal n
        n = n + 1
        return n
    return inner()
bump()
x = outer() + count
""",
    "lambda and walrus": "half = lambda x: x // 2\nx = [y for i in [2, 4] if (y := half(i)) > 1]\n",
    "match": """
for kind in ["ACH", "FEE", "X"]:
    match kind:
        case "ACH" | "WIRE":
            x = 1
        case str(other) if len(other) > 2:
            x = len(other)
        case _:
            x = 3
""",
    "stars": "a, *b = [1, 2, 3]\nprint(*b)\nc = {**{'a': 1}, 'b': 2}\nd = [*b, 4]\n",
    "star arguments of a primitive": """
args = [1010]
a = accounts_get(*args)
b = accounts_get(**{'account_id': 1010})
""",
    "while, break, else": """
n = 0
while True:
    n = n + 1
    if n > 3:
        break
for i in range(3):
    if i == 5:
        break
else:
    n = 0
x = n
""",
    "raise and assert": """
rows = importer_scan()
assert len(rows) < 100, "too many files"
if len(rows) > 50:
    raise ValueError("rather many files")
""",
    "a result in the branches at the end": """
files = importer_scan()
if not files:
    ctx_log("none")
    {"imported": 0}
else:
    if len(files) > 3:
        {"imported": len(files), "many": True}
    else:
        {"imported": len(files)}
""",
    "builtins": """
a = list(map(str, [1])) + list(filter(None, ["a"]))
b = sorted(a, key=len) + sorted(["b"], key=lambda t: t.lower(), reverse=True)
c = (min([1, 2]), max([1, 2], key=abs), sum([1]), any(a), all(a), len(a), abs(-1), divmod(7, 2), pow(2, 3))
d = (isinstance(1, int), type(1) == int, callable(len), format(1.5, ".2f"), enumerate(a), zip(a, b), reversed(a))
e = (int("1"), float("1"), str(1), bool(1), set(a), tuple(a), dict(x=1), repr(1), hash(1), chr(65), ord("A"))
f = round(2.5)
""",
    "long but flat": "x = [\n" + "    'row',\n" * 400 + "]\ny = 0\n" + "y = y + 1\n" * 400,
    "one underscore, two underscores": "_ = 1\n__ = 2\n__private = 3\nx = _ + __ + __private\n",
    "annotations": """
x: int = 1
y: list[str] = []
def f(a: dict[str, int], b: str | None = None) -> bool:
    return b in a
""",
    "a semicolon and a continued line": "x = 1; y = 2\nz = x + \\\n    y\n",
    # A4: types
    "wrong type": "accounts_get('1010')  #! type:invalid-argument-type:14\n",
    "wrong type by name": "accounts_get(account_id='1010')  #! type:invalid-argument-type:14\n",
    "wrong type behind wide letters": "é = 'ü'; accounts_get('x')  #! ascii-name:1, type:invalid-argument-type:23\n",
    "wrong type on a line of its own": "accounts_get(\n    '1010'  #! type:invalid-argument-type:5\n)\n",
    "wrong type in a helper": "def f():\n    return accounts_get(None)  #! type:invalid-argument-type:25\n",
    "wrong type by a name": "code = str(1010)\naccounts_get(code)  #! type:invalid-argument-type:14\n",
    "wrong type through a helper's declaration": """
def double(x: int) -> int:
    return x * 2
double("a")  #! type:invalid-argument-type:8
""",
    "missing argument": "accounts_get()  #! type:missing-argument:1\n",
    "missing arguments": "journal_add_double(date='2025-01-03', description='x')  #! type:missing-argument:1\n",
    "misspelt keyword": "ctx_log(mesage='x')  #! type:missing-argument:1, type:unknown-argument:9\n",
    "misspelt keyword beside the others": """
journal_add_double(
    date="2025-01-03", description="x", debit_account=5020, credit_account=1010, amount=1,
    statuss="pending-review",  #! type:unknown-argument:5
)
""",
    "too many arguments": "ctx_log('a', 'b')  #! type:too-many-positional-arguments:14\n",
    "an argument twice": "accounts_get(1010, account_id=1010)  #! type:parameter-already-assigned:20\n",
    "unknown name": "x = no_such_thing(1)  #! type:unresolved-reference:5\n",
    "unknown name that no run would reach soon": """
if accounts_exists(9):
    x = accounts_fetch(9)  #! type:unresolved-reference:9
""",
    "used before it is assigned": "x = y + 1  #! type:unresolved-reference:5\ny = 1\n",
    "misspelt primitive": "journal_ad_double()  #! type:unresolved-reference:1\n",
    "Decimal has no name": "x = Decimal('1')  #! type:unresolved-reference:5\n",
    "PermissionError has no name": "x = PermissionError  #! type:unresolved-reference:5\n",
    "misspelt key": """
for t in importer_parse("january.csv"):
    x = t["amuont"]  #! type:invalid-key:11
""",
    "misspelt key of an account": "x = accounts_get(1010)['account_nam']  #! type:invalid-key:24\n",
    "misspelt key of a file": "for f in importer_scan():\n    importer_parse(f['file'])  #! type:invalid-key:22\n",
    "attribute in place of a key": """
for t in importer_parse("january.csv"):
    x = t.amount  #! type:unresolved-attribute:9
""",
    "unknown method": "x = 'a'.to_upper()  #! type:unresolved-attribute:5\n",
    "global without an assignment": "def f():\n    global n  #! type:unresolved-global:12\n    n = 1\n",
    "amounts of every kind": """
for t in importer_parse("january.csv"):
    for amount in [1]:
        journal_add_double(t["date"], "x", 5020, 1010, amount)
    journal_add_double(t["date"], "x", 5020, 1010, t["amount"])
    journal_add_double(t["date"], "x", 5020, 1010, abs(t["amount"]) * 2 - 1)
    journal_add_double(t["date"], "x", 5020, 1010, 1.5)
    journal_add_double(t["date"], "x", 5020, 1010, "1.50")
    journal_add_double(t["date"], "x", 5020, 1010, money_allocate(t["amount"], [1, "2", 1.5])[0])
""",
    "amounts that are none": """
journal_add_double("2025-01-03", "x", 5020, 1010, None)  #! type:invalid-argument-type:51
journal_add_double("2025-01-03", "x", 5020, 1010, [1])  #! type:invalid-argument-type:51
""",
    "an amount and a float": """
for t in importer_parse("january.csv"):
    x = t["amount"] * 1.5  #! type:unsupported-operator:9
    y = 0.5 + t["amount"]  #! type:unsupported-operator:9
""",
    "a text and a number": "x = 'entries: ' + 5  #! type:unsupported-operator:5\n",
    "an amount written into a transaction": """
t = importer_parse("january.csv")[0]
t["amount"] = 1  #! type:invalid-assignment:15
""",
    "unpacking too few": "a, b = (1, 2, 3)  #! type:invalid-assignment:1\n",
    "against its own declaration": "x: int = 'a'  #! type:invalid-assignment:10\n",
    "returns what it does not declare": "def f() -> str:\n    return 1  #! type:invalid-return-type:12\n",
    "returns nothing at all": "def f() -> int:  #! type:empty-body:12\n    pass\n",
    "a loop over a number": "for i in 5:  #! type:not-iterable:10\n    x = i\n",
    "a part of a number": "x = 5['a']  #! type:not-subscriptable:5\n",
    "a call of a number": "x = 5\ny = x(1)  #! type:call-non-callable:5\n",
    "join of numbers": "x = ', '.join([1, 2])  #! type:no-matching-overload:5\n",
    "a result that is None": "x = ctx_log('a') + 1  #! type:unsupported-operator:5\n",
    "a line without its account": """
journal_add("2025-01-03", "x", [
    {"debit": 1},  #! type:missing-typed-dict-key:5
    {"account_id": 1010, "credit": 1},
])
""",
    "a line with a misspelt key": """
journal_add("2025-01-03", "x", [
    {"account_id": 5020, "debt": 1},  #! type:invalid-key:26
    {"account_id": 1010, "credit": 1},
])
""",
    "what a checker knows and no list names": "reveal_type(1)  #! type:undefined-reveal:1, type:revealed-type:13\n",
    "unknown status in a query": """
journal_query(status="confirmed")  #! unknown-status:22, type:invalid-argument-type:15
""",
    "every query": """
journal_query()
journal_query("pending-review", 2025, 1)
journal_query(status="voided", account=5020, text="aws", limit=5)
journal_query(status="user-confirmed")
journal_balance(1010, as_of=ctx_today())
""",
    "values of any type are left to the host": """
limit = config_get("thresholds.auto_confirm")
found = script_run("vendor_name", description="x")
accounts_get(limit)
ctx_log(found)
x = limit + 1.5
""",
    "hidden from the types by a switch": """
DEBUG = False
if DEBUG:
    accounts_get("1010")  #! type:unchecked:5
""",
    "hidden from the types by a result that is never None": """
account = accounts_get(1010)
if account is None:
    ctx_log("missing", 1)  #! type:unchecked:5
""",
    "hidden from the types in a helper": """
MODE = "live"
def log():
    if MODE == "test":
        return accounts_get("x")  #! type:unchecked:16
    return 1
def all_done():
    mode = "live"
    if mode == "test":
        return accounts_get("x")  #! type:unchecked:16
    return log()
""",
    "hidden from the types in a case": """
match 1:
    case 1:
        ctx_log("a")
    case _:
        ctx_log("b")  #! type:unchecked:9
""",
    "hidden from the types on one line": """
DEBUG = False
if DEBUG: accounts_get("1010")  #! type:unchecked:11
if not DEBUG: ctx_log("é"); accounts_get("x"); accounts_get(2 + 3)  #! type:invalid-argument-type:42
""",
    "mistakes beside and after calls on a line": """
ctx_log("a"); x = no_such; ctx_log("b"); y = nor_this  #! type:unresolved-reference:19, type:unresolved-reference:46
if x: ctx_log(1)  #! type:invalid-argument-type:15
elif ctx_dry_run(1): ctx_log(2)  #! type:too-many-positional-arguments:18, type:invalid-argument-type:30
for f in importer_scan(): ctx_log(f)  #! type:invalid-argument-type:35
text = '''
accounts_get("x")
'''; ctx_log(len(text))  #! type:invalid-argument-type:14
""",
    "a call on a continued line": "x = 1; \\\nctx_log(1)  #! type:invalid-argument-type:9\n",
    "narrowed, but looked at": """
for t in importer_parse("january.csv"):
    if t["balance"] is None:
        ctx_log("no balance")
    elif t["balance"] < 0:
        ctx_log("overdrawn")
event = ctx_event()["payload"]
if event is None:
    ctx_log("nothing said")
""",
    # Traps: round
    "round of money": "x = round(1.005, 2)  #! round-money:5\n",
    "round of money by names": "x = round(number=1.005, ndigits=2)  #! round-money:5\n",
    "round of money in a call": """
for t in importer_parse("january.csv"):
    journal_add_double(
        t["date"], "x", 5020, 1010,
        amount=round(t["amount"] / 3, 2),  #! round-money:16
    )
""",
    "round of money in an f-string": "rate = 0.19\nctx_log(f'{round(rate * 100, 1)} %')  #! round-money:12\n",
    "round to whole numbers, and money shown": "x = round(2.5)\ny = f'{2.345:.2f}'\nrow = {'round': 1}\n",
    # Traps: primitives in callbacks
    "primitive in map": "x = list(map(accounts_exists, [1]))  #! primitive-in-callback:14\n",
    "primitive in filter": "x = list(filter(lambda a: accounts_exists(a), [1]))  #! primitive-in-callback:17\n",
    "primitive in sorted": "x = sorted([1], key=lambda a: accounts_exists(a))  #! primitive-in-callback:21\n",
    "primitive in sort": "x = [1]\nx.sort(key=accounts_exists)  #! primitive-in-callback:12\n",
    "primitive in max and min": """
x = max([1], key=accounts_exists)  #! primitive-in-callback:18
y = min([1], key=lambda a: [accounts_exists(b) for b in [a]])  #! primitive-in-callback:18
""",
    "primitive in iter": "x = iter(lambda: ctx_dry_run(), True)  #! primitive-in-callback:10\n",
    "primitive in a helper": """
def known(a):
    return accounts_exists(a)
x = sorted([1], key=known)  #! primitive-in-callback:21
""",
    "primitive in a helper of a helper": """
def known(a):
    return accounts_exists(a)
def rank(a):
    return 1 if known(a) else 2
x = sorted([1], key=rank)  #! primitive-in-callback:21
y = list(map(lambda a: rank(a), [1]))  #! primitive-in-callback:14
""",
    "primitive under another name": "known = accounts_exists\nx = list(map(known, [1]))  #! primitive-in-callback:14\n",
    "primitive in a named lambda": """
known = lambda a: accounts_exists(a)
x = list(filter(known, [1]))  #! primitive-in-callback:17
""",
    "primitive in a made function": """
def ranker(base):
    return lambda a: accounts_exists(base + a)
x = sorted([1], key=ranker(1))  #! primitive-in-callback:21
""",
    "primitives outside of callbacks": """
x = [accounts_exists(a) for a in [1010]]
y = any(accounts_exists(a) for a in [1010])
z = sorted([accounts_get(a)["account_name"] for a in [1010]], key=len)
names = {a["account_id"]: a["account_name"] for a in accounts_list()}
w = sorted([1010], key=lambda a: names[a])
v = ", ".join(map(str, [a["account_id"] for a in accounts_by_type("asset")]))
def shown(n):
    return str(n)
u = list(map(shown, [1]))
""",
    # Traps: shared scripts that are not named
    "worked-out name": """
n = "vendor" + "_name"
x = script_run(n, description="A")  #! shared-script-name:5
y = script_run(name=n, description="A")  #! shared-script-name:5
z = script_run(*["vendor_name"])  #! shared-script-name:5
run = script_run  #! shared-script-name:7
w = script_run("vendor_name", description="A")
""",
    # Traps: shadowed primitives
    "shadowed": "ctx_log = 3  #! shadowed-primitive:1, type:invalid-assignment:11\n",
    "shadowed by a function": """
def ctx_log(message):  #! shadowed-primitive:1
    return message
""",
    "shadowed by an argument": "def f(ctx_log):  #! shadowed-primitive:7\n    return ctx_log\n",
    "shadowed by a loop": """
def f():
    for ctx_today in ["a"]:  #! shadowed-primitive:9
        x = ctx_today
    return [git_log for git_log in [1]]  #! shadowed-primitive:25
""",
    "shadowed in a lambda, a walrus, a match": """
def f(x):
    g = lambda ctx_log: 1  #! shadowed-primitive:16
    if (ctx_now := x):  #! shadowed-primitive:9
        return g
    match x:
        case [git_commit, *git_log]:  #! shadowed-primitive:15, shadowed-primitive:27
            return 1
        case {"a": 1, **ctx_emit}:  #! shadowed-primitive:14
            return 2
    return 3
""",
    "a primitive as a key, an attribute, a text": "x = {'ctx_log': 1}\ny = x['ctx_log']\nz = 'ctx_log'\n",
    # Traps: unreachable code
    "after return": "def f():\n    return 1\n    accounts_get('x')  #! unreachable:5\n    ctx_log(1)\n",
    "after break and continue": """
for a in [1, 2]:
    if a == 1:
        continue
        ctx_log(1)  #! unreachable:9
    break
    x = 1  #! unreachable:5
""",
    "after raise": "x = 1\nif x:\n    raise ValueError('x')\n    ctx_log('x')  #! unreachable:5\n",
    "after assert False": "assert False, 'no'\nctx_log('x')  #! unreachable:1\n",
    "after both branches": """
def f(x):
    if x:
        return 1
    else:
        return 2
    ctx_log("x")  #! unreachable:5
""",
    "after an endless loop": "while True:\n    x = 1\nctx_log('x')  #! unreachable:1\n",
    "after a loop whose inner loop breaks": """
while 1:
    for i in [1]:
        break
ctx_log("x")  #! unreachable:1
""",
    "if False": "if False:  #! unreachable:1\n    accounts_get('x')\nelse:\n    ctx_log('x')\n",
    "if 0, while None, not 1": """
if 0:  #! unreachable:1
    accounts_get("x")
while None:  #! unreachable:1
    accounts_get("x")
if not 1:  #! unreachable:1
    accounts_get("x")
if 1 == 2:  #! unreachable:1
    accounts_get("x")
if []:  #! unreachable:1
    x = 1
""",
    "else of True": "if True:\n    x = 1\nelse:\n    accounts_get('x')  #! unreachable:5\n",
    "elif after True": "if 1:\n    x = 1\nelif ctx_dry_run(1):  #! unreachable:1\n    x = 2\n",
    "and, or, if in an expression": """
a = False and accounts_get("x")  #! unreachable:15
b = True or accounts_get("x")  #! unreachable:13
c = 1 if True else accounts_get("x")  #! unreachable:20
d = accounts_get("x") if False else 1  #! unreachable:5
""",
    "reached after all": """
def f(x):
    if x:
        return 1
    while True:
        x = x + 1
        if x > 9:
            break
    return x
while f(1) and True:
    break
""",
    # Traps: accounts
    "unknown account": "accounts_get(9999)  #! unknown-account:14\n",
    "unknown accounts of a posting": """
journal_add_double(
    date="2025-01-03", description="x", amount=1,
    debit_account=9999,  #! unknown-account:19
    credit_account=1,  #! unknown-account:20
)
""",
    "unknown account by its place": "journal_add_double('2025-01-03', 'x', 5020, 1011, 1)  #! unknown-account:45\n",
    "unknown account in a query": "journal_query(account=9999)  #! unknown-account:23\n",
    "unknown account in a balance": "x = journal_balance(9999)  #! unknown-account:21\n",
    "account zero, given": "journal_balance(0)  #! unknown-account:17\n",
    "unknown account in a line": """
journal_add("2025-01-03", "x", [
    {"account_id": 9999, "debit": 1},  #! unknown-account:20
    {"account_id": 1010, "credit": 1},
])
""",
    "unknown account in lines made before": """
lines = [{"account_id": 9999, "debit": "1"}]  #! unknown-account:25
lines.append({"account_id": 5900, "credit": "1"})  #! closed-account:29
""",
    "unknown account in many entries": """
journal_add_many([
    {"date": "2025-01-03", "description": "x", "debit_account": 9999,  #! unknown-account:65
     "credit_account": 1010, "amount": 1},
])
""",
    "unknown account in a choice": """
x = ctx_dry_run()
accounts_get(1010 if x else 9999)  #! unknown-account:29
accounts_get(x and 9998 or 1010)  #! unknown-account:20
""",
    "unknown account behind a star": "accounts_get(**{'account_id': 9999})  #! unknown-account:31\n",
    "whether an account exists may be asked": "x = accounts_exists(9999)\ny = accounts_exists(account_id=0)\n",
    "closed account": "journal_add_double('2025-01-03', 'x', 5900, 1010, 1)  #! closed-account:39\n",
    "heading": "journal_add_double('2025-01-03', 'x', 5000, 1010, 1)  #! closed-account:39\n",
    "closed accounts may be read": "journal_balance(5900)\naccounts_get(5000)\njournal_query(account=5900)\n",
    "closed account by a name": """
OTHER = 5900  #! assigned-account:9
journal_add_double("2025-01-03", "x", OTHER, 1010, 1)
""",
    "closed account in one of the branches": """
for t in importer_parse("january.csv"):
    account_id = 5030
    if "AWS" in t["description"]:
        account_id = 5020
    elif "MISC" in t["description"]:
        account_id = 5900  #! assigned-account:22
    journal_add_double(t["date"], "x", debit_account=account_id, credit_account=1010, amount=t["amount"])
""",
    "closed account in a table of pairs": """
RULES = [
    ("GITHUB", 5020),
    ("MISC", 5900),  #! assigned-account:14
]
for t in importer_parse("january.csv"):
    for word, account in RULES:
        if word in t["description"]:
            journal_add_double(t["date"], word, account, 1010, t["amount"])
""",
    "closed account in a table of dicts": """
RULES = [
    {"word": "GITHUB", "account": 5020, "confidence": 99},
    {"word": "MISC", "account": 5900, "confidence": 80},  #! assigned-account:33
]
for rule in RULES:
    journal_add_double("2025-01-03", str(rule["word"]), rule["account"], 1010, 1)  #! type:invalid-argument-type
""",
    "closed account in a dict": """
ACCOUNTS = {"GITHUB": 5020, "MISC": 5900}  #! assigned-account:37
for word in ACCOUNTS:
    journal_add_double("2025-01-03", word, ACCOUNTS[word], 1010, 1)
for word, account in ACCOUNTS.items():
    journal_add_double("2025-01-03", word, account, 1010, 1)
journal_add_double("2025-01-03", "x", ACCOUNTS.get("y", 5000), 1010, 1)  #! closed-account:57
journal_add_double("2025-01-03", "x", ACCOUNTS["GITHUB"], 1010, 1)
""",
    "closed account through a helper": """
def post(amount, account=5000):  #! assigned-account:26
    journal_add_double("2025-01-03", "x", account, 1010, amount)
post(1, 5020)
post(2, 5900)  #! assigned-account:9
post(3, account=9999)  #! assigned-account:17
""",
    "closed account through a primitive's other name": """
post = journal_add_double
post("2025-01-03", "x", 5900, 1010, 1)  #! closed-account:25
""",
    "no account yet": """
account = 0
for word, number in [("AWS", 5020)]:
    if word == "AWS":
        account = number
if account:
    journal_add_double("2025-01-03", "x", account, 1010, 1)
""",
    "numbers that are no accounts": """
limit = 9999
rows = journal_query(limit=limit)
{"account_id": 9999, "rows": len(rows), "5900": 5900}
""",
    "computed accounts are left to the host": """
n = 5000 + 20
journal_add_double("2025-01-03", "x", n, int("1010"), 1)
""",
    # Traps: statuses
    "human status": """
journal_add_double("2025-01-03", "x", 5020, 1010, 1, status="user-confirmed")  #! human-status:61
journal_update_status("2025-01-001", "user-corrected")  #! human-status:38
journal_update_status("2025-01-001", status="voided")  #! human-status:45
""",
    "human status by a name": """
sure = ctx_dry_run()
status = "user-confirmed" if sure else "pending-review"  #! human-status:10
journal_update_status("2025-01-001", status)
""",
    "human status in many entries": """
journal_add_many([
    {"date": "2025-01-03", "description": "x", "debit_account": 5020, "credit_account": 1010, "amount": 1,
     "status": "bootstrap-confirmed"},  #! human-status:16
])
""",
    "unknown status": """
journal_update_status("2025-01-001", "done")  #! unknown-status:38, type:invalid-argument-type:38
""",
    "unknown status by a name": """
status = "done"
journal_update_status("2025-01-001", status)  #! type:invalid-argument-type:38
""",
    "statuses a script may set": """
journal_update_status("2025-01-001", "pending-review")
journal_add_double("2025-01-03", "x", 5020, 1010, 1, status="auto-confirmed")
{"status": "done"}
""",
    # Positions
    "after a form feed": "\fx = 1\naccounts_get('x')  #! type:invalid-argument-type:14\n",
    "after a line separator in escapes": "x = '\\u2028\\x0b\\x1c'; y = round(1.5, 1)  #! round-money:27\n",
    "with tabs": "if ctx_dry_run():\n\taccounts_get(9999)  #! unknown-account:15\n",
    "in a text over lines": "x = '''\nimport os\n''' + open('x')  #! forbidden-name:7, type:unresolved-reference:7\n",
    "in an emoji's line": "x = '🧾🧾'; accounts_get(9999)  #! unknown-account:24\n",
}

# -- whole files: headers ---------------------------------------------------------------------------------------------

WHOLE: Final[dict[str, str]] = {
    "no header": "x = 1  #! header-missing:1\n",
    "no header but a comment": "# name: A  #! header-missing:1\nx = 1\n",
    "a header that is no docstring": 'x = """\nname: A\n"""\n'.replace('x = """', 'x = """  #! header-missing:1', 1),
    "an f-string for a header": "f'''  #! header-missing:1\nname: A\n'''\n",
    "a header in brackets": "('''  #! header-missing:1\nname: A\n''')\n",
    "empty header": '"""  #! header-name\n"""\nx = 1\n',
    "no name": '"""  #! header-name\ntrigger: on_demand\n"""\n',
    "empty name": '"""\nname:  #! header-name\n"""\n',
    "a name too long": f'"""\nname: {"a" * 201}  #! header-name\n"""\n',
    "unknown trigger": '"""\nname: A\ntrigger: hourly  #! header-trigger\n"""\n',
    "unknown trigger in a list": '"""\nname: A\ntrigger: [on_demand, hourly]  #! header-trigger\n"""\n',
    "empty trigger": '"""\nname: A\ntrigger:  #! header-trigger\n"""\n',
    "trigger without its key": '"""\nname: A\ntrigger: schedule  #! header-trigger\n"""\n',
    "two without their keys": '"""\nname: A\ntrigger: [event, file_watch]  #! header-trigger, header-trigger\n"""\n',
    "key without its trigger": '"""\nname: A\nschedule: "@daily"  #! header-cron, header-trigger\n"""\n',
    "sample without its trigger": '"""\nname: A\nsample: {"a": 1}  #! header-trigger\n"""\n',
    "sample that is no JSON": '"""\nname: A\ntrigger: webhook\nsample: {a: 1}  #! header-value\n"""\n',
    "watch without its trigger": '"""\nname: A\nwatch: import/  #! header-trigger\n"""\n',
    "four fields": '"""\nname: A\ntrigger: schedule\nschedule: 0 6 * *  #! header-cron\n"""\n',
    "minute 61": '"""\nname: A\ntrigger: schedule\nschedule: 61 6 * * *  #! header-cron\n"""\n',
    "a schedule in words": '"""\nname: A\ntrigger: schedule\nschedule: every day at six  #! header-cron\n"""\n',
    "a misspelt alias": '"""\nname: A\ntrigger: schedule\nschedule: @dayly  #! header-cron\n"""\n',
    "30 February": '"""\nname: A\ntrigger: schedule\nschedule: 0 0 30 2 *  #! header-cron\n"""\n',
    "unknown key": '"""\nname: A\ndescripton: x  #! header-key\n"""\n',
    "unknown key that is like none": '"""\nname: A\nowner: me  #! header-key\n"""\n',
    "key in capitals": '"""  #! header-name\nName: A  #! header-key\n"""\n',
    "key given twice": '"""\nname: A\nname: B  #! header-duplicate\n"""\n',
    "key given three times": """\"""
name: A
retries: 1
retries: 2  #! header-duplicate
retries: 3  #! header-duplicate
\"""
""",
    "prose": '"""\nname: A\nThis agent reads files.  #! header-line\n"""\n',
    "a second line of a name": '"""\nname: A\n  and more  #! header-line\n"""\n',
    "unknown grant": '"""\nname: A\ngrants: [ctx.log, journal.ad]  #! unknown-grant\n"""\nctx_log("x")\n',
    "grants in words": '"""\nname: A\ngrants: ctx.log and more  #! header-value\n"""\n',
    "empty grants": '"""\nname: A\ngrants:  #! header-value\n"""\n',
    "not granted": """\"""
name: A
grants: [ctx.log]
\"""
ctx_log("x")
accounts_list()  #! grants:1, type:unresolved-reference:1
f = git_log  #! grants:5, type:unresolved-reference:5
""",
    "nothing granted": '"""\nname: A\ngrants: []\n"""\nctx_log("x")  #! grants:1, type:unresolved-reference:1\n',
    "granted by both names": '"""\nname: A\ngrants: [ctx.log, accounts_list]\n"""\nctx_log("x")\naccounts_list()\n',
    "number of calls in words": '"""\nname: A\nmax_calls: many  #! header-number\n"""\n',
    "no calls": '"""\nname: A\nmax_calls: 0  #! header-number\n"""\n',
    "negative entries": '"""\nname: A\nmax_entries: -1  #! header-number\n"""\n',
    "total as a power": '"""\nname: A\nmax_total: 1e9  #! header-number\n"""\n',
    "total with a sign": '"""\nname: A\nmax_total: $100  #! header-number\n"""\n',
    "too little memory": '"""\nname: A\nmemory_mb: 8  #! header-number\n"""\n',
    "two days": '"""\nname: A\ntimeout: 48h  #! header-number\n"""\n',
    "more than a header may ask for": (
        '"""\nname: A\ntimeout: 2h  #! header-limit\nmemory_mb: 4096  #! header-limit\n'
        'max_calls: 10000001  #! header-limit\n"""\n'
    ),
    "as much as a header may ask for": '"""\nname: A\ntimeout: 1h\nmemory_mb: 2048\nmax_calls: 10000000\n"""\n1\n',
    "accounts in words": '"""\nname: A\naccounts: [rent]  #! header-number\n"""\n',
    "no accounts": '"""\nname: A\naccounts: []  #! header-number\n"""\n',
    "accounts that do not exist": '"""\nname: A\naccounts: [5020, 9999]  #! unknown-account\n"""\n',
    "unknown overlap": '"""\nname: A\noverlap: wait  #! header-value\n"""\n',
    "unknown catch_up": '"""\nname: A\ncatch_up: some  #! header-value\n"""\n',
    "a zone on Mars": '"""\nname: A\ntimezone: Mars/Base  #! header-timezone\n"""\n',
    "a zone elsewhere on the disk": '"""\nname: A\ntimezone: ../../etc/passwd  #! header-timezone\n"""\n',
    "watch outside": '"""\nname: A\ntrigger: file_watch\nwatch: ../in  #! header-watch\n"""\n',
    "watch at the root": '"""\nname: A\ntrigger: file_watch\nwatch: [import/, /etc]  #! header-watch\n"""\n',
    "two events without brackets": '"""\nname: A\ntrigger: event\nevent: a.b c.d  #! header-value\n"""\n',
    "arguments that are keywords": '"""\nname: A\nargs: [class]  #! header-args\n"""\n',
    "an argument twice in the header": '"""\nname: A\nargs: [a, a]  #! header-args\n"""\n',
    "several at once, and in the body": """\"""  #! header-name
trigger: schedul  #! header-trigger
retries: 1000  #! header-number
\"""
import os  #! import:1
accounts_get("x")  #! type:invalid-argument-type:14
""",
    "every key": """\"""
name: Night: watch, "quoted"
trigger: [schedule, file_watch, event, on_demand]
schedule: */5 6-18 * * 1-5
timezone: Europe/London
watch: [import/, import/*.csv]
event: review.*
description: the first line
  and a second: with a colon
grants: [accounts_exists, ctx.log]
timeout: 5m
memory_mb: 256
max_calls: 1000
max_entries: 10
max_total: 1500.50
accounts: [5010, 5020]
catch_up: latest
overlap: skip
retries: 3
jitter: 30
\"""
if accounts_exists(1010):
    ctx_log("x")
""",
    "a header of one line": '"name: A"\nx = 1\n',
    "a raw header after a comment": "# An agent.\nr'''\nname: A\n'''\nx = 1\n",
    "a byte order mark and Windows' line ends": '\ufeff"""\r\nname: A\r\n"""\r\nx = 1\r\n',
    "old Mac line ends": '"""\rname: A\r"""\rx = 1\r',
}

# -- hostile texts: as bytes, with rule and line of what is found -----------------------------------------------------

_H: Final = HEADER.encode()
_N: Final = HEADER.count("\n")


def _first(rule: str) -> list[tuple[str, int]]:
    """One finding, on the first line after the header."""
    return [(rule, _N + 1)]


HOSTILE: Final[dict[str, tuple[bytes, list[tuple[str, int]]]]] = {
    "empty": (b"", [("header-missing", 1)]),
    "only spaces": (b" \n\t\n", [("header-missing", 1)]),
    "only a byte order mark": (b"\xef\xbb\xbf", [("header-missing", 1)]),
    "NUL": (_H + b"x = 1\0\n", _first("character")),
    "NUL alone": (b"\0", [("character", 1)]),
    "not UTF-8": (_H + b"x = '\xff\xfe'\n", _first("character")),
    "Latin-1": (_H + "# caf\xe9\nx = 1\n".encode("latin-1"), _first("character")),
    "UTF-16": ((HEADER + "x = 1\n").encode("utf-16"), [("character", 1)]),
    "a lone surrogate": (_H + b"x = '\xed\xa0\x80'\n", _first("character")),
    "an escape sequence": (_H + b"x = 1  # \x1b[2K\x1b[1A\n", _first("character")),
    "a backspace": (_H + b"x = 'a\x08b'\n", _first("character")),
    "a C1 control": (_H + "x = '\x9b2J'\n".encode(), _first("character")),
    "bidi override": (_H + "x = 'a\u202eb'\n".encode(), _first("bidi")),
    "bidi isolate in a comment": (_H + "y = 1\n# \u2066 if x: \u2069\n".encode(), [("bidi", _N + 2)]),
    "bidi mark in the header": ('"""\nname: A\u200f\n"""\n'.encode(), [("bidi", 2)]),
    "a line separator": (_H + "x = 1  # so far \u2028open('x')\n".encode(), _first("bidi")),
    "deep brackets": (_H + b"x = " + b"(" * 5_000 + b")" * 5_000 + b"\n", _first("nesting")),
    "unclosed brackets": (_H + b"(" * 5_000, _first("nesting")),
    "65 brackets": (_H + b"x = " + b"[" * 65 + b"]" * 65 + b"\n", _first("nesting")),
    "64 brackets": (_H + b"x = " + b"(" * 64 + b"1" + b")" * 64 + b"\n", []),
    "many minus signs": (_H + b"x = " + b"-" * 5_000 + b"1\n", _first("nesting")),
    "many nots": (_H + b"x = " + b"not " * 5_000 + b"1\n", _first("nesting")),
    "many lambdas": (_H + b"x = " + b"lambda: " * 5_000 + b"1\n", _first("nesting")),
    "a sum of 50,000": (_H + b"x = 1" + b" + 1" * 50_000 + b"\n", [("nesting", 1)]),
    "a chain of 20,000 attributes": (_H + b"x = 'a'" + b".b" * 20_000 + b"\n", [("nesting", 1)]),
    "300 elif branches": (
        _H + b"n = len(importer_scan())\nif n == 0:\n x = 1\n" + b"elif n == 1:\n x = 1\n" * 300,
        [("nesting", _N + 2 + 2 * 181)],
    ),
    "150 elif branches": (_H + b"n = len(importer_scan())\nif n == 0:\n x = 1\n" + b"elif n == 1:\n x = 1\n" * 150, []),
    "300 blocks in each other": (
        _H + b"".join(b" " * i + b"if x:\n" for i in range(300)) + b" " * 300 + b"pass\n",
        [("syntax", _N + 101)],
    ),
    "an and of 5,000": (_H + b"x = " + b" and ".join([b"1"] * 5_000) + b"\n", [("type:unfinished", 1)]),
    "a huge number": (_H + b"y = 1\nx = " + b"9" * 5_000 + b"\n", [("syntax", _N + 2)]),
    "a large number": (_H + b"x = " + b"9" * 4_000 + b"\n", []),
    "a huge power": (_H + b"x = 10 ** 10 ** 10\ny = 'a' * 10 ** 12\n", []),
    "a line of 1 MB": (_H + b"x = '" + b"a" * 1_000_000 + b"'\n", [("size", 1)]),
    "300 kB": (_H + b"x = 1\n" * 50_000, [("size", 1)]),
    "a line of 200 kB": (_H + b"x = '" + b"a" * 200_000 + b"'\n", []),
    "200,000 lines of nothing": (_H + b"\n" * 200_000, []),
    "an endless text": (_H + b'"""' + b"\\" * 60_001, [("syntax", _N + 1)]),
    "quotes": (_H + b"'" * 60_001, [("syntax", _N + 1)]),
    "a header of 3,000 keys": (
        b'"""\nname: A\n' + b"".join(b"k%d: 1\n" % i for i in range(3_000)) + b'"""\n',
        [("header-key", i) for i in range(3, 3_003)],
    ),
    "a coding line": (b"# -*- coding: rot13 -*-\n" + _H + b"x = 1\n", []),
    "a form feed": (_H + b"\x0cx = 1\n", []),
    "no line end": (_H + b"x = 1", []),
    "a backslash at the end": (_H + b"x = 1\\", [("syntax", _N + 1)]),
    "tabs and spaces": (_H + b"if 1:\n\tx = 1\n        y = 2\n", [("syntax", _N + 3)]),
    "a number for a name of each digit": (_H + "x = ٣\n".encode(), _first("syntax")),
    "10,000 assignments": (_H + b"x = 1\n" * 10_000, []),
    "names that feed each other": (
        _H
        + b"a = b = c = 5020\n"
        + b"a = b if c else a\nb = c or a\nc = [a, b][0]\n" * 50
        + b"journal_balance(a)\n" * 50,
        [],
    ),
}
