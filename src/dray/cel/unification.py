"""When one type may stand for another, and what the type parameters met on the way stand for.

This is cel-go's algorithm, order of questions included: an argument that fits several overloads binds the type
variables in it at the first of them, and that shows in result types and in errors.

Types nest, so these functions recurse, but only through Python: `all(map(...))` would recurse through C, whose limit
nobody can raise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dray.cel.declarations import Overload
from dray.cel.types import DURATION, DYN, NULL, TIMESTAMP, Type

_NULLABLE: Final = frozenset(("opaque", "object", "any", "wrapper"))


class Substitution:
    """What type variables stand for. Grows while an expression is checked; failed attempts leave no trace."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._trail: list[tuple[str, Type | None]] = []
        self._variables = 0

    def new_variable(self) -> Type:
        self._variables += 1
        return Type("parameter", f"_var{self._variables}")

    def fits(self, arguments: Sequence[Type], overload: Overload) -> Type | None:
        """The result type if the overload takes these arguments, else None."""
        if not all(map(_may_fit, arguments, overload.parameters)):
            return None
        parameters, result = self._instantiate(overload)
        return self.resolve(result) if self._all_assignable(arguments, parameters) else None

    def assignable(self, source: Type, target: Type) -> bool:
        """Whether a value of type `source` may stand where `target` is expected."""
        mark = len(self._trail)
        if self._assign(source, target):
            return True
        self._undo(mark)
        return False

    def resolve(self, type_: Type) -> Type:
        """The type with all bound variables replaced."""
        return self._substitute(type_, unbound=None)

    def settle(self, type_: Type) -> Type:
        """The type with all variables replaced, unbound ones by dyn."""
        return self._substitute(type_, unbound=DYN)

    def settle_all(self, types: Mapping[int, Type]) -> dict[int, Type]:
        """Settled types by the same keys. What types share, they share afterwards."""
        settled: dict[int, Type] = {}
        return {key: self._settle_shared(type_, settled) if type_.is_open else type_ for key, type_ in types.items()}

    def _settle_shared(self, type_: Type, settled: dict[int, Type]) -> Type:
        if not type_.is_open:
            return type_
        found = settled.get(id(type_))
        if found is None:
            if type_.kind == "parameter":
                bound = self._bound.get(type_.name)
                found = DYN if bound is None else self._settle_shared(bound, settled)
            else:
                parameters = [self._settle_shared(parameter, settled) for parameter in type_.parameters]
                found = Type(type_.kind, type_.name, tuple(parameters))
            settled[id(type_)] = found
        return found

    def _instantiate(self, overload: Overload) -> tuple[Sequence[Type], Type]:
        """Parameters and result of an overload, with new variables in place of its type parameters."""
        if not overload.type_parameters:
            return overload.parameters, overload.result
        names = {parameter.name: self.new_variable() for parameter in overload.type_parameters}
        return [_rename(parameter, names) for parameter in overload.parameters], _rename(overload.result, names)

    def _all_assignable(self, sources: Sequence[Type], targets: Sequence[Type]) -> bool:
        mark = len(self._trail)
        for source, target in zip(sources, targets, strict=True):
            if not self._assign(source, target):
                self._undo(mark)
                return False
        return True

    def _substitute(self, type_: Type, unbound: Type | None) -> Type:
        if not type_.is_open:
            return type_
        if type_.kind == "parameter":
            bound = self._bound.get(type_.name)
            if bound is not None:
                return self._substitute(bound, unbound)
            return type_ if unbound is None else unbound
        parameters = tuple([self._substitute(parameter, unbound) for parameter in type_.parameters])
        return Type(type_.kind, type_.name, parameters)

    def _bind(self, variable: Type, type_: Type) -> None:
        self._trail.append((variable.name, self._bound.get(variable.name)))
        self._bound[variable.name] = type_

    def _undo(self, mark: int) -> None:
        while len(self._trail) > mark:
            name, old = self._trail.pop()
            if old is None:
                del self._bound[name]
            else:
                self._bound[name] = old

    def _assign(self, source: Type, target: Type) -> bool:
        # Lists in lists are the one kind of type that gets deep: they are followed without recursion.
        while source.kind == target.kind == "list":
            source, target = source.parameters[0], target.parameters[0]
        if source is target and not source.parameters:
            return True
        if target.kind == "parameter":
            valid, known = self._stands_for(source, target)
            if valid or known:
                return valid
        if source.kind == "parameter":
            return self._stands_for(target, source)[0]
        if source.kind in _WILDCARDS or target.kind in _WILDCARDS:
            return True
        if source is NULL or target is NULL:
            other = target if source is NULL else source
            return other is NULL or other.kind in _NULLABLE or other is DURATION or other is TIMESTAMP
        if source.kind == "wrapper" or target.kind == "wrapper":
            return unwrap(source) == unwrap(target)
        if source.kind != target.kind:
            return False
        if source.kind == "type":
            return True
        if source.name != target.name or len(source.parameters) != len(target.parameters):
            return False
        for inner_source, inner_target in zip(source.parameters, target.parameters, strict=True):
            if not self._assign(inner_source, inner_target):
                return False
        return True

    def _stands_for(self, type_: Type, variable: Type) -> tuple[bool, bool]:
        """Whether `variable` may stand for `type_`, and whether it was known before what it stands for."""
        if type_.kind == "parameter" and type_.name == variable.name:
            return True, True
        bound = self._bound.get(variable.name)
        if bound is not None:
            if type_ is bound or same(type_, bound):
                return True, True
            if not self._assign(type_, bound):
                return False, True
            general = most_general(type_, bound)
            if self._is_free_of(variable, general):
                self._bind(variable, general)
            return True, True
        if self._is_free_of(variable, type_):
            self._bind(variable, type_)
            return True, False
        return False, False

    def _is_free_of(self, variable: Type, type_: Type) -> bool:
        """Whether the variable doesn't occur in the type, not even in what other variables stand for."""
        if not type_.is_open:
            return True
        if type_.kind == "parameter":
            if type_.name == variable.name:
                return False
            bound = self._bound.get(type_.name)
            return bound is None or self._is_free_of(variable, bound)
        if type_.kind == "type":
            return True
        for parameter in type_.parameters:  # noqa: SIM110 - see the top
            if not self._is_free_of(variable, parameter):
                return False
        return True


_WILDCARDS: Final = frozenset(("dyn", "any", "error"))
_FLEXIBLE: Final = _WILDCARDS | {"parameter", "wrapper"}


def _may_fit(argument: Type, parameter: Type) -> bool:
    """False if a look at the outermost types is enough to see that the argument doesn't fit."""
    return (
        (argument.kind == parameter.kind and argument.name == parameter.name)
        or parameter.kind in _FLEXIBLE
        or argument.kind in _FLEXIBLE
        or argument is NULL
        or parameter is NULL
    )


def is_dynamic(type_: Type) -> bool:
    return type_.kind in ("dyn", "any")


def unwrap(type_: Type) -> Type:
    """The primitive in a wrapper; any other type as it is."""
    return type_.parameters[0] if type_.kind == "wrapper" else type_


def same(left: Type, right: Type) -> bool:
    """Whether two types are equal to the last parameter."""
    if left is right:
        return True
    left, right = unwrap(left), unwrap(right)
    if left.kind != right.kind or left.name != right.name or len(left.parameters) != len(right.parameters):
        return False
    for inner_left, inner_right in zip(left.parameters, right.parameters, strict=True):
        if not same(inner_left, inner_right):
            return False
    return True


def most_general(left: Type, right: Type) -> Type:
    return left if _is_equal_or_less_specific(left, right) else right


def _is_equal_or_less_specific(left: Type, right: Type) -> bool:
    if is_dynamic(left) or left.kind == "parameter":
        return True
    if is_dynamic(right) or right.kind == "parameter" or left.kind != right.kind:
        return False
    if left.kind == "type":
        return True
    if left.kind not in ("list", "map", "opaque"):
        return same(left, right)
    if left.name != right.name or len(left.parameters) != len(right.parameters):
        return False
    for inner_left, inner_right in zip(left.parameters, right.parameters, strict=True):
        if not _is_equal_or_less_specific(inner_left, inner_right):
            return False
    return True


def _rename(type_: Type, names: dict[str, Type]) -> Type:
    if not type_.is_open:
        return type_
    if type_.kind == "parameter":
        return names[type_.name]
    return Type(type_.kind, type_.name, tuple([_rename(parameter, names) for parameter in type_.parameters]))
