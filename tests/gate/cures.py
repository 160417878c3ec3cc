"""What each remedy of the static rules comes to: a script with one fault, and the same with the remedy followed.

A row: the rule, the text with the fault, the text as its remedy says. Rows of ``BODIES`` stand behind a good header.
"""

from __future__ import annotations

from typing import Final

POST: Final = 'journal_add_double("2025-01-03", "x", 5020, {}, {})\n'
LINES: Final = 'journal_add("2025-01-03", "x", [\n    {{{}}},\n    {{"account_id": 1010, "credit": 1}},\n])\n'
IF_THERE: Final = "if accounts_exists(1010):\n    x = accounts_get(1010)\n"
TWICE: Final = "def twice(f):\n    return f\n\n{}def one():\n    return 1\n{}"
SPLIT: Final = "x = money_allocate(t['amount'], [1, 1])[0]\n"
GET: Final = "x = accounts_get({})\n"
FIRST: Final = 't = importer_parse("a.csv")[0]\n'

BODIES: Final[dict[str, tuple[str, str]]] = {
    "syntax": ("x = (1 +\n", "x = (1 + 2)\n"),
    "nesting": ("x = " + "(" * 300 + "1" + ")" * 300 + "\n", "rows = [1]\nx = sum(row for row in rows)\n"),
    "character": ("x = 1\x0b\n", "x = 1\n"),
    "bidi": ('x = "a\u202eb"\n', 'x = "a\\u202eb"\n'),
    "import": ('import os\nx = os.path.join("a", "b")\n', 'x = "a" + "/" + "b"\n'),
    "class": ("class Row:\n    name = 1\n", 'def make_row(name):\n    return {"name": name}\nx = make_row(1)\n'),
    "try": (
        "try:\n    x = accounts_get(1010)\nexcept KeyError:\n    x = None\n",
        IF_THERE,
    ),
    "with": ("with ctx_log('x') as y:\n    pass\n", "ctx_log('x')\n"),
    "decorator": (TWICE.format("@twice\n", ""), TWICE.format("", "x = twice(one)\n")),
    "yield": ("def rows():\n    yield 1\n", "def rows():\n    found = []\n    found.append(1)\n    return found\n"),
    "async": ("async def post():\n    pass\n", "def post():\n    pass\n"),
    "del": ('x = {"a": 1}\ndel x["a"]\n', 'x = {"a": 1}\nx.pop("a")\n'),
    "forbidden-name": ("vars = 1\n", 'values = {"a": 1}\n'),
    "dunder": ("__all__ = []\n", "names = []\n"),
    "type-ignore": ("accounts_get(1010)  # type: ignore\n", "accounts_get(1010)\n"),
    "ascii-name": ("größe = 1\n", "groesse = 1\n"),
    "invisible": ('x = "a\u3164b"\n', 'x = "a\\u3164b"\n'),
    "round-money": (f"{FIRST}x = round(t['amount'] / 2, 2)\n", FIRST + SPLIT + "y = f'{t[\"amount\"]:.2f}'\n"),
    "primitive-in-callback": ("x = list(map(accounts_exists, [1]))\n", "x = [accounts_exists(a) for a in [1]]\n"),
    "shadowed-primitive": ("def f(ctx_log):\n    return ctx_log\n", "def f(text):\n    return text\n"),
    "shared-script-name": (
        'name = "vendor_name"\nx = script_run(name, description="A")\n',
        'x = script_run("vendor_name", description="A")\n',
    ),
    "unreachable": ("def f():\n    return 1\n    ctx_log('x')\n", "def f():\n    ctx_log('x')\n    return 1\n"),
    "unknown-account": (GET.format(9999), GET.format(1010)),
    "closed-account": (POST.format(5900, 1), POST.format(1010, 1)),
    "assigned-account": (f"OTHER = 5900\n{POST.format('OTHER', 1)}", f"OTHER = 1010\n{POST.format('OTHER', 1)}"),
    "unknown-status": ('journal_query(status="confirmed")\n', 'journal_query(status="user-confirmed")\n'),
    "human-status": (POST.format(1010, '1, status="user-confirmed"'), POST.format(1010, '1, status="pending-review"')),
    "type:unresolved-reference": ("x = totals(1)\n", "def totals(n):\n    return n\nx = totals(1)\n"),
    "type:unresolved-global": ("def f():\n    global n\n    n = 1\n", "n = 0\ndef f():\n    global n\n    n = 1\n"),
    "type:unresolved-attribute": (f"{FIRST}x = t.amount\n", f"{FIRST}x = t['amount']\n"),
    "type:unknown-argument": ('ctx_log("x", levl="info")\n', 'ctx_log("x")\n'),
    "type:missing-argument": ("accounts_get()\n", "accounts_get(account_id=1010)\n"),
    "type:parameter-already-assigned": ("accounts_get(1010, account_id=1010)\n", "accounts_get(1010)\n"),
    "type:too-many-positional-arguments": ('ctx_log("a", "b")\n', 'ctx_log("a b")\n'),
    "type:invalid-argument-type": (GET.format('"1010"'), GET.format(1010)),
    "type:no-matching-overload": ('x = ", ".join([1, 2])\n', 'x = ", ".join([str(1), str(2)])\n'),
    "type:invalid-key": (f"{FIRST}x = t['amuont']\n", f"{FIRST}x = t['amount']\n"),
    "type:missing-typed-dict-key": (LINES.format('"debit": 1'), LINES.format('"account_id": 5020, "debit": 1')),
    "type:unsupported-operator": (f"{FIRST}x = t['amount'] * 0.5\n", f"{FIRST}{SPLIT}y = t['amount'] * 2\n"),
    "type:not-iterable": ("for i in 5:\n    x = i\n", "for i in range(5):\n    x = i\n"),
    "type:not-subscriptable": ("x = 5['a']\n", "x = {'a': 5}['a']\n"),
    "type:call-non-callable": ("x = 5\ny = x(1)\n", "def x(n):\n    return n\ny = x(1)\n"),
    "type:invalid-assignment": ("x: int = 'a'\n", "x: str = 'a'\n"),
    "type:invalid-return-type": ("def f() -> str:\n    return 1\n", "def f() -> int:\n    return 1\n"),
    "type:empty-body": ("def f() -> int:\n    pass\n", "def f() -> int:\n    return 1\n"),
    "type:unchecked": ('DEBUG = False\nif DEBUG:\n    accounts_get("1010")\n', "accounts_get(1010)\n"),
}


def header(*lines: str, trigger: str = "on_demand", name: str = "name: Probe") -> str:
    return "\n".join(['"""', name, f"trigger: {trigger}", "description: a probe", *lines, '"""', "x = 1", ""])


WHOLE: Final[dict[str, tuple[str, str]]] = {
    "header-missing": ("x = 1\n", header()),
    "header-name": (header(name="description: two"), header()),
    "header-line": (header("some prose"), header("  some prose")),
    "header-key": (header("retry: 3"), header("retries: 3")),
    "header-duplicate": (header("retries: 3", "retries: 4"), header("retries: 3")),
    "header-trigger": (header(trigger="schedule"), header("schedule: 0 6 * * *", trigger="schedule")),
    "header-cron": (header("schedule: at six", trigger="schedule"), header("schedule: @daily", trigger="schedule")),
    "header-timezone": (
        header("schedule: @daily", "timezone: London", trigger="schedule"),
        header("schedule: @daily", "timezone: Europe/London", trigger="schedule"),
    ),
    "header-watch": (header("watch: /etc", trigger="file_watch"), header("watch: import/*.csv", trigger="file_watch")),
    "header-number": (header("timeout: soon"), header("timeout: 30s")),
    "header-value": (header("event: [a b", trigger="event"), header("event: a", trigger="event")),
    "header-limit": (header("timeout: 12h"), header("timeout: 60s")),
    "unknown-grant": (header("grants: [ctx.lgo]"), header("grants: [ctx.log]")),
    "grants": (
        header("grants: [ctx.log]") + "accounts_get(1010)\n",
        header("grants: [ctx.log, accounts_get]") + "accounts_get(1010)\n",
    ),
}
