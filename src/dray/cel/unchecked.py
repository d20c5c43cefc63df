"""Names without types: what is left of checking when an expression is to run as it is, all of it dynamic.

Nothing in dray runs unchecked expressions; the language's conformance suite does.
"""

from __future__ import annotations

from dray.cel.ast import (
    Call,
    Checked,
    Comprehension,
    Expr,
    Ident,
    Parsed,
    Reference,
    Select,
    children_of,
    replace_children,
)
from dray.cel.environment import Environment
from dray.cel.scopes import Scopes
from dray.cel.types import DYN


def resolve_names(parsed: Parsed, environment: Environment) -> Checked:
    """Resolve the names that the environment knows. The others stay, to fail when they are evaluated."""
    references: dict[int, Reference] = {}
    resolver = _Resolver(Scopes(environment), references)
    expr = resolver.resolve(parsed.expr)
    return Checked(parsed, expr, {expr.id: DYN}, references)


class _Resolver:
    def __init__(self, scopes: Scopes, references: dict[int, Reference]) -> None:
        self._scopes = scopes
        self._references = references

    def resolve(self, node: Expr) -> Expr:
        match node:
            case Ident() | Select(test_only=False):
                found = self._scopes.find_qualified(node)
                if found is not None:
                    self._references[node.id] = Reference(found.name, is_type=found.is_type)
                    hidden = isinstance(node, Ident) and self._scopes.is_local(found.name)
                    return node if hidden else Ident(node.id, found.name)
            case Call():
                function, target = self._scopes.find_function(node.function, node.target)
                if function is not None:
                    node = Call(node.id, function.name, node.args, target)
            case Comprehension():
                return self._resolve_comprehension(node)
            case _:
                pass
        return replace_children(node, [self.resolve(child) for child in children_of(node)])

    def _resolve_comprehension(self, node: Comprehension) -> Expr:
        outside = [self.resolve(node.iter_range), self.resolve(node.accu_init)]
        names = [name for name in (node.accu_var, node.iter_var, node.iter_var2) if name]
        for name in names:
            self._scopes.enter(name, DYN)
        inside = [self.resolve(node.loop_condition), self.resolve(node.loop_step)]
        for name in names[1:]:
            self._scopes.leave(name)
        inside.append(self.resolve(node.result))
        self._scopes.leave(node.accu_var)
        return replace_children(node, outside + inside)
