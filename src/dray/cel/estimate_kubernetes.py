"""Kubernetes' rules for what calls cost. They go by the name of the function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dray.cel.ast import Literal
from dray.cel.environment import Environment
from dray.cel.estimate_rules import REGEX_LENGTH, TRAVERSAL, Operand, Rule, RuleFunction
from dray.cel.ranges import MOST, ONE, UNKNOWN, Range, plus, scaled, times, wrap
from dray.cel.sizes import size_at
from dray.cel.types import BYTES, STRING

_ADDRESS: Final = (4, 16)
"""Bytes of an IP address, version 4 or 6."""
_FORMAT_NAME: Final = 64
_FORMAT_REGEX: Final = 128


def _fixed(cost: int) -> RuleFunction:
    def rule(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
        return Rule((cost, cost))

    return rule


def _traverse_first(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    return Rule(scaled(args[0].size_or_unknown, TRAVERSAL)) if args else None


def _traverse_list(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    """`max`, `indexOf` and the like: each item once, and each character of items that are strings."""
    if target is None or target.type is None:
        return None
    size = target.size_or_unknown
    if not target.type.parameters:
        return Rule(scaled(size, TRAVERSAL))
    each = ONE
    if target.type.parameters[0] in (STRING, BYTES):
        each = plus(each, scaled(_item_size(target, environment), TRAVERSAL))
    return Rule(times(size, each))


def _includes(overload: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    """A value that isn't a list counts as if each unit of its size were an item."""
    if target is not None and target.type is not None and not target.type.parameters and target.type != STRING:
        return Rule(target.size_or_unknown)
    return _traverse_list(overload, target, args, environment)


def _item_size(target: Operand, environment: Environment) -> Range:
    size = size_at(target.path.append_copy("@items"), environment) if target.path.length else None
    if size is None and environment.name == "devices" and target.entries is not None:
        return target.entries.values  # rule E16
    return UNKNOWN if size is None else size


def _traverse_target(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    if target is None:
        return None
    size = target.size_or_unknown
    return Rule(scaled(size, TRAVERSAL), size)


def _url(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    if len(args) != 1:
        return None
    size = args[0].size_or_unknown
    return Rule(scaled(size, TRAVERSAL), size)


def _replace(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    if target is None:
        return None
    size, old, new = target.size_or_unknown, args[0].size_or_unknown, args[1].size_or_unknown
    least = _replaced(size[0], old[1], new[0], grows=old[1] <= new[0])
    most = _replaced(size[1], old[0], new[1], grows=new[1] <= old[0])
    return Rule(scaled(size, 2 * TRAVERSAL), (least, most))


def _replaced(size: int, old: int, new: int, *, grows: bool) -> int:
    """Rule E9 for one bound. `grows` is cel-go's test for when the length of the text itself is the bound."""
    if old == 0:
        return min(min(min(size + 1, MOST) * new, MOST) + size, MOST)
    if grows:
        return size
    return min(_go_uint(math.ceil(float(size) / float(old))) * new, MOST)


def _go_uint(number: int) -> int:
    """What Go makes of a double of 2^64 when it converts it to 64 bits."""
    return number if number <= MOST else 2**63


def _split(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    if target is None:
        return None
    size = target.size_or_unknown
    most = size[1]
    if len(args) > 1 and isinstance(limit := args[1].node, Literal) and type(limit.value) is int:
        most = wrap(limit.value)
    return Rule(scaled(size, 2 * TRAVERSAL), (0, most))


def _join(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    if target is None or target.type is None:
        return None
    count = target.size_or_unknown
    size = times(count, _item_size(target, environment)) if target.type.parameters else (0, 0)
    if args:
        separators = (max(count[0] - 1, 0), max(count[1] - 1, 0))
        size = plus(size, times(args[0].size_or_unknown, separators))
    return Rule(scaled(size, TRAVERSAL), size)


def _find(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    if target is None:
        return None
    size = target.size_or_unknown
    text = scaled(plus(size, ONE), TRAVERSAL)
    return Rule(times(text, scaled(args[0].size_or_unknown, REGEX_LENGTH)), (0, size[1]))


def _ip(overload: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    return Rule(ONE) if overload == "cidr_ip" else Rule(scaled(args[0].size_or_unknown, TRAVERSAL))


def _is_canonical(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    return Rule(scaled(args[0].size_or_unknown, 2 * TRAVERSAL))


def _contains_ip(overload: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    cost = scaled(plus(_ADDRESS, _ADDRESS), TRAVERSAL)
    if overload.endswith("_string"):
        cost = plus(cost, scaled(args[0].size_or_unknown, TRAVERSAL))
    return Rule(cost)


def _contains_cidr(overload: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    compared = _contains_ip(overload, target, args, environment).cost
    return Rule(plus(plus(compared, scaled(_ADDRESS, TRAVERSAL)), ONE))


def _validate(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    if target is None:
        return None
    return Rule(scaled(scaled(args[0].size_or_unknown, TRAVERSAL), _FORMAT_REGEX * REGEX_LENGTH))


def _selector(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule:
    size = args[0].size_or_unknown
    requirements = times(scaled(size, 0.5), (50, 50))
    return Rule(plus(plus((10, 10), scaled(size, TRAVERSAL)), requirements))


def _equals(_: str, target: Operand | None, args: Sequence[Operand], environment: Environment) -> Rule | None:
    """Rule E8. For all other types, cel-go's own rule holds."""
    left, right = args
    if left.type is None or right.type is None or left.type.name != right.type.name:
        return None
    match left.type.name:
        case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
            return Rule(ONE)
        case name if name.startswith("kubernetes.authorization."):
            return Rule(ONE)
        case "kubernetes.NamedFormat":
            return Rule(scaled((1, _FORMAT_NAME), TRAVERSAL))
        case "kubernetes.URL":
            # Upstream looks at the right side twice.
            return Rule(scaled((1, right.size[1] if right.size else 1), TRAVERSAL))
        case _:
            return None


KUBERNETES_RULES: Final[dict[str, RuleFunction]] = {
    "check": _fixed(350_000),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traverse_list),
    "includes": _includes,
    "url": _url,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _traverse_target),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _traverse_first),
    "ip": _ip,
    "ip.isCanonical": _is_canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equals,
}
