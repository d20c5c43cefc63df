"""Plans turned into Python functions: the fast path.

The generated code does what a person would write by hand for the same logic: attribute and dict access, comparisons,
`and`, `or`, loops. It counts no cost and keeps no errors; wherever CEL's answer isn't Python's (a value of an
unexpected type, an overflow, a missing key) it raises, and the expression is evaluated again by the interpreter. So a
piece of code must never give another answer than CEL; it may always give up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, cast

from dray.cel.codegen_calls import in_nanos, write_call
from dray.cel.codegen_context import (
    ATTRIBUTE_DOMAIN,
    ATTRIBUTES,
    CAPACITY,
    CAPACITY_DOMAIN,
    DEVICE,
    DEVICES,
    PLAIN,
    QUANTITY,
    Code,
    Context,
    Unsupported,
)
from dray.cel.codegen_folds import write_fold
from dray.cel.plan import (
    Attribute,
    Call,
    Constant,
    Equality,
    Fold,
    Has,
    IsOneOf,
    Logic,
    NewList,
    NewMap,
    NewMessage,
    Node,
    NotStrictlyFalse,
    OptionalOr,
    Plan,
    Qualifier,
    Resolved,
    Ternary,
    Variable,
)
from dray.cel.values import Value

MAX_DEPTH: Final = 60
"""Python's own compiler gives up at about a hundred nested brackets."""
MAX_PIECES: Final = 2000
_FIELDS: Final = {
    "driver": Code("driver", "string"),
    "attributes": Code("attributes", "map", ATTRIBUTES, plain="attributes"),
    "capacity": Code("capacity", "map", CAPACITY, plain="capacity"),
    "allowMultipleAllocations": Code("allow_multiple_allocations", "bool"),
}
_INDEXED: Final = {
    DEVICES: Code("", "", DEVICE),
    ATTRIBUTES: Code("", "map", ATTRIBUTE_DOMAIN),
    CAPACITY: Code("", "map", CAPACITY_DOMAIN),
    CAPACITY_DOMAIN: Code("", "kubernetes.Quantity", QUANTITY),
}
"""What an element of something with a role is."""
_DOMAINS: Final = (ATTRIBUTE_DOMAIN, CAPACITY_DOMAIN)
_COMPARABLE: Final = ("string", "int", "bool", "bytes", "uint")
"""Types that Python compares as CEL does, if both sides are of it."""


class Generated(NamedTuple):
    source: str
    namespace: dict[str, object]


def generate(plan: Plan, *, argument: str, wrap: str, guard: str) -> Generated:
    """The source of `fast(argument)`. Raises Unsupported.

    `argument` is `device` or `devices`. `wrap` is the name of a function that a result goes through which isn't known
    to be a bool, or empty. `guard` is a condition under which the function leaves the decision to `exact(argument)`,
    which it does as well when anything is raised.
    """
    generator = Generator(plan, argument)
    result = generator.expression(plan.root)
    needs_wrap = wrap and not (wrap == "to_bool" and result.kind == "bool")
    lines = ["try:"]
    if guard:
        lines += [f"    if {guard}:", f"        return exact({argument})"]
    lines += [f"    {line}" for line in generator.lines]
    lines += [f"    return {wrap}({result.text})" if needs_wrap else f"    return {result.text}"]
    lines += ["except Exception:", "    pass", f"return exact({argument})"]
    source = "\n".join([f"def fast({argument}):", *(f"    {line}" for line in lines), ""])
    return Generated(source, generator.namespace)


class Generator(Context):
    def __init__(self, plan: Plan, argument: str) -> None:
        super().__init__(plan)
        self._argument = Code(argument, "list" if argument == DEVICES else "", argument)
        self._depth = 0
        self._pieces = 0

    def expression(self, node: Node) -> Code:
        self._depth += 1
        self._pieces += 1
        if self._depth > MAX_DEPTH or self._pieces > MAX_PIECES:
            raise Unsupported("nested too deeply, or too long")
        try:
            return _WRITERS[type(node)](self, node)
        finally:
            self._depth -= 1

    def write_constant(self, node: Constant) -> Code:
        return self.constant(node.value)

    # Chains of selections and indexes

    def write_attribute(self, node: Attribute) -> Code:
        code = self._base(node.base)
        for index, qualifier in enumerate(node.qualifiers):
            if qualifier.optional or code.kind == "optional_type" or self._may_be_optional(node, index):
                return self._optional_chain(code, node.qualifiers[index:])
            code = self._qualify(code, qualifier)
        return code

    def _base(self, base: Variable | Node) -> Code:
        if not isinstance(base, Variable):
            return self.expression(base)
        if base.slot is not None:
            return self.slots[base.slot]
        if base.name != self._argument.text:
            raise Unsupported("another variable than the argument")
        return self._argument

    def _may_be_optional(self, node: Attribute, index: int) -> bool:
        """Only at the start of a chain is an optional looked into, and the checker knows where there can be one."""
        type_ = self.types.get(node.id)
        return index == 0 and type_ is not None and type_.name == "optional_type"

    def _qualify(self, target: Code, qualifier: Qualifier) -> Code:
        key = qualifier.key
        if not qualifier.constant:
            return self._index(target, self.expression(cast("Resolved", key)))
        if target.role == DEVICE and key in _FIELDS:
            field = _FIELDS[key]
            if qualifier.tests:
                return Code("True", "bool")
            text = f"{target.text}.{field.text}"
            return field._replace(text=f"DefaultMap({text})", plain=text) if field.plain else field._replace(text=text)
        if not qualifier.tests:
            return self._index(target, self.constant(key))
        if target.role in _DOMAINS and type(key) is str:
            return Code(f"({key!r} in {target.text})", "bool")
        return Code(f"has_key({target.text}, {self.constant(key).text})", "bool")

    def _index(self, target: Code, key: Code) -> Code:
        by_name = target.kind == "map" and key.kind == "string"
        by_position = target.kind == "list" and key.constant and type(key.value) is int and key.value >= 0
        element = _INDEXED.get(target.role, Code(""))
        if by_name and element.role in _DOMAINS:
            source = target.plain or target.text
            return element._replace(text=f"{source}.get({key.text}, EMPTY_MAP)", plain=f"{source}[{key.text}]")
        if by_name or by_position:
            return element._replace(text=f"{target.plain or target.text}[{key.text}]")
        return element._replace(text=f"qualify({target.text}, {key.text})")

    def _optional_chain(self, target: Code, qualifiers: tuple[Qualifier, ...]) -> Code:
        keys = [
            self.constant(qualifier.key) if qualifier.constant else self.expression(cast("Resolved", qualifier.key))
            for qualifier in qualifiers
        ]
        return Code(f"optional_chain({target.text}, ({', '.join(key.text for key in keys)},))", "optional_type")

    def write_ternary(self, node: Ternary) -> Code:
        condition = self.condition(node.condition)
        then, otherwise = self.expression(node.then), self.expression(node.otherwise)
        kind = then.kind if then.kind == otherwise.kind else ""
        role = then.role if then.role == otherwise.role else PLAIN
        return Code(f"({then.text} if {condition} else {otherwise.text})", kind, role)

    def write_has(self, node: Has) -> Code:
        code = self.expression(node.attribute)
        if code.kind == "bool":
            return code
        if code.kind == "optional_type":
            return Code(f"({code.text} is not NONE)", "bool")
        raise Unsupported("has() of branches that differ")

    # Operators of the language

    def write_logic(self, node: Logic) -> Code:
        operator = "or" if node.stops_at else "and"
        return Code(f"({self.condition(node.left)} {operator} {self.condition(node.right)})", "bool")

    def write_equality(self, node: Equality) -> Code:
        left, right = self.expression(node.left), self.expression(node.right)
        operator, helper = ("!=", "unequal") if node.negated else ("==", "equal")
        if left.kind == right.kind and left.kind in _COMPARABLE:
            text = f"({left.text} {operator} {right.text})"
        elif left.constant and type(left.value) is str:
            # A string on the left is unequal to whatever isn't a string; Python agrees.
            text = f"({left.text} {operator} {right.text})"
        elif (numbers := in_nanos(left, right)) is not None:
            text = f"({numbers[0]} {operator} {numbers[1]})"
        elif right.constant and type(right.value) in (str, int, bool):
            kind = type(right.value).__name__
            text = self.branch(left, kind, f"@ {operator} {right.text}", f"{helper}(@, {right.text})")
        else:
            text = f"{helper}({left.text}, {right.text})"
        return Code(text, "bool")

    def write_optional_or(self, node: OptionalOr) -> Code:
        right = self.expression(node.right)
        entry = self._present_entry(node.left) if node.unwraps else None
        name = self.new_name("t")
        if entry is not None:
            target, key = entry
            found = f"({name} := {target.text}.get({key!r}, ABSENT)) is not ABSENT"
            return Code(f"({name} if {found} else {right.text})")
        left = self.expression(node.left)
        if left.kind != "optional_type":
            raise Unsupported("or() on what may be no optional")
        value = f"{name}.value" if node.unwraps else name
        kind = "" if node.unwraps or right.kind != "optional_type" else "optional_type"
        return Code(f"({value} if ({name} := {left.text}) is not NONE else {right.text})", kind)

    def _present_entry(self, node: Node) -> tuple[Code, str] | None:
        """The domain and name, if the node is `device.attributes["domain"].?name`."""
        if not isinstance(node, Attribute) or not isinstance(node.base, Variable) or not node.qualifiers:
            return None
        *before, last = node.qualifiers
        if not last.optional or not isinstance(last.key, str):
            return None
        if any(qualifier.optional or not qualifier.constant for qualifier in before):
            return None
        target = self.write_attribute(Attribute(node.id, node.base, tuple(before)))
        return (target, last.key) if target.role in _DOMAINS else None

    def write_not_strictly_false(self, node: NotStrictlyFalse) -> Code:
        return Code(self.condition(node.argument), "bool")

    def write_is_one_of(self, node: IsOneOf) -> Code:
        code = self.expression(node.argument)
        texts = frozenset(value for kind, value in cast("frozenset[tuple[type, Value]]", node.keys) if kind is str)
        if len(texts) == len(node.keys) and code.kind == "string":
            return Code(f"({code.text} in {self.name_of(texts)})", "bool")
        return Code(f"is_one_of({code.text}, {self.name_of(node.keys)})", "bool")

    def write_list(self, node: NewList) -> Code:
        items = [self.expression(element).text for element in node.elements]
        if not node.optional:
            return Code(f"[{', '.join(items)}]", "list")
        marked = ", ".join(f"({item}, {index in node.optional})" for index, item in enumerate(items))
        return Code(f"with_optional(({marked},))", "list")

    def write_map(self, node: NewMap) -> Code:
        entries = [
            f"({self.expression(entry.key).text}, {self.expression(entry.value).text}, {entry.optional})"
            for entry in node.entries
        ]
        return Code(f"new_map(({', '.join(entries)},))", "map")

    def write_message(self, node: NewMessage) -> Code:
        raise Unsupported("messages")


_WRITERS: Final[dict[type, Callable[..., Code]]] = {
    Constant: Generator.write_constant,
    Attribute: Generator.write_attribute,
    Ternary: Generator.write_ternary,
    Has: Generator.write_has,
    Logic: Generator.write_logic,
    Equality: Generator.write_equality,
    Call: write_call,
    NotStrictlyFalse: Generator.write_not_strictly_false,
    IsOneOf: Generator.write_is_one_of,
    OptionalOr: Generator.write_optional_or,
    NewList: Generator.write_list,
    NewMap: Generator.write_map,
    NewMessage: Generator.write_message,
    Fold: write_fold,
}
