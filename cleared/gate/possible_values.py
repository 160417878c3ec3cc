"""Which literals an expression of a script may stand for, as far as the script's own text shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

# A step into a value is an index or a key, any element, or what a loop over the value gives.
_ANY_ELEMENT: Final = object()
_LOOP_ELEMENT: Final = object()
_Path = tuple[object, ...]
_MOST_STEPS: Final = 2_000
_MOST_STEPS_IN_ALL: Final = 200_000
_MOST_DEPTH: Final = 24


class PossibleValues:
    """Follows plain assignments, loops over literal tables and arguments of the script's own functions.

    The order of assignments is not looked at: every value that a name ever gets counts.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        self._scope: dict[int, tuple[ast.AST, ...]] = {}
        """``id`` of a name's node → the function it stands in, the one around that, …, the module."""
        self._values: dict[tuple[int, str], list[tuple[ast.expr, _Path]]] = {}
        """Scope and name → the expressions assigned to it, each with the steps into it."""
        self._budget = _MOST_STEPS_IN_ALL  # whatever the script, this ends soon
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
            self._record_bindings(node, scope)
            inner = (node, *scope) if isinstance(node, ast.FunctionDef | ast.Lambda) else scope
            todo.extend((child, inner) for child in ast.iter_child_nodes(node))
        for call in calls:
            self._record_arguments(call)

    def of_expression(self, value: ast.expr) -> list[ast.expr]:
        """The literals and unassigned names that ``value`` may be, in the order of the text."""
        self._steps_left = min(_MOST_STEPS, self._budget)
        before = self._steps_left
        leaves = {id(leaf): leaf for leaf in self._find_leaves(value, (), 0)}
        self._budget -= before - max(self._steps_left, 0)
        return sorted(leaves.values(), key=lambda leaf: (leaf.lineno, leaf.col_offset))

    def _record_bindings(self, node: ast.AST, scope: tuple[ast.AST, ...]) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind_target(target, value, (), scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._bind_target(target, value, (), scope)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                self._bind_target(target, value, (_LOOP_ELEMENT,), scope)
            case ast.FunctionDef(args=args):
                names = [*args.posonlyargs, *args.args]
                defaults = list(zip(reversed(names), reversed(args.defaults), strict=False))
                defaults += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
                for arg, default in defaults:
                    self._record_value(node, arg.arg, default, ())

    def _bind_target(self, target: ast.expr, value: ast.expr, path: _Path, scope: tuple[ast.AST, ...]) -> None:
        if isinstance(target, ast.Name):
            self._record_value(scope[0], target.id, value, path)
        elif isinstance(target, ast.Tuple | ast.List):
            starred = any(isinstance(part, ast.Starred) for part in target.elts)
            for i, part in enumerate(target.elts):
                self._bind_target(part, value, (*path, _ANY_ELEMENT if starred else i), scope)

    def _record_value(self, scope: ast.AST, name: str, value: ast.expr, path: _Path) -> None:
        self._values.setdefault((id(scope), name), []).append((value, path))

    def _record_arguments(self, call: ast.Call) -> None:
        if not isinstance(call.func, ast.Name):
            return
        for function in self.functions.get(call.func.id, ()):
            for arg, value in zip([*function.args.posonlyargs, *function.args.args], call.args, strict=False):
                if isinstance(value, ast.Starred):
                    break
                self._record_value(function, arg.arg, value, ())
            for keyword in call.keywords:
                if keyword.arg:
                    self._record_value(function, keyword.arg, keyword.value, ())

    def _find_leaves(self, value: ast.expr, path: _Path, depth: int) -> Iterator[ast.expr]:
        self._steps_left -= 1
        if self._steps_left < 0 or depth > _MOST_DEPTH:
            return
        deeper = depth + 1
        match value:
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._find_leaves(body, path, deeper)
                yield from self._find_leaves(orelse, path, deeper)
            case ast.BoolOp(values=values):
                for part in values:
                    yield from self._find_leaves(part, path, deeper)
            case ast.NamedExpr(value=inner):
                yield from self._find_leaves(inner, path, deeper)
            case ast.Name(id=name):
                scopes = self._scope.get(id(value), ())
                bound = next((v for s in scopes if (v := self._values.get((id(s), name)))), None)
                if bound is None and not path:
                    yield value
                for source, steps in bound or ():
                    yield from self._find_leaves(source, (*steps, *path), deeper)
            case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
                yield from self._find_leaves(inner, (key, *path), deeper)
            case ast.Subscript(value=inner, slice=ast.expr()) if not isinstance(value.slice, ast.Slice):
                yield from self._find_leaves(inner, (_ANY_ELEMENT, *path), deeper)
            case ast.Call(func=ast.Attribute(value=inner, attr="get"), args=[key, *default]):
                step = key.value if isinstance(key, ast.Constant) else _ANY_ELEMENT
                yield from self._find_leaves(inner, (step, *path), deeper)
                for part in default[:1]:
                    yield from self._find_leaves(part, path, deeper)
            case ast.Call(func=ast.Attribute(value=inner, attr="items"), args=[]):
                if len(path) > 1 and path[1] in (1, _ANY_ELEMENT):
                    yield from self._find_leaves(inner, (_ANY_ELEMENT, *path[2:]), deeper)
            case ast.Call(func=ast.Attribute(value=inner, attr="values"), args=[]):
                if path:
                    yield from self._find_leaves(inner, (_ANY_ELEMENT, *path[1:]), deeper)
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() if path:
                for part in _select_elements(value, path[0]):
                    yield from self._find_leaves(part, path[1:], deeper)
            case ast.Constant() if not path:
                yield value


def _select_elements(container: ast.List | ast.Tuple | ast.Set | ast.Dict, step: object) -> list[ast.expr]:
    if isinstance(container, ast.Dict):
        if step is _LOOP_ELEMENT:
            return [key for key in container.keys if key is not None]
        return [
            value
            for key, value in zip(container.keys, container.values, strict=True)
            if step is _ANY_ELEMENT or not isinstance(key, ast.Constant) or key.value == step
        ]
    if type(step) is int and not any(isinstance(part, ast.Starred) for part in container.elts):
        return container.elts[step:][:1] if -len(container.elts) <= step < len(container.elts) else []
    return container.elts
