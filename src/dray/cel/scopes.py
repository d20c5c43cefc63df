"""Which variable, type or function does a name stand for? Local variables first, then the container, inside out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from dray.cel.ast import Expr, Ident, Select
from dray.cel.declarations import Function
from dray.cel.environment import Environment
from dray.cel.types import Type, type_of


class Found(NamedTuple):
    """A variable, or a type that stands as a value; `name` is the full one."""

    name: str
    type: Type
    is_type: bool = False


class Scopes:
    """The names of an environment, and the local variables at one point of the expression."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._locals: dict[str, list[Type]] = {}

    def enter(self, name: str, type_: Type) -> None:
        self._locals.setdefault(name, []).append(type_)

    def leave(self, name: str) -> None:
        self._locals[name].pop()

    def is_local(self, name: str) -> bool:
        return bool(self._locals.get(name))

    def find(self, name: str) -> Found | None:
        if scopes := self._locals.get(name):
            return Found(name, scopes[-1])
        environment = self._environment
        for candidate in self._candidates(name):
            if (variable := environment.variables.get(candidate)) is not None:
                return Found(candidate, variable)
            if (type_ := environment.types.get(candidate)) is not None:
                return Found(candidate, type_of(type_), is_type=True)
        return None

    def find_qualified(self, node: Expr) -> Found | None:
        """`a.b.c` as one name, unless `a` is a local variable: that hides every name that starts with it."""
        name = _dotted(node)
        if name is None or self.is_local(name.partition(".")[0]):
            return None
        return self.find(name)

    def find_function(self, name: str, target: Expr | None) -> tuple[Function | None, Expr | None]:
        """The function of a call, and the target that is left: `optional.of(x)` has none, it is all name."""
        if target is not None and (prefix := _dotted(target)) is not None:
            function = self._look_up_function(f"{prefix}.{name}")
            if function is not None:
                return function, None
        return self._look_up_function(name), target

    def suggest(self, name: str) -> str:
        """The end of an error message: a name that is known and looks like the one that isn't."""
        return suggest(name, (*self._environment.variables, *self._locals, *self._environment.functions))

    def _look_up_function(self, name: str) -> Function | None:
        for candidate in self._candidates(name):
            if (function := self._environment.functions.get(candidate)) is not None:
                return function
        return None

    def _candidates(self, name: str) -> Sequence[str]:
        if name.startswith("."):
            return (name[1:],)
        container = self._environment.container
        if not container:
            return (name,)
        parts = container.split(".")
        return [".".join((*parts[:count], name)) for count in range(len(parts), -1, -1)]


def suggest(name: str, known: Iterable[str]) -> str:
    found = get_close_matches(name, [candidate for candidate in known if candidate.isidentifier()], n=1)
    return f"; did you mean '{found[0]}'?" if found else ""


def _dotted(node: Expr) -> str | None:
    fields: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        fields.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    if not fields:
        return node.name
    fields.append(node.name)
    fields.reverse()
    return ".".join(fields)
