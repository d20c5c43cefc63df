"""What must hold of a checked expression beyond its types: constants that have a value, literals of one type,
`format` calls that fit their format string, and a result of the right type.

Errors in constants that only building the program finds (type conversions in general, patterns of `find` and
`findAll`, indexes of an impossible type) are the planner's: there they are of kind `internal`, as in Kubernetes.
"""

from __future__ import annotations

from typing import NoReturn

from dray.cel.ast import Call, Checked, Expr, ListExpr, Literal, MapExpr, children_of
from dray.cel.declarations import SEMVER
from dray.cel.environment import Environment
from dray.cel.errors import CompileError, EvaluationError
from dray.cel.format_clauses import check_format
from dray.cel.functions_conversions import int_to_timestamp, string_to_duration, string_to_timestamp
from dray.cel.regexes import InvalidRegex, compile_regex
from dray.cel.types import BOOL, INT, STRING, Type
from dray.cel.unification import same


def validate(checked: Checked) -> None:
    """Raise `CompileError` if the expression is well typed, but still can't be right."""
    _Validator(checked).run()


class _Validator:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked

    def run(self) -> None:
        # Inside of `format` calls, literals may mix types: that is what its arguments are for.
        stack: list[tuple[Expr, bool]] = [(self._checked.expr, False)]
        while stack:
            node, in_format = stack.pop()
            match node:
                case Call():
                    self._check_call(node)
                    in_format = in_format or node.function == "format"
                case ListExpr() if not in_format:
                    self._check_list(node)
                case MapExpr() if not in_format:
                    self._check_map(node)
                case Literal():
                    continue
                case _:
                    pass
            stack.extend([(child, in_format) for child in children_of(node)])

    def _check_call(self, node: Call) -> None:
        if node.function == "format":
            check_format(node, self._checked)
        elif node.function in ("duration", "timestamp", "matches") and node.args:
            # In the call style `matches(text, pattern)` it is the text that is checked, as in cel-go.
            argument = node.args[0]
            if isinstance(argument, Literal) and not _has_value(node.function, argument):
                self._fail(argument, f"invalid {node.function} argument")

    def _check_list(self, node: ListExpr) -> None:
        first: Type | None = None
        for index, element in enumerate(node.elements):
            type_ = self._type_of(element, optional=index in node.optional_indices)
            if first is None:
                first = type_
            else:
                self._require_same(first, type_, element)

    def _check_map(self, node: MapExpr) -> None:
        first: tuple[Type, Type] | None = None
        for entry in node.entries:
            key = self._type_of(entry.key, optional=False)
            value = self._type_of(entry.value, optional=entry.optional)
            if first is None:
                first = (key, value)
            else:
                self._require_same(first[0], key, entry.key)
                self._require_same(first[1], value, entry.value)

    def _type_of(self, node: Expr, *, optional: bool) -> Type:
        type_ = self._checked.types[node.id]
        if not optional:
            return type_
        if type_.name != "optional_type":
            # Kubernetes' compiler crashes on these.
            self._fail(node, f"an optional element must be of an optional type, not '{type_}'")
        return type_.parameters[0]

    def _require_same(self, expected: Type, found: Type, node: Expr) -> None:
        if not same(expected, found):
            self._fail(node, f"expected type '{expected}' but found '{found}'")

    def _fail(self, node: Expr, message: str) -> NoReturn:
        parsed = self._checked.parsed
        raise CompileError(message, text=parsed.text, position=parsed.positions[node.id])


def _has_value(function: str, argument: Literal) -> bool:
    value = argument.value
    try:
        match function, value:
            case "duration", str():
                string_to_duration(value)
            case "timestamp", str():
                string_to_timestamp(value)
            case "timestamp", int():
                int_to_timestamp(value)
            case "matches", str():
                compile_regex(value)
            case _:
                pass  # of another type, so the call was not found well typed
    except (EvaluationError, InvalidRegex):
        return False
    return True


def require_selector_type(checked: Checked, environment: Environment) -> None:
    """A selector gives a bool, or what the type checker knows nothing of: an attribute value."""
    found = checked.output_type
    if found != BOOL and found != environment.attribute_type:
        _fail_output(checked, f"must evaluate to bool or the unknown type, not {found}")


def require_constraint_type(checked: Checked, environment: Environment) -> None:
    """A constraint over devices follows the rule of selectors."""
    require_selector_type(checked, environment)


def require_derived_type(checked: Checked, environment: Environment) -> None:
    """A derived attribute gives what an attribute can hold."""
    found = checked.output_type
    lists_allowed = environment.stored or environment.list_type_attributes
    item = found.parameters[0] if found.kind == "list" and lists_allowed else found
    if item not in (BOOL, INT, STRING, SEMVER) and item.kind not in ("dyn", "any"):
        lists = " or a list of these scalars" if lists_allowed else ""
        scalars = "a primitive scalar (string, integer, boolean, semver)"
        _fail_output(checked, f"must evaluate to {scalars}{lists}, not {found}")


def _fail_output(checked: Checked, message: str) -> NoReturn:
    raise CompileError(message, text=checked.parsed.text, position=0)
