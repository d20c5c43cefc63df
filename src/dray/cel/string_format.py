"""`format` as Kubernetes has it: the older formatter, which writes doubles with the conventions of American English."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, cast

from dray.api.quoting import quote
from dray.cel.ast import Uint
from dray.cel.errors import EvaluationError
from dray.cel.functions_conversions import to_string
from dray.cel.meter import Meter
from dray.cel.numbers import parse_double
from dray.cel.values import Duration, Timestamp, TypeValue, Value, as_map, decode_key, type_name

_DEFAULT_PRECISION: Final = 6
_WRITING: Final = 8
"""How many times longer it takes to write a value than to look at it."""
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NUMBER_WORDS: Final = ("NaN", "Infinity", "-Infinity")


def format_string(meter: Meter, template: str, arguments: list[Value]) -> str:
    """The template with its clauses (`%s`, `%.2f` ...) replaced by the arguments in their order."""
    pieces: list[str] = []
    position = used = 0
    meter.spend_text(len(template))
    while True:
        percent = template.find("%", position)
        if percent < 0:
            pieces.append(template[position:])
            return "".join(pieces)
        pieces.append(template[position:percent])
        if template.startswith("%%", percent):
            pieces.append("%")
            position = percent + 2
            continue
        if used >= len(arguments):
            raise EvaluationError(f"index {used} out of range")
        if percent + 1 >= len(template):
            raise EvaluationError("unexpected end of string")
        precision, position = _parse_precision(template, percent + 1)
        piece = _format_clause(template[position], precision, arguments[used], meter)
        meter.spend_text(len(piece))
        pieces.append(piece)
        position += 1
        used += 1


def _parse_precision(template: str, position: int) -> tuple[int | None, int]:
    if template[position] != ".":
        return None, position
    end = position + 1
    while end < len(template) and template[end] in "0123456789":
        end += 1
    if end >= len(template):
        raise _unreadable("error while parsing precision: could not find end of precision specifier")
    digits = template[position + 1 : end]
    if not digits or len(digits) > 18:
        raise _unreadable("error while parsing precision: error while converting precision to integer")
    return int(digits), end


def _unreadable(reason: str) -> EvaluationError:
    return EvaluationError(f"could not parse formatting clause: {reason}")


def _wrong_type(rule: str, value: Value) -> EvaluationError:
    return EvaluationError(f"error during formatting: {rule}, was given {type_name(value)}")


def _format_clause(verb: str, precision: int | None, value: Value, meter: Meter) -> str:
    match verb:
        case "s":
            return _format_any(value, meter)
        case "d":
            if type(value) is int or type(value) is Uint:
                return str(int(value))
            raise _wrong_type("decimal clause can only be used on integers", value)
        case "f":
            return _format_fixed(_double_of(value, "fixed-point clause can only be used on doubles"), precision, meter)
        case "e":
            # Kubernetes uses the precision as a width here: six digits follow the point whatever it says.
            text = _format_scientific(_double_of(value, "scientific clause can only be used on doubles"))
            width = _DEFAULT_PRECISION if precision is None else precision
            meter.spend_text(width)
            return text.rjust(width)
        case "b":
            if type(value) is bool:
                return "1" if value else "0"
            if type(value) is int or type(value) is Uint:
                return f"{int(value):b}"
            raise _wrong_type("only integers and bools can be formatted as binary", value)
        case "x" | "X":
            text = _format_hexadecimal(value)
            return text.upper() if verb == "X" else text
        case "o":
            if type(value) is int or type(value) is Uint:
                return f"{int(value):o}"
            raise _wrong_type("octal clause can only be used on integers", value)
    raise _unreadable(f'unrecognized formatting clause "{verb}"')


def _format_hexadecimal(value: Value) -> str:
    if type(value) is int or type(value) is Uint:
        return f"{int(value):x}"
    if type(value) is str:
        return value.encode().hex()
    if type(value) is bytes:
        return value.hex()
    raise _wrong_type("only integers, byte buffers, and strings can be formatted as hex", value)


def _double_of(value: Value, rule: str) -> float:
    if type(value) is float:
        return value
    if type(value) is str and value in _NUMBER_WORDS:
        return cast("float", parse_double(value))
    raise _wrong_type(rule, value)


def _format_fixed(number: float, precision: int | None, meter: Meter) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    digits = _DEFAULT_PRECISION if precision is None else precision
    meter.spend_text(digits)
    # No double has more than 1,074 digits after the point.
    exact = min(digits, 1100)
    return f"{number:,.{exact}f}" + "0" * (digits - exact)


def _format_scientific(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
    return f"{mantissa}×10{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}"


def _format_any(value: Value, meter: Meter) -> str:
    """`%s`."""
    if isinstance(value, list):
        return _format_list(value, meter)
    if as_map(value) is not None:
        return _format_map(value, meter)
    if value is None:
        return "null"
    if isinstance(value, TypeValue):
        return value.name
    if type(value) in _PLAIN:
        return to_string(value)
    raise _wrong_type(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        "timestamps",
        value,
    )


_PLAIN: Final = frozenset((bool, int, Uint, float, str, bytes, Timestamp, Duration))


def _format_list(items: list[Value], meter: Meter) -> str:
    meter.spend(_WRITING * (1 + len(items)))
    texts: list[str] = []
    for item in items:
        texts.append(_format_nested(item, meter))
    return "[" + ", ".join(texts) + "]"


def _format_map(value: Value, meter: Meter) -> str:
    entries = as_map(value) or {}
    meter.spend(_WRITING * (1 + len(entries)))
    pairs = []
    for key, item in entries.items():
        decoded = decode_key(key)
        if type(decoded) not in (str, bool, int, Uint):
            raise EvaluationError(
                f"error during formatting: no formatting function for map key of type {type_name(decoded)}"
            )
        pairs.append((_format_nested(decoded, meter), _format_nested(item, meter)))
    pairs.sort(key=lambda pair: pair[0])
    return f"{{{', '.join(f'{key}:{item}' for key, item in pairs)}}}"


def _format_nested(value: Value, meter: Meter) -> str:
    """A value inside a list or map, written as a CEL literal."""
    write = _NESTED.get(type(value))
    if write is not None:
        text = write(value)
    elif isinstance(value, list):
        return _format_list(value, meter)
    elif as_map(value) is not None:
        return _format_map(value, meter)
    elif isinstance(value, TypeValue):
        return value.name
    else:
        raise EvaluationError(f"error during formatting: no formatting function for {type_name(value)}")
    meter.spend_text(len(text))
    return text


def _nested_double(value: Value) -> str:
    number = cast("float", value)
    if math.isfinite(number):
        return f"{number:.{_DEFAULT_PRECISION}f}"
    return '"NaN"' if math.isnan(number) else '"+Inf"' if number > 0 else '"-Inf"'


_NESTED: Final[dict[type, Callable[[Value], str]]] = {
    int: str,
    Uint: lambda value: str(int(cast("int", value))),
    bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
    str: lambda value: quote(cast("str", value)),
    bytes: lambda value: "b" + quote(to_string(value)),
    float: _nested_double,
    Timestamp: lambda value: f"timestamp({quote(to_string(value))})",
    Duration: lambda value: f"duration({quote(to_string(value))})",
}
