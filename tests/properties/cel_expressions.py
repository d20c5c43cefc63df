"""Well-typed CEL expressions and devices, made at random."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dray.api.devices import Device, DeviceAttribute, DeviceCapacity
from dray.api.quantities import Quantity

NAMES = ("model", "index", "flag", "version", "names", "nums", "missing")
QUANTITIES = ("1", "40Gi", "80Gi", "100m", "1.5k")
TEXTS = ("", "A100", "b", "gpu.example.com", "é")

ATTRIBUTES: SearchStrategy[DeviceAttribute] = st.one_of(
    st.builds(DeviceAttribute, string_value=st.sampled_from(TEXTS)),
    st.builds(DeviceAttribute, int_value=st.integers(-2, 4) | st.just(2**63 - 1)),
    st.builds(DeviceAttribute, bool_value=st.booleans()),
    st.builds(DeviceAttribute, version_value=st.sampled_from(("1.0.0", "1.2.3-rc.1", "2.0.0"))),
    st.builds(DeviceAttribute, string_values=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3).map(tuple)),
    st.builds(DeviceAttribute, int_values=st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)),
    st.builds(DeviceAttribute, int_values=st.just(tuple(range(100)))),
)
DEVICES: SearchStrategy[Device] = st.builds(
    Device,
    name=st.just("device"),
    attributes=st.dictionaries(st.sampled_from((*NAMES[:-1], "other.com/model", "other.com/nums")), ATTRIBUTES),
    capacity=st.dictionaries(
        st.sampled_from(("mem", "cores", "other.com/mem")),
        st.sampled_from(QUANTITIES).map(lambda text: DeviceCapacity(value=Quantity.parse(text))),
    ),
    allow_multiple_allocations=st.none() | st.booleans(),
)


def _join(*parts: str | SearchStrategy[str]) -> SearchStrategy[str]:
    strategies = [st.just(part) if isinstance(part, str) else part for part in parts]
    return st.tuples(*strategies).map("".join)


_DOMAINS = st.sampled_from(("'d'", "'other.com'", "'none'", "device.driver"))
_MAPS = _join("device.attributes[", _DOMAINS, "]")
_ANY_ATTRIBUTE = _join(_MAPS, st.sampled_from([f".{name}" for name in NAMES] + ["['model']", "['nums'][0]"]))
_TEXT_LITERALS = st.sampled_from([repr(text) for text in TEXTS])
_INT_LITERALS = st.sampled_from(("0", "1", "3", "-1", "9223372036854775807"))
_CAPACITIES = st.sampled_from(("'d'].mem", "'d'].cores", "'other.com'].mem", "'none'].mem"))
_MEMORY = _join("device.capacity[", _CAPACITIES)
_QUANTITIES = st.one_of(
    _MEMORY,
    st.sampled_from([f"quantity('{text}')" for text in QUANTITIES]),
    _join(_MEMORY, ".add(quantity('1'))"),
)


def _grow(booleans: SearchStrategy[str]) -> SearchStrategy[str]:
    """Larger boolean expressions out of smaller ones."""
    order = st.sampled_from((" < ", " <= ", " > ", " >= "))
    equality = st.sampled_from((" == ", " != "))
    ints = st.one_of(
        _INT_LITERALS,
        _join("size(", st.one_of(_TEXTS, _MAPS, _join("[", _ANY_ATTRIBUTE, "]")), ")"),
        _join("(", _ANY_ATTRIBUTE, st.sampled_from((" + ", " - ", " * ", " / ", " % ")), _INT_LITERALS, ")"),
        _join("(", booleans, " ? ", _INT_LITERALS, " : ", _INT_LITERALS, ")"),
        _join("[1, 2, 3]", st.sampled_from((".max()", ".sum()", "[1]", ".indexOf(2)", ".map(x, x * 2)[2]"))),
        _join(_ANY_ATTRIBUTE, ".indexOf('1')"),
    )
    macro = st.sampled_from((".all(x, ", ".exists(x, ", ".exists_one(x, "))
    ranges = st.one_of(_ANY_ATTRIBUTE, st.just("[1, 2]"), _MAPS, st.just("lists.range(3)"), _join("[", ints, "]"))
    bodies = st.one_of(booleans, _join("x", equality, _ANY_ATTRIBUTE), st.just("x == 1"), st.just("dyn(x) != 'b'"))
    return st.one_of(
        _join("(", booleans, st.sampled_from((" && ", " || ")), booleans, ")"),
        _join("!", booleans),
        _join("(", booleans, " ? ", booleans, " : ", booleans, ")"),
        _join("(", _TEXTS, equality, _TEXTS, ")"),
        _join("(", _ANY_ATTRIBUTE, equality, st.one_of(_ANY_ATTRIBUTE, _TEXT_LITERALS, ints, booleans), ")"),
        _join("(", st.one_of(_TEXT_LITERALS, _INT_LITERALS), equality, _ANY_ATTRIBUTE, ")"),
        _join("(", _ANY_ATTRIBUTE, order, st.one_of(_TEXT_LITERALS, _INT_LITERALS, st.just("1.5")), ")"),
        _join("(", ints, order, ints, ")"),
        _join("(", _QUANTITIES, equality, _QUANTITIES, ")"),
        _join(_QUANTITIES, st.sampled_from((".isGreaterThan(", ".isLessThan(")), _QUANTITIES, ")"),
        _join("(", _QUANTITIES, ".compareTo(", _QUANTITIES, ")", order, "0)"),
        _join(_ANY_ATTRIBUTE, ".isGreaterThan(semver('1.2.3'))"),
        _join("has(", _MAPS, st.sampled_from((".model", ".nums", ".missing")), ")"),
        st.just("has(device.attributes.none)"),
        _join(
            "(",
            st.one_of(_TEXT_LITERALS, _ANY_ATTRIBUTE),
            " in ",
            st.one_of(_MAPS, st.just("dyn(device.attributes)")),
            ")",
        ),
        _join("(", _ANY_ATTRIBUTE, " in [", st.sampled_from(("1, 2", "'b', 'A100'", "true", "1.0, 3.0")), "])"),
        _join("(", _ANY_ATTRIBUTE, ".?x.orValue(", booleans, "))"),
        _join("(", _MAPS, ".?model.orValue('b') == ", _TEXT_LITERALS, ")"),
        _join(_MAPS, "[?'index'].optMap(i, i + 1).hasValue()"),
        _join(ranges, macro, bodies, ")"),
        _join("(", ranges, ".filter(x, ", bodies, ").size() == ", ints, ")"),
        _join("(", ranges, ".map(x, ", bodies, ").size() >= ", ints, ")"),
        _join("cel.bind(b, ", st.one_of(_MAPS, booleans), ", dyn(b) == dyn(b) && ", booleans, ")"),
        _join("cel.bind(m, ", _MAPS, ", has(m.model) && m.model == ", _TEXT_LITERALS, ")"),
        _join(_TEXTS, st.sampled_from((".startsWith(", ".endsWith(", ".contains(", ".matches(")), _TEXT_LITERALS, ")"),
        _join(_ANY_ATTRIBUTE, ".includes(", st.one_of(_TEXT_LITERALS, _INT_LITERALS), ")"),
        _join("sets.intersects([", ints, "], [1, 2])"),
        _join("isQuantity(", _TEXTS, ")"),
    )


_TEXTS = st.one_of(
    _TEXT_LITERALS,
    st.just("device.driver"),
    _join("string(", _ANY_ATTRIBUTE, ")"),
    _join("(device.driver + ", _TEXT_LITERALS, ")"),
    _join(_ANY_ATTRIBUTE, ".lowerAscii()"),
    st.just("'a,b'.split(',')[1]"),
)
BOOLEANS: SearchStrategy[str] = st.recursive(
    st.one_of(
        st.sampled_from(("true", "false", "(device.driver == 'd')", "device.allowMultipleAllocations")), _ANY_ATTRIBUTE
    ),
    _grow,
    max_leaves=8,
)
