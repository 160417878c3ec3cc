"""Traps of the sandbox and of the books that the language allows: found on the syntax tree.

Each rule says why it exists; most are places where a script would work in a test and fail, or post wrongly, later.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from difflib import get_close_matches
from typing import Final

from cleared.errors import Place
from cleared.ledger.chart import Chart
from cleared.ledger.entry import HUMAN_STATUSES, STATUSES
from cleared.registry.primitive import Primitive
from cleared.sandbox.finding import Finding, make_rules
from cleared.sandbox.header import parse_header
from cleared.sandbox.script_source import find_dead_code, normalise_text, parse_script, walk_in_order
from cleared.sandbox.used_primitives import ENQUEUE, JOB_TYPE_GRANT, granted_job_types, is_granted

RULES: Final = make_rules(
    "traps",
    {
        "round-money": (
            "`round()` with a number of places",
            "Over floats it differs from Python's for 43 % of half-cent amounts: cents appear and vanish.",
            'Split with money_allocate, or show with f"{amount:.2f}".',
        ),
        "primitive-in-callback": (
            "a primitive called from inside map, filter, sorted(key=…) and their like, through helpers too",
            "The sandbox cannot wait for the host in there: the run would fail, but only over data that is not empty.",
            "Use a for loop or a comprehension.",
        ),
        "shadowed-primitive": (
            "a name that is a primitive's, assigned or made an argument",
            "Later calls would not reach the host, and would look as if they did.",
            "Choose another name.",
        ),
        "unreachable": (
            "code after the end of its block, or behind a condition that is always the same",
            "The type check passes over what is never reached: a mistake in there is found when it is, after all.",
            "Remove it, or what keeps it from being reached.",
        ),
        "unknown-account": (
            "an account id that is not in the chart of accounts, in a call or in the header",
            "The host would refuse it, in the run that first comes there.",
            "cleared accounts list shows all of them.",
        ),
        "closed-account": (
            "a posting to an account that is closed, or a heading",
            "The host would refuse it, in the run that first comes there; closing an account shows what uses it.",
            "Use an open account (cleared accounts list).",
        ),
        "assigned-account": (
            "an account id that is unknown, closed or a heading, and comes to a call through a name or a table",
            "The host would refuse it, in the run that first comes there; closing an account shows what uses it.",
            "Use an open account (cleared accounts list).",
        ),
        "unknown-status": (
            "a status that does not exist",
            "The host would refuse it; a query for it would find nothing.",
            f"Use one of {', '.join(STATUSES)}.",
        ),
        "human-status": (
            "a script that sets a status which only a person's decision sets",
            "What a person has confirmed is told apart from what a script has guessed.",
            "Use auto-confirmed or pending-review.",
        ),
        "unknown-grant": (
            "a name in the header's `grants:` that no primitive, or no kind of job, has",
            "A misspelt grant leaves the agent without the primitive; one of a later version comes into force with it.",
            "cleared primitives shows each primitive's grant.",
        ),
        "grants": (
            "a primitive, or a kind of job, that the header's `grants:` does not allow",
            "The line is a promise to whoever reads the header; the host keeps it.",
            "Add it to grants:, or do without it.",
        ),
    },
)
_CALLBACKS: Final = {"map", "filter", "sorted", "min", "max", "sort", "reduce"}
_ACCOUNT_ARGUMENTS: Final = {"debit_account", "credit_account", "account_id", "account"}
# A date by which every closing has taken effect.
_FAR: Final = date(9999, 12, 31)
_AGENTS_JOB: Final = re.compile(rf"{JOB_TYPE_GRANT}agent:[\w.-]+")
_POSTING: Final = {"journal_add_double", "journal_add", "journal_add_many"}


def lint_semantics(
    source: str, file: str, primitives: Mapping[str, Primitive], chart: Chart, grants: tuple[str, ...] | None,
    kinds: Collection[str] | None = None,
) -> list[Finding]:  # fmt: skip
    """Every trap in the script, in the order of its text. Never raises for any text.

    ``kinds``: of jobs, which an agent may enqueue where its header names them; None for a shared script, which may
    what its caller may.
    """
    source = normalise_text(source)
    tree = parse_script(source, file)
    if isinstance(tree, Finding):
        return []  # the lint says so
    walker = _Walker(file, primitives, chart, grants, source.split("\n"), Meanings(tree))
    if kinds is not None:
        walker.enqueues = granted_job_types(grants or ())
    found: dict[tuple[int, int, str], Finding] = {}
    for finding in (*_header(source, file, primitives, chart, kinds or ()), *walker.walk(tree)):
        found.setdefault((finding.place.line or 0, finding.place.column or 0, finding.rule), finding)
    return [found[key] for key in sorted(found)]


def _header(
    source: str, file: str, primitives: Mapping[str, Primitive], chart: Chart, kinds: Collection[str]
) -> Iterator[Finding]:
    """What the header names, against what there is."""
    header, _ = parse_header(source, file, kind="agent")
    if header is None:
        return
    known = {name for p in primitives.values() for name in (p.name, p.grant)} | {
        f"{JOB_TYPE_GRANT}{kind}" for kind in kinds
    }
    for grant in header.grants or ():
        if grant not in known and not _AGENTS_JOB.fullmatch(grant):
            near = get_close_matches(grant, sorted(known), 1, 0.6)
            remedy = f"Did you mean {near[0]}?" if near else RULES["unknown-grant"].remedy
            place = Place(file, header.line_of("grants"), 1, "grants")
            name = grant.removeprefix(JOB_TYPE_GRANT)
            what = f"there is no kind of job {name!r}" if grant != name else f"no primitive has the grant {grant!r}"
            yield Finding("unknown-grant", what, place, remedy)
    for account_id in header.accounts or ():
        if chart.find_account(account_id) is None:
            _, remedy = chart.why_not_postable(account_id, _FAR) or ("", "")
            place = Place(file, header.line_of("accounts"), 1, "accounts")
            yield Finding("unknown-account", f"account {account_id} does not exist", place, remedy)


class _Walker:
    def __init__(
        self, file: str, primitives: Mapping[str, Primitive], chart: Chart, grants: tuple[str, ...] | None,
        lines: list[str], meanings: Meanings,
    ) -> None:  # fmt: skip
        self.file, self.primitives, self.chart, self.grants, self.lines = file, primitives, chart, grants, lines
        self.meanings = meanings
        self.enqueues: frozenset[str] | None = None
        """The grants of kinds of jobs; None where the caller's count."""
        self.verdicts: dict[int, tuple[str, str] | None] = {}

    def walk(self, tree: ast.Module) -> Iterator[Finding]:
        self.waits = self._waits(tree)
        for node, message, _ in find_dead_code(tree):
            yield self._finding("unreachable", node, message)
        for node in walk_in_order(tree):
            yield from self._shadowed(node)
            if isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.Dict):
                yield from self._dict(node)
            elif isinstance(node, ast.Name) and node.id in self.primitives and isinstance(node.ctx, ast.Load):
                yield from self._granted(node)

    def _granted(self, node: ast.Name) -> Iterator[Finding]:
        grant = self.primitives[node.id].grant
        if node.id == ENQUEUE and self.enqueues is not None and not self.enqueues:
            message = "the header grants no kind of job to enqueue"
            yield self._finding("grants", node, message, f"Add {JOB_TYPE_GRANT}KIND to grants:, or do without it.")
        elif self.grants is not None and not is_granted(node.id, grant, self.grants):
            message = f"{node.id} is not granted by the header"
            yield self._finding("grants", node, message, f"Add {grant} to grants:, or do without it.")

    def _finding(self, rule: str, node: ast.AST, message: str, remedy: str = "") -> Finding:
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        column = len(text.encode("utf-8")[:column].decode("utf-8", "ignore")) + 1
        return Finding(rule, message, Place(self.file, line, column), remedy or RULES[rule].remedy)

    def _shadowed(self, node: ast.AST) -> Iterator[Finding]:
        name: str | None = None
        match node:
            case ast.Name(id=id_, ctx=ast.Store()):
                name = id_
            case ast.FunctionDef(name=name) | ast.arg(arg=name):
                pass
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                pass
        if name in self.primitives:
            yield self._finding(
                "shadowed-primitive", node, f"{name} is a primitive; assigning it hides the host's function"
            )

    def _call(self, node: ast.Call) -> Iterator[Finding]:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name == "round" and isinstance(node.func, ast.Name) and len(node.args) + len(node.keywords) > 1:
            message = "round() on a float differs from Python for many half-cent amounts"
            yield self._finding("round-money", node, message)
        if name in _CALLBACKS or (name == "iter" and len(node.args) > 1):
            yield from self._callback(node, name)
        if isinstance(node.func, ast.Name):
            for primitive in self._called(node.func):
                for argument, value in self._arguments(node, primitive):
                    yield from self._argument(primitive, argument, value)

    def _called(self, func: ast.Name) -> Iterator[str]:
        """The primitives a called name stands for: its own, or what was assigned to it."""
        if func.id in self.primitives:
            yield func.id
            return
        for leaf in self.meanings.of(func):
            if isinstance(leaf, ast.Name) and leaf.id in self.primitives:
                yield leaf.id

    def _arguments(self, node: ast.Call, name: str) -> Iterator[tuple[str, ast.expr]]:
        for param, value in zip(self.primitives[name].params, node.args, strict=False):
            if isinstance(value, ast.Starred):
                break  # nobody knows how many these are
            yield param.name, value
        for keyword in node.keywords:
            if keyword.arg:
                yield keyword.arg, keyword.value
            elif isinstance(keyword.value, ast.Dict):
                for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield key.value, value

    def _argument(self, primitive: str, argument: str, value: ast.expr) -> Iterator[Finding]:
        posting = primitive in _POSTING
        if argument in _ACCOUNT_ARGUMENTS and primitive != "accounts_exists":
            yield from self._account(value, posting=posting)
        elif argument == "status":
            yield from self._status(value, writes=posting or primitive == "journal_update_status")
        elif primitive == ENQUEUE and argument == "kind" and self.enqueues:
            yield from self._kind(value, self.enqueues)

    def _kind(self, value: ast.expr, enqueues: frozenset[str]) -> Iterator[Finding]:
        """What is written as the kind of a job. For one agent's job the host may have to look: the target says."""
        for leaf in self.meanings.of(value):
            if not (isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)):
                continue
            grant = f"{JOB_TYPE_GRANT}{leaf.value}"
            whole = f"{JOB_TYPE_GRANT}agent_run"
            named = any(_AGENTS_JOB.fullmatch(each) for each in enqueues)
            if grant in enqueues or (_AGENTS_JOB.fullmatch(grant) and whole in enqueues) or (grant == whole and named):
                continue
            message = f"to enqueue {leaf.value[:60]} is not granted by the header"
            yield self._finding("grants", leaf, message, f"Add {grant[:80]} to grants:, or do without it.")

    def _dict(self, node: ast.Dict) -> Iterator[Finding]:
        """The dicts of ``journal_add(lines=…)`` and ``journal_add_many``, wherever they are made: known by their
        keys, since a dict of a result may well have an ``account_id``."""
        items = {
            key.value: value
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }
        for key in ("debit_account", "credit_account"):
            if key in items:
                yield from self._account(items[key], posting=True)
        if "account_id" in items and items.keys() & {"debit", "credit"}:
            yield from self._account(items["account_id"], posting=True)
        if {"status", "date"} <= items.keys() and items.keys() & {"debit_account", "lines"}:
            yield from self._status(items["status"], writes=True)

    def _account(self, value: ast.expr, *, posting: bool) -> Iterator[Finding]:
        for leaf in self.meanings.of(value):
            if not (isinstance(leaf, ast.Constant) and type(leaf.value) is int):
                continue
            why = self._why_not(leaf.value)
            unknown = self.chart.find_account(leaf.value) is None
            if why is None or not (unknown or posting):
                continue
            direct = _is_part(leaf, value)
            if leaf.value > 0 or direct:  # otherwise the usual word for "none yet"
                rule = "unknown-account" if unknown else "closed-account"
                yield self._finding(rule if direct else "assigned-account", leaf, *why)

    def _why_not(self, account_id: int) -> tuple[str, str] | None:
        """Asked once for each number: a table of thousands may come to thousands of calls."""
        if account_id not in self.verdicts:
            self.verdicts[account_id] = self.chart.why_not_postable(account_id, _FAR)
        return self.verdicts[account_id]

    def _status(self, value: ast.expr, *, writes: bool) -> Iterator[Finding]:
        for leaf in self.meanings.of(value):
            if not (isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)):
                continue
            status = leaf.value
            if status not in STATUSES:
                if _is_part(leaf, value):  # of others the type check knows which of them come here
                    yield self._finding("unknown-status", leaf, f"{status!r} is not a status")
            elif writes and (status in HUMAN_STATUSES or status == "voided"):
                yield self._finding("human-status", leaf, f"a script cannot set {status}")

    def _callback(self, node: ast.Call, name: str) -> Iterator[Finding]:
        candidates = [k.value for k in node.keywords if k.arg == "key"]
        if name in ("map", "filter", "reduce", "iter"):
            candidates += node.args[:1]
        for candidate in candidates:
            if self._waits_inside(candidate):
                yield self._finding(
                    "primitive-in-callback", candidate, f"a primitive is called from inside {name}(…)"
                )  # fmt: skip

    def _waits_inside(self, function: ast.expr) -> bool:
        """Whether calling this function would call a primitive."""
        match function:
            case ast.Name(id=name):
                return name in self.waits
            case ast.Lambda(body=body):
                return self._names_waiting(body)
            case ast.IfExp(body=body, orelse=orelse):
                return self._waits_inside(body) or self._waits_inside(orelse)
            case ast.Call(func=ast.Name(id=name)):  # a helper that makes the function
                made = self.meanings.functions.get(name, ())
                inner = (n for f in made for n in ast.walk(f) if n is not f)
                return any(
                    self._names_waiting(n) for n in inner if isinstance(n, ast.FunctionDef | ast.Lambda)
                )  # fmt: skip
        return False

    def _names_waiting(self, node: ast.AST) -> bool:
        return any(isinstance(n, ast.Name) and n.id in self.waits for n in ast.walk(node))

    def _waits(self, tree: ast.Module) -> set[str]:
        """The primitives, and the names of all functions that call one, directly or through another."""
        named: dict[str, set[str]] = {}
        for name, functions in self.meanings.functions.items():
            named[name] = {n.id for f in functions for n in ast.walk(f) if isinstance(n, ast.Name)}
        for node in walk_in_order(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Lambda):
                used = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        named.setdefault(target.id, set()).update(used)
        waits = set(self.primitives)
        grown = True
        while grown:
            more = {name for name, used in named.items() if name not in waits and used & waits}
            grown = bool(more)
            waits |= more
        return waits


def _is_part(leaf: ast.AST, value: ast.expr) -> bool:
    """Whether a literal stands in the argument itself."""
    return any(node is leaf for node in ast.walk(value))


# What a step into a value takes: an element by its index or key, any of them, or what a loop over it gives.
_ANY: Final = object()
_LOOP: Final = object()
_Path = tuple[object, ...]
_STEPS: Final = 2_000
_WHOLE: Final = 200_000
_DEPTH: Final = 24


class Meanings:
    """Which literals and names an expression may stand for, as far as plain assignments, loops over literal tables
    and arguments of the script's own functions say. Not in order: all that a name is ever given counts."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        self._scope: dict[int, tuple[ast.AST, ...]] = {}
        """Name → the function it stands in, the one around it …"""
        self._given: dict[tuple[int, str], list[tuple[ast.expr, _Path]]] = {}
        self._whole = _WHOLE  # whatever the script, this ends soon
        calls: list[ast.Call] = []
        todo: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, (tree,))]
        while todo:
            node, scope = todo.pop()
            if isinstance(node, ast.Name):
                self._scope[id(node)] = scope
            elif isinstance(node, ast.Call):
                calls.append(node)
            elif isinstance(node, ast.FunctionDef):
                self.functions.setdefault(node.name, []).append(node)
            self._bindings(node, scope)
            inner = (node, *scope) if isinstance(node, ast.FunctionDef | ast.Lambda) else scope
            todo.extend((child, inner) for child in ast.iter_child_nodes(node))
        for call in calls:
            self._arguments(call)

    def of(self, value: ast.expr) -> list[ast.expr]:
        """The literals and unassigned names that ``value`` may be, in the order of the text."""
        self._left = min(_STEPS, self._whole)
        before = self._left
        found = {id(leaf): leaf for leaf in self._leaves(value, (), 0)}
        self._whole -= before - max(self._left, 0)
        return sorted(found.values(), key=lambda leaf: (leaf.lineno, leaf.col_offset))

    def _bindings(self, node: ast.AST, scope: tuple[ast.AST, ...]) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value, (), scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._bind(target, value, (), scope)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                self._bind(target, value, (_LOOP,), scope)
            case ast.FunctionDef(args=args):
                names = [*args.posonlyargs, *args.args]
                defaults = list(zip(reversed(names), reversed(args.defaults), strict=False))
                defaults += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
                for arg, default in defaults:
                    self._give(node, arg.arg, default, ())

    def _bind(self, target: ast.expr, value: ast.expr, path: _Path, scope: tuple[ast.AST, ...]) -> None:
        if isinstance(target, ast.Name):
            self._give(scope[0], target.id, value, path)
        elif isinstance(target, ast.Tuple | ast.List):
            starred = any(isinstance(part, ast.Starred) for part in target.elts)
            for i, part in enumerate(target.elts):
                self._bind(part, value, (*path, _ANY if starred else i), scope)

    def _give(self, scope: ast.AST, name: str, value: ast.expr, path: _Path) -> None:
        self._given.setdefault((id(scope), name), []).append((value, path))

    def _arguments(self, call: ast.Call) -> None:
        if not isinstance(call.func, ast.Name):
            return
        for function in self.functions.get(call.func.id, ()):
            for arg, value in zip([*function.args.posonlyargs, *function.args.args], call.args, strict=False):
                if isinstance(value, ast.Starred):
                    break
                self._give(function, arg.arg, value, ())
            for keyword in call.keywords:
                if keyword.arg:
                    self._give(function, keyword.arg, keyword.value, ())

    def _leaves(self, value: ast.expr, path: _Path, depth: int) -> Iterator[ast.expr]:
        self._left -= 1
        if self._left < 0 or depth > _DEPTH:
            return
        deeper = depth + 1
        match value:
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._leaves(body, path, deeper)
                yield from self._leaves(orelse, path, deeper)
            case ast.BoolOp(values=values):
                for part in values:
                    yield from self._leaves(part, path, deeper)
            case ast.NamedExpr(value=inner):
                yield from self._leaves(inner, path, deeper)
            case ast.Name(id=name):
                scopes = self._scope.get(id(value), ())
                given = next((g for s in scopes if (g := self._given.get((id(s), name)))), None)
                if given is None and not path:
                    yield value
                for source, steps in given or ():
                    yield from self._leaves(source, (*steps, *path), deeper)
            case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
                yield from self._leaves(inner, (key, *path), deeper)
            case ast.Subscript(value=inner, slice=ast.expr()) if not isinstance(value.slice, ast.Slice):
                yield from self._leaves(inner, (_ANY, *path), deeper)
            case ast.Call(func=ast.Attribute(value=inner, attr="get"), args=[key, *default]):
                step = key.value if isinstance(key, ast.Constant) else _ANY
                yield from self._leaves(inner, (step, *path), deeper)
                for part in default[:1]:
                    yield from self._leaves(part, path, deeper)
            case ast.Call(func=ast.Attribute(value=inner, attr="items"), args=[]):
                if len(path) > 1 and path[1] in (1, _ANY):
                    yield from self._leaves(inner, (_ANY, *path[2:]), deeper)
            case ast.Call(func=ast.Attribute(value=inner, attr="values"), args=[]):
                if path:
                    yield from self._leaves(inner, (_ANY, *path[1:]), deeper)
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() if path:
                for part in _elements(value, path[0]):
                    yield from self._leaves(part, path[1:], deeper)
            case ast.Constant() if not path:
                yield value


def _elements(container: ast.List | ast.Tuple | ast.Set | ast.Dict, step: object) -> list[ast.expr]:
    if isinstance(container, ast.Dict):
        if step is _LOOP:
            return [key for key in container.keys if key is not None]
        return [
            value
            for key, value in zip(container.keys, container.values, strict=True)
            if step is _ANY or not isinstance(key, ast.Constant) or key.value == step
        ]
    if type(step) is int and not any(isinstance(part, ast.Starred) for part in container.elts):
        return container.elts[step:][:1] if -len(container.elts) <= step < len(container.elts) else []
    return container.elts
