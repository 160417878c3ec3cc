"""Hostile scripts: what each is after, and what would prove that it got it.

``@FILE@`` is a file outside the workspace with a secret, ``@OUT@`` a path beside it that must not come to be,
``@ENV@`` an environment variable with the secret, ``@PORT@`` a listening loopback port.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Ends = Literal["fails", "harmless"]


@dataclass(frozen=True, slots=True)
class Case:
    """``lint``: the rule that refuses it, or None where it is legal language. ``ends``: how it ends without any lint:
    ``fails``, or ``harmless`` where it may also come to a result that gives nothing away. ``proof``: what
    would prove the escape; ``ALWAYS`` is looked for after every script."""

    name: str
    category: str
    script: str
    lint: str | None
    ends: Ends = "fails"
    proof: str = ""


ALWAYS = (
    "The secret in a result, a print, an error, a log row or any file; a file outside made or changed; a connection on "
    "the port; a process left over; seconds past the limit; hundreds of megabytes more in the host; another exception "
    "than a refusal; a workspace file changed."
)

DOUBLED = "x = []\nfor i in range(60):\n    x = [x, x]\n"
MILLION = "x = 'a' * 1000000\n"

_PLAIN: dict[str, list[tuple[str, str, str | None, Ends]]] = {
    "file": [
        ("open", "open('@FILE@').read()", "forbidden-name", "fails"),
        ("open by descriptor", "[open(n).read() for n in range(10)]", "forbidden-name", "fails"),
        ("write", "open('@OUT@', 'w').write('x')", "forbidden-name", "fails"),
        ("append", "f = open('@FILE@', 'a')\nf.write('x')\nf.close()", "forbidden-name", "fails"),
        ("pathlib read", "from pathlib import Path\nPath('@FILE@').read_text()", "import", "fails"),
        ("pathlib write", "from pathlib import Path\nPath('@OUT@').write_bytes(b'x')", "import", "fails"),
        ("pathlib walk", "from pathlib import Path\n[str(p) for p in Path('/').rglob('*')]", "import", "harmless"),
        ("pathlib unlink", "from pathlib import Path\nPath('@FILE@').unlink()", "import", "fails"),
        ("pathlib symlink", "from pathlib import Path\nPath('@OUT@').symlink_to('@FILE@')", "import", "fails"),
        ("os listing", "import os\nos.listdir('/')", "import", "fails"),
        ("os rename", "import os\nos.rename('@FILE@', '@OUT@')", "import", "fails"),
        ("own memory", "open('/proc/self/mem', 'rb').read(1)", "forbidden-name", "fails"),
        ("open in eval", "eval(\"open('@FILE@').read()\")", "forbidden-name", "fails"),
        (
            "swallowed",
            "try:\n    x = open('@FILE@').read()\nexcept BaseException as e:\n    x = repr(e)\nx",
            "try",
            "harmless",
        ),
        ("json load", "import json\njson.load(open('@FILE@'))", "import", "fails"),
        ("csv reader", "import csv\nlist(csv.reader(open('@FILE@')))", "import", "fails"),
        ("with", "with open('@FILE@') as f:\n    x = f.read()\nx", "with", "fails"),
        ("tempfile", "import tempfile\ntempfile.mkstemp()", "import", "fails"),
        ("shutil", "import shutil\nshutil.copy('@FILE@', '@OUT@')", "import", "fails"),
    ],
    "network": [
        ("socket", "import socket\nsocket.create_connection(('127.0.0.1', @PORT@))", "import", "fails"),
        ("urllib", "from urllib.request import urlopen\nurlopen('http://127.0.0.1:@PORT@/')", "import", "fails"),
        (
            "http",
            "import http.client\nhttp.client.HTTPConnection('127.0.0.1', @PORT@).request('GET', '/')",
            "import",
            "fails",
        ),
        ("asyncio", "import asyncio\nawait asyncio.open_connection('127.0.0.1', @PORT@)", "import", "fails"),
        ("tcp device", "open('/dev/tcp/127.0.0.1/@PORT@', 'w').write('x')", "forbidden-name", "fails"),
        ("as a bank file", "importer_parse('http://127.0.0.1:@PORT@/')", None, "fails"),
    ],
    "environment": [
        ("environ", "import os\nos.environ['@ENV@']", "import", "fails"),
        ("getenv", "import os\nos.getenv('@ENV@') + ''", "import", "fails"),
        ("all of it", "import os\ndict(os.environ)", "import", "fails"),
        ("proc", "open('/proc/self/environ').read()", "forbidden-name", "fails"),
        ("arguments", "import sys\n[sys.argv, sys.executable]", "import", "harmless"),
        ("modules", "import sys\nlist(sys.modules)", "import", "fails"),
        ("cwd", "import os\nos.getcwd()", "import", "harmless"),
        ("configuration", "config_get('@ENV@', None)", None, "harmless"),
        ("home", "from pathlib import Path\nstr(Path.home())", "import", "harmless"),
    ],
    "process": [
        ("system", "import os\nos.system('touch @OUT@')", "import", "fails"),
        ("fork", "import os\nwhile True:\n    os.fork()", "import", "fails"),
        ("exec", "import os\nos.execv('/bin/sh', ['sh', '-c', 'touch @OUT@'])", "import", "fails"),
        ("subprocess", "import subprocess\nsubprocess.Popen(['sleep', '600'])", "import", "fails"),
        ("kill the parent", "import os\nos.kill(os.getppid(), 9)", "import", "fails"),
        ("threads", "import threading\nthreading.Thread(target=print).start()", "import", "fails"),
        ("ctypes", "import ctypes\nctypes.CDLL(None).getpid()", "import", "fails"),
        ("exit", "raise SystemExit(0)", None, "fails"),
        ("interrupt", "raise KeyboardInterrupt()", None, "fails"),
        ("base exception", "raise BaseException('x')", None, "fails"),
        ("abort", "import os\nos.abort()", "import", "fails"),
    ],
    "time": [
        ("loop", "while True:\n    pass", None, "fails"),
        (
            "loop that swallows",
            "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
            "try",
            "fails",
        ),
        ("sleep", "import time\ntime.sleep(3600)\ntime.time()", "import", "harmless"),
        ("sleep in a loop", "import time\nwhile True:\n    time.sleep(3600)", "import", "fails"),
        ("await for ever", "async def f():\n    while True:\n        pass\nawait f()", "async", "fails"),
        ("huge power", "x = 7 ** 7 ** 9", None, "fails"),
        ("squares", "x = 3\nwhile True:\n    x = x * x", None, "fails"),
        ("regex", "import re\nre.match('(.+)+\\\\1x$', 'a' * 50)", "import", "harmless"),
        ("sum", "sum([n * n for n in range(10 ** 11)])", None, "fails"),
        ("loop in exec", "exec('while True: pass')", "forbidden-name", "fails"),
        ("factorial", "import math\nmath.factorial(10 ** 8)", "import", "fails"),
        ("endless calls", "while True:\n    ctx_dry_run()", None, "fails"),
    ],
    "memory": [
        ("text", "x = 'a' * 10 ** 10", None, "fails"),
        ("list", "x = [0] * 10 ** 10", None, "fails"),
        ("nested lists", "x = [[[0] * 10000] * 10000] * 10000\ny = [list(a) for b in x for a in b]", None, "fails"),
        ("dicts", "x = {i: {j: 'x' * j for j in range(9999)} for i in range(9999)}", None, "fails"),
        ("doubling", "x = 'ab'\nwhile True:\n    x += x", None, "fails"),
        ("f-string width", "x = f'{1:>9999999999}'", None, "fails"),
        ("percent width", "x = '%9999999999d' % 1", None, "fails"),
        ("precision", "x = f'{1.5:.2147483647f}'", None, "fails"),
        ("padding", "x = 'x'.ljust(10 ** 10)", None, "fails"),
        ("replace", MILLION + "x.replace('a', x)", None, "fails"),
        ("join", MILLION + "x.join(list(x))", None, "fails"),
        ("swallowed", "try:\n    x = 'a' * 10 ** 11\nexcept BaseException:\n    pass\n'survived'", "try", "fails"),
        ("recursion", "def f(n):\n    return f(n + 1)\nf(0)", None, "fails"),
        ("recursion of lambdas", "f = lambda n: f(n + 1)\nf(0)", None, "fails"),
        ("huge error", "raise ValueError('x' * 60000000)", None, "fails"),
        ("print flood", "while True:\n    print('x' * 10000)", None, "fails"),
        ("one huge print", "print('x' * 60000000)", None, "fails"),
        ("print of a doubled list", DOUBLED + "print(x)", None, "fails"),
        ("result of shared lists", DOUBLED + "x", None, "fails"),
        ("result too deep", "x = []\nfor i in range(100000):\n    x = [x]\nx", None, "fails"),
        ("result in itself", "x = []\nx.append(x)\nx", None, "fails"),
        ("result too long", "list(range(200000))", None, "fails"),
        ("result of much text", MILLION + "[x] * 50", None, "fails"),
        ("result of many digits", "10 ** 5000", None, "fails"),
        ("result with an exponent", "money_allocate('10', [1])[0] ** 900000", None, "fails"),
        (
            "check replaced",
            MILLION + "def __cleared_check__(value, limit):\n    return [None, [x] * 1000]\n1",
            "dunder",
            "fails",
        ),
        (
            "check replaced, doubled",
            DOUBLED + "def __cleared_check__(value, limit):\n    return [None, x]\n1",
            "dunder",
            "fails",
        ),
        ("set of results", "{1, 2}", None, "fails"),
    ],
    "introspection": [
        ("class", "().__class__.__base__.__subclasses__()", "dunder", "fails"),
        ("globals of a function", "def f():\n    pass\nf.__globals__", "dunder", "fails"),
        ("code of a lambda", "(lambda: 0).__code__.co_consts", "dunder", "fails"),
        ("format", "'{0.__class__.__mro__}'.format(1)", None, "fails"),
        ("format by key", "'{a[__class__]}'.format(a={})", None, "fails"),
        ("format of a primitive", "'{0.__globals__}'.format(ctx_log)", None, "fails"),
        ("format_map", "'{x.__class__}'.format_map({'x': 1})", None, "fails"),
        ("f-string", "f'{().__class__!r:>{10}}'", "dunder", "fails"),
        ("f-string width by value", "f'{1!r:{10 ** 10}}'", None, "fails"),
        ("type", "type(type(1))", None, "fails"),
        ("type of three", "type('X', (), {'__del__': print})", "class", "fails"),
        ("builtins", "__builtins__['open']('@FILE@')", "forbidden-name", "fails"),
        ("generator frame", "(n for n in [1]).gi_frame.f_globals", None, "fails"),
        ("coroutine frame", "async def f():\n    pass\nf().cr_frame.f_globals", "async", "fails"),
        (
            "traceback",
            "try:\n    1 / 0\nexcept Exception as e:\n    x = e.__traceback__.tb_frame.f_globals\nx",
            "try",
            "fails",
        ),
        ("getattr", "getattr((), '__cl' + 'ass__')", "forbidden-name", "fails"),
        ("getattr by another name", "g = getattr\ng(1, '__class__')", "forbidden-name", "fails"),
        ("attrgetter", "import operator\noperator.attrgetter('__class__')(1)", "import", "fails"),
        ("sys frames", "import sys\nsys._getframe().f_back", "import", "fails"),
        ("garbage collector", "import gc\ngc.get_objects()", "import", "fails"),
        ("import by hand", "__import__('os').environ", "forbidden-name", "fails"),
        ("globals", "globals()['open']", "forbidden-name", "fails"),
        ("match a class", "match 1:\n    case int(__class__=c):\n        c", "dunder", "harmless"),
        ("a primitive's insides", "ctx_log.__wrapped__", "dunder", "fails"),
        ("the check's own names", "__cleared_decimal__('1')", "dunder", "harmless"),
        ("forged tail", "__tail__ = -7\n1", "dunder", "harmless"),
        (
            "class with hooks",
            "class A:\n    def __reduce__(self):\n        return (open, ('@FILE@',))\nA()",
            "class",
            "fails",
        ),
    ],
    "encoding": [
        ("NFKC", "ｏｐｅｎ('@FILE@').read()", "forbidden-name", "fails"),
        ("mathematical letters", "𝓮𝓿𝓪𝓵('1')", "forbidden-name", "harmless"),
        ("NFKC dunder", "().＿＿class＿＿", "syntax", "fails"),
        ("homoglyph", "оpen('@FILE@').read()", "ascii-name", "fails"),
        ("bidi", "x = '\u202e'\nx", "bidi", "fails"),
        ("bidi in a comment", "x = 1  # \u2066 if False:\nopen('@FILE@')", "bidi", "fails"),
        ("surrogate", "x = '\\ud800'\nx", None, "harmless"),
        ("surrogate by chr", "chr(0xD800)", None, "fails"),
        ("NUL", "x = 1\0\nopen('@FILE@')", "character", "fails"),
        ("coding cookie", "# -*- coding: utf-7 -*-\n# +AAo-open('@FILE@').read()\n", None, "harmless"),
        ("byte order marks", "\ufeff\ufeffopen('@FILE@').read()", "syntax", "fails"),
        ("continuation", "op\\\nen('@FILE@').read()", "syntax", "fails"),
        ("continued attribute", "().\\\n__class__", "dunder", "fails"),
        ("form feed", "\x0copen('@FILE@').read()", "forbidden-name", "fails"),
        ("line separator", "# x\u2028open('@FILE@').read()", "bidi", "harmless"),
        ("carriage return", "# x\ropen('@FILE@').read()", "forbidden-name", "fails"),
        ("escapes", "eval('\\x6f\\x70en(\"@FILE@\").read()')", "forbidden-name", "fails"),
        ("deep brackets", "x = " + "(" * 5000 + ")" * 5000, "nesting", "fails"),
        ("deep source in eval", "eval('(' * 100000)", "forbidden-name", "fails"),
    ],
    "primitive": [
        ("traversal", "importer_parse('../../@FILE@')", None, "fails"),
        ("absolute", "importer_parse('@FILE@')", None, "fails"),
        ("configuration as a bank file", "importer_parse('../config.yaml')", None, "fails"),
        ("NUL in a name", "importer_parse('a\\x00b')", None, "fails"),
        ("processed elsewhere", "importer_mark_processed('../../@FILE@')", None, "fails"),
        ("script by path", "script_run('../x')", None, "fails"),
        ("script, absolute", "script_run('@FILE@')", None, "fails"),
        ("script in git", "script_run('../.git/config')", None, "fails"),
        ("argument of script_run", "script_run('tax', __builtins__=1)", "forbidden-name", "fails"),
        ("argument that is a primitive", "script_run('x', ctx_log=1)", None, "fails"),
        ("NaN", "journal_add_double('2025-01-03', 'x', 5020, 1010, float('nan'))", None, "fails"),
        ("infinity", "journal_add_double('2025-01-03', 'x', 5020, 1010, 1e999)", None, "fails"),
        ("negative infinity", "money_allocate(-1e999, [1])", None, "fails"),
        ("negative zero weights", "money_allocate('1', [-0.0, 0])", None, "fails"),
        ("wrong types", "journal_add_double(['2025-01-03'], {}, None, 1.5, [])", None, "fails"),
        ("truth for an account", "journal_add_double('2025-01-03', 'x', True, 1010, '1')", None, "fails"),
        ("a keyword twice", "journal_add_double('2025-01-03', 'x', 5020, 1010, '1', date='2025-01-04')", None, "fails"),
        ("a keyword of the host", "ctx_log('x', ctx=1)", None, "fails"),
        ("a date far away", "journal_add_double('9999-12-31', 'x', 5020, 1010, '1')", None, "fails"),
        ("an enormous amount", "journal_add_double('2025-01-03', 'x', 5020, 1010, '1e999999')", None, "fails"),
        ("digits", "journal_add_double('2025-01-03', 'x', 5020, 1010, 10 ** 5000)", None, "fails"),
        ("an exponent", "journal_balance(money_allocate('10', [1])[0] ** 900000)", None, "fails"),
        ("huge text", MILLION + "ctx_log(x * 40)", None, "fails"),
        ("the same text often", MILLION + "ctx_emit('x', [x] * 100000)", None, "fails"),
        ("a doubled list", DOUBLED + "ctx_emit('x', x)", None, "fails"),
        ("a doubled list to a text", DOUBLED + "ctx_log(x)", None, "fails"),
        ("a doubled list by keyword", DOUBLED + "ctx_log(message=x)", None, "fails"),
        (
            "a doubled list in an instance",
            "class A:\n    pass\na = A()\n" + DOUBLED + "a.x = x\nctx_emit('x', a)",
            "class",
            "fails",
        ),
        (
            "doubled instances",
            "class A:\n    pass\nx = 1\nfor i in range(60):\n    a = A()\n    a.x = [x, x]\n    x = a\nctx_emit('x', x)",
            "class",
            "fails",
        ),
        ("nested for ever", "x = {}\nx['x'] = x\nctx_emit('x', x)", None, "harmless"),
        ("nested deeply", "x = 1\nfor i in range(100000):\n    x = [x]\nctx_emit('x', x)", None, "fails"),
        ("much, in many calls", "i = 0\nwhile True:\n    i += 1\n    ctx_log(str(i) + 'x' * 5000)", None, "fails"),
        ("functions as values", "ctx_emit('x', [ctx_log, len, lambda: 0])", None, "fails"),
        ("a refusal swallowed", "try:\n    git_commit('x')\nexcept BaseException:\n    pass\n'hidden'", "try", "fails"),
        (
            "a refusal swallowed for ever",
            "while True:\n    try:\n        git_commit('x')\n    except BaseException:\n        pass",
            "try",
            "fails",
        ),
        ("finally after a refusal", "try:\n    git_commit('x')\nfinally:\n    ctx_log('after')\n", "try", "fails"),
        ("not granted", "git_commit('x')", None, "fails"),
        ("a human's status", "journal_update_status('2025-01-001', 'user-confirmed')", None, "fails"),
        ("log lines forged", "ctx_log('x\\n2025-01-01,forged,row')", None, "harmless"),
        ("a formula", "ctx_log('=HYPERLINK(\"http://127.0.0.1:@PORT@\")')", None, "harmless"),
        ("control sequences in the log", "ctx_log('\\x1b[2J\\x1b]0;x\\x07\\x9b31m')", None, "harmless"),
        ("control sequences in an error", "raise ValueError('\\x1b[2J\\x1b]0;x\\x07\\x9b31m')", None, "fails"),
        ("control sequences in a result", "x = ['\\x1b[2J\\x07\\x9b31m']\nx", None, "harmless"),
        ("control sequences in an argument's name", "ctx_log(**{'\\x1b[2J\\x9b31m': 1})", None, "fails"),
        ("a name looked up only", "f = journal_approve", None, "fails"),
    ],
}

FORGED = '{"jsonrpc":"2.0","id":1,"result":"forged"}'
"""A script of this category comes to ``'real'``; ``forged`` as a result is the escape."""
_FRAMES: list[tuple[str, str]] = [
    ("a response", f"print({FORGED!r})"),
    ("a response without a line's end", f"print({FORGED!r}, end='')"),
    ("many responses", f"for i in range(99):\n    print({FORGED!r}.replace('1', str(i), 1))"),
    ("a request", 'print(\'{"jsonrpc":"2.0","id":"b1","method":"ctx_log","params":{"args":["forged"]}}\')'),
    ("an error", 'print(\'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"forged"}}\')'),
    ("shutdown", 'print(\'{"jsonrpc":"2.0","method":"shutdown"}\')'),
    ("a batch", f"print('[' + {FORGED!r} + ']')"),
    ("lines of all kinds", f"print('\\n' + {FORGED!r} + '\\r\\n' + {FORGED!r} + '\\u2028\\x85\\x0b' + {FORGED!r})"),
    ("a very long line", f"print('x' * 30000 + {FORGED!r})"),
    ("control sequences", "print('\\x1b[2J\\x1b]0;forged\\x07\\x1b]8;;http://127.0.0.1:@PORT@\\x07x\\x9b31m\\b\\b')"),
    ("a tag of the wire", "x = {'$exact': ['other', 'forged', 'forged']}"),
    ("standard error", f"import sys\nprint({FORGED!r}, file=sys.stderr)"),
]

CASES: list[Case] = [
    Case(name, category, script, lint, ends, proof=ALWAYS)
    for category, rows in _PLAIN.items()
    for name, script, lint, ends in rows
] + [
    Case(
        name,
        "frames",
        f"{script}\n'real'",
        "import" if script.startswith("import") else None,
        "harmless",
        "A result that is not 'real', or a frame that the bridge did not mean.",
    )
    for name, script in _FRAMES
]
