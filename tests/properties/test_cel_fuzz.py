"""Any text is a compile error or a program that can be evaluated, quickly; expressions made to explode are stopped.

How many texts are tried: 4,000 by default, 200,000 in the slow test.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from dray.api.devices import Device, DeviceAttribute
from dray.cel.devices import bind_device
from dray.cel.errors import CompileError
from dray.cel.program import Program, compile_constraint, compile_derived, compile_selector

SEEDS = (
    'device.driver == "gpu.example.com" && device.attributes["d"].model == "A100"',
    'device.capacity["d"].memory.compareTo(quantity("40Gi")) >= 0 || has(device.attributes["d"].x.y)',
    'device.attributes["d"].names.exists(n, n.startsWith("a") && n.matches("^[a-z]+(b|c)*$"))',
    'cel.bind(a, device.attributes["d"], a.?x.orValue([1, 2u, 3.5]) == a[?"y"].optMap(v, [v]).orValue([]))',
    '[[1, 2], [3]].flatten().sortBy(x, -x).map(x, x > 1, x * 2).sum() + size("é") - int("5") % 3 == -0x1F',
    '{"a": 1, ?"b": optional.of(2)}.transformMapEntry(k, v, {v: k})[1].replace("a", "bb", -1).split("") != []',
    "timestamp('2024-02-29T00:00:00+02:00').getHours('Europe/Berlin') in [1] ? duration('1h') > duration('1m') : null",
    "'%s %.2f %x'.format([[1, {'a': b'\\xff'}], 1.5, -255]).contains(r'\\n') && ip('::1') == cidr('::/8').ip()",
    'semver("1.2.3").isLessThan(semver("v2", true)) && url("https://a:1/b?c=d").getQuery()["c"][0] == "d"',
    "devices.all(d, devices.filter(e, d != e && d.attributes['m'].row == e.attributes['m'].row + 1).size() >= 2)",
    "format.dns1123Label().validate(device.driver).orValue(['x'])[0] == type(1) && sets.contains([1], [1, 1])",
    "lists.range(5).distinct().slice(1, 3).reverse().first().value() == 2 && [true, false].exists_one(b, !b)",
    "(device.driver == 'x' ? device.attributes : {'a': {'b': 1}})['a'][?'b'].hasValue() && dyn(1) in {1: 2}",
)
PIECES = (
    "device", ".attributes", '["d"]', ".x", "[0]", "[?0]", ".?y", "(", ")", "[", "]", "{", "}", ",", ":", " ? ", " && ",
    " || ", " == ", " != ", " < ", " in ", " + ", " - ", "!", "-", "1", "2u", "1.5", "0x1F", "'a'", "b'a'", "r'\\'",
    '"""', "null", "true", ".map(x, ", ".all(x, y, ", ".exists(x, ", ".filter(x, ", ".optMap(x, ", ".sortBy(x, ",
    "cel.bind(x, ", ".size()", ".matches('(a*)*')", ".format([1])", "dyn(", "int(", "quantity('1')", ".add(1)",
    "{1: 2}", ".transformMap(k, v, ", "lists.range(9)", ".flatten()", ".max()", ".join()", "optional.none()",
    ".orValue(", "\x00", "é",
)  # fmt: skip
SLOW_TEXTS = 200_000
TEXTS = 4_000
BLOWN_UP = 10
"""Seconds that nothing takes unless something grows without bound; everything should take less than one."""

DEVICE = bind_device(
    "d",
    Device(
        attributes={
            "model": DeviceAttribute(string_value="A100"),
            "names": DeviceAttribute(string_values=("a", "b")),
            "x": DeviceAttribute(int_value=1),
        }
    ),
)


def iter_texts(count: int, seed: int) -> Iterator[str]:
    """Random characters, random pieces of CEL, and expressions with something changed."""
    source = random.Random(seed)
    for _ in range(count):
        match source.randrange(4):
            case 0:
                yield source.randbytes(source.randrange(1, 60)).decode("latin-1")
            case 1:
                yield "".join(source.choices(PIECES, k=source.randrange(1, 20)))
            case _:
                yield mutate(source, source.choice(SEEDS))


def mutate(source: random.Random, text: str) -> str:
    for _ in range(source.randrange(1, 4)):
        start = source.randrange(len(text) + 1)
        end = min(len(text), start + source.randrange(8))
        match source.randrange(4):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + source.choice(PIECES) + text[start:]
            case 2:
                text = text[:start] + text[start:end] * 3 + text[end:]
            case _:
                other = source.choice(SEEDS)
                cut = source.randrange(len(other))
                text = text[:start] + other[cut : cut + source.randrange(40)] + text[end:]
    return text


def try_text(text: str, compile_: Callable[[str], Program]) -> bool:
    """Whether it compiles. Anything else than a compile error is raised."""
    try:
        program = compile_(text)
    except CompileError:
        return False
    value: object = [DEVICE, DEVICE] if compile_ is compile_constraint else DEVICE
    program.run_exact(value)
    assert isinstance(program.explain(value), list)
    return True


def check_texts(count: int, seed: int) -> None:
    compiled = 0
    for index, text in enumerate(iter_texts(count, seed)):
        start = time.monotonic()
        compile_ = (compile_selector, compile_derived, compile_constraint)[index % 3]
        compiled += try_text(text, compile_)
        assert time.monotonic() - start < BLOWN_UP, text
    assert compiled > count // 50, "hardly anything compiles: the texts are too random to find much"


def test_any_text_is_a_compile_error_or_a_program() -> None:
    check_texts(TEXTS, seed=1)


@pytest.mark.slow
def test_any_of_many_texts_is_a_compile_error_or_a_program() -> None:
    check_texts(SLOW_TEXTS, seed=2)


def nested_binds(count: int, first: str, each: str, last: str) -> str:
    """`a0` is bound to the first, every further variable to `each` of the one before, all within the last."""
    inner = "".join(f"cel.bind(a{n + 1}, {each.replace('@', f'a{n}')}, " for n in range(count))
    return f"cel.bind(a0, {first}, {inner}{last.replace('@', f'a{count}')}{')' * (count + 1)}"


NUMBERS = "[" + ",".join("1" * 10) + "]"
MANY = "[" + ",".join("1" * 1000) + "]"
LARGE = '"' + "x" * 4000 + '".replace("x", "' + "y" * 1000 + '")'
EXPLOSIONS = {
    "nested loops": "".join(f"{NUMBERS}.all(a{n}, " for n in range(8)) + "true" + ")" * 8,
    "loops that are free": "".join(f"{MANY}.exists_one(a{n}, " for n in range(3)) + "false" + ")" * 3,
    "nested maps": "lists.range(1000).map(i, lists.range(1000).map(j, i * j)).flatten().size() > 0",
    "strings that double": nested_binds(60, "device.driver", "@ + @", "size(@) > 0"),
    "dynamic strings that double": nested_binds(60, "dyn(device.driver)", "@ + @", "size(@) > 0"),
    "bytes that double": nested_binds(60, "dyn(b'xy')", "@ + @", "size(@) > 0"),
    "lists that double": nested_binds(60, "[1]", "@ + @", "size(@) > 0"),
    "nested lists compared": nested_binds(60, "[1, 2]", "[@, @]", "@ == @"),
    "nested lists written": nested_binds(60, "[1, 2]", "[@, @]", '"%s".format([@]) == ""'),
    "nested lists flattened": nested_binds(60, "dyn([1, 2])", "[@, @]", "@.flatten(60).size() > 0"),
    "nested lists searched": nested_binds(60, "dyn([1, 2])", "[@, @]", "[@].indexOf(@) > 0"),
    "large lists joined in a loop": "cel.bind(x, lists.range(300000), lists.range(9999).all(i, size(x + x) > 0))",
    "large strings compared in a loop": f"cel.bind(x, dyn({LARGE}), lists.range(50000).all(i, x >= x))",
    "large replacements": f'{LARGE}.replace("y", "{"z" * 2000}").size() > 0',
    "large joins": f'lists.range(50000).map(i, "{"x" * 5000}").join().size() > 0',
    "wide numbers": '"%.999999999f %.999999999e".format([1.5, 1.5]).size() > 0',
    "sorting dynamic lists": "lists.range(80000).map(i, dyn(-i)).sort().size() > 0",
    "distinct": "lists.range(100000).distinct().size() > 0",
    "membership in a loop": "lists.range(20000).all(i, !(dyn(-1) in dyn(lists.range(20000))))",
    "hard regexes": f'lists.range(900).all(i, !"{"a" * 200}".matches(string(i) + "(a?){{200}}a{{200}}"))',
    "a large regex": r'"a".matches("' + r"(\\pL{1,500}){2}" * 50 + '")',
    "many large regexes": " || ".join(rf'device.driver.find("\\pL{{1,{n}}}x") != ""' for n in range(500, 700)),
    "a regex of nested groups": '"a".matches("' + "(" * 4000 + ")" * 4000 + '")',
    "open brackets": "[" * 10_240,
    "closed brackets": "[" * 5_000 + "]" * 5_000,
    "parentheses": "(" * 240 + "true" + ")" * 240,
    "chained optional macros": 'device.attributes["d"].?x' + ".optMap(v, v)" * 200 + ".hasValue()",
    "nested ternaries with an index": "(true ? [0] : [1])[" * 100 + "0" + "]" * 100 + " == 0",
    "a long chain": "device" + ".x" * 5_000,
    "many conjuncts": " && ".join(["device.driver == 'd'"] * 480),
    "many errors": "lists.range(100000).all(i, i / 0 > 1)",
    "a large map": "lists.range(60000).transformMap(i, v, v).size() > 0",
}

CHILD = """
import json, resource, sys, time
from tests.properties.test_cel_fuzz import DEVICE, EXPLOSIONS
from dray.cel.errors import CelError
from dray.cel.program import compile_selector
report = {}
for name in json.loads(sys.argv[1]):
    best = 9.0
    for _ in range(3):
        for cache in ("_find", "_find_large"):
            compile_selector.__globals__[cache].cache_clear()
        start = time.process_time()
        try:
            answer = str(compile_selector(EXPLOSIONS[name]).matches(DEVICE))
        except CelError as error:
            answer = f"{type(error).__name__}: {error}"
        best = min(best, time.process_time() - start)
        if best < 0.9:  # other programs may have slowed this one down, so a slow answer gets another chance
            break
    report[name] = [answer[:200], best, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def explosions() -> dict[str, tuple[str, float, float]]:
    """Answer, seconds of processor time, and the most memory so far in MiB, of each expression in another process."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(list(EXPLOSIONS))],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return {name: tuple(found) for name, found in json.loads(child.stdout).items()}


@pytest.mark.parametrize("name", EXPLOSIONS)
def test_expressions_made_to_explode_end_within_a_second_and_200_mb(
    name: str, explosions: dict[str, tuple[str, float, float]]
) -> None:
    answer, seconds, memory = explosions[name]
    assert answer
    assert seconds < 1, f"{answer} after {seconds:.2f} s"
    assert memory < 200, f"{answer} with {memory:.0f} MiB"


@pytest.mark.parametrize(
    "name",
    [
        "nested loops",
        "loops that are free",
        "strings that double",
        "lists that double",
        "nested lists compared",
        "distinct",
    ],
)
def test_endless_work_ends_with_the_cost_error(name: str, explosions: dict[str, tuple[str, float, float]]) -> None:
    assert explosions[name][0].startswith("CostLimitExceeded")
