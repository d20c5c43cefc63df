"""The front end of CEL takes any text: it gives a checked expression with an estimate, or a compile error.

How many texts are tried: DRAY_CEL_FUZZ (200,000 in the slow test).
"""

from __future__ import annotations

import os
import random
import time

import pytest

from dray.cel.checker import check
from dray.cel.environment import Environment, device_environment, devices_environment
from dray.cel.errors import CompileError
from dray.cel.estimate import estimate
from dray.cel.lexer import tokenize
from dray.cel.parser import parse
from dray.cel.validators import validate

SEEDS = (
    'device.attributes["gpu.example.com"].model == "A100" && device.capacity["gpu.example.com"].memory'
    '.isGreaterThan(quantity("10Gi"))',
    "device.attributes['d'].names.exists(n, n.startsWith('a')) || !has(device.attributes['d'].x)",
    "cel.bind(d, device.attributes['d'], d.?x.orValue(1) + [1, 2, 3].map(i, i * 2).sum() > 3u)",
    "{'a': [1, ?optional.none()], ?'b': optional.of([2])}.transformMap(k, v, size(v) > 0).all(k, v, v)",
    "timestamp('2024-02-29T00:00:00Z') - duration('1h30m') < timestamp(0) ? b'\\xff' == b'' : r'\\d' in ['a']",
    "'%s %d'.format([1.5, 2]).matches('^[a-z]+$') && device.driver.replace('a', 'bb').split(',', 2)[0] == \"x\"",
    "ip('::1').family() == 6 && cidr('10.0.0.0/8').containsIP('10.0.0.1') && semver('1.2.3').major() in [1]",
    "[3, 1].sortBy(x, -x)[?0].optMap(y, y + 1) == optional.of(2) // comment",
    "devices.all(d, devices.filter(e, d != e && d.attributes['m'].row == e.attributes['m'].row + 1).size() >= 2)",
    "device.`a-b`.c && google.protobuf.Int64Value{value: 1} == 1 && [[], [1]].flatten().distinct().slice(0, 1) == [1]",
)
BLOWN_UP = 10
"""Seconds that no text takes unless something in it grows without bound; all should take less than one."""
PIECES = (
    "device", "devices", ".attributes", "['d']", ".x", "[0]", "[?", ".?", "(", ")", "[", "]", "{", "}", ",", ":", "?",
    " && ", " || ", " == ", " != ", " in ", " + ", " - ", "!", "-", "1", "1u", "1.5", "0x1F", "'a'", "b'a'", "r'\\'",
    '"""', "'''", "`x y`", "null", "true", ".map(x, ", ".all(x, y, ", ".exists(x, ", ".filter(x, ", ".optMap(x, ",
    "cel.bind(x, ", "has(", ".sortBy(x, ", "x", "size(", "dyn(", ".format([", "optional.of(", "type(", "//", "\n",
    "\\", "'", '"', "é", "😀", "\x00", "if", "@result", "99999999999999999999", "1e999",
)  # fmt: skip


OPERATORS = ["==", "!=", "<", ">=", "+", "-", "*", "%", "&&", "||", "in"]
VOCABULARY: dict[str, list[str]] = {}
for _seed in SEEDS:
    for _kind, _text in zip(*tokenize(_seed)[:2], strict=True):
        if _kind in ("name", "string", "bytes", "int", "uint", "double"):
            VOCABULARY.setdefault(_kind, []).append(_text)


def mutate(random_: random.Random) -> str:
    text = random_.choice(SEEDS)
    for _ in range(random_.randint(1, 6)):
        at = random_.randint(0, len(text))
        match random_.randrange(4):
            case 0:
                text = text[:at] + random_.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + random_.randint(1, 8) :]
            case 2:
                other = random_.choice(SEEDS)
                start = random_.randrange(len(other))
                text = text[:at] + other[start : start + random_.randint(1, 40)] + text[at:]
            case _:
                text = text[:at] + chr(random_.randrange(0x250)) + text[at + 1 :]
    return text


def swap_tokens(random_: random.Random) -> str:
    """A seed with some tokens replaced by others of their kind: often still an expression, seldom a well typed one."""
    kinds, texts, _ = tokenize(random_.choice(SEEDS))
    for _ in range(random_.randint(1, 2)):
        index = random_.randrange(len(kinds) - 1)
        texts[index] = random_.choice(VOCABULARY.get(kinds[index], OPERATORS))
    return " ".join(texts)


def make_text(random_: random.Random) -> str:
    match random_.randrange(5):
        case 0:
            return random_.randbytes(random_.randint(0, 60)).decode("utf-8", "replace")
        case 1:
            return "".join(random_.choices(PIECES, k=random_.randint(1, 30)))
        case 2:
            return mutate(random_)
        case _:
            return swap_tokens(random_)


def try_text(text: str, environment: Environment) -> bool:
    """Whether the text is an expression. Any error but a compile error gets out."""
    problem: CompileError | None = None
    try:
        checked = check(parse(text), environment)
        validate(checked)
    except CompileError as error:
        problem = error
    if problem is not None:
        assert problem.message in str(problem)
        return False
    least, most = estimate(checked, environment)
    assert least >= 0
    assert most < 2**64
    return True


def try_many(count: int, seed: int) -> int:
    random_ = random.Random(seed)
    environments = (device_environment(), devices_environment(stored=False, list_type_attributes=False))
    accepted = 0
    for _ in range(count):
        text = make_text(random_)
        started = time.process_time()
        accepted += try_text(text, random_.choice(environments))
        assert time.process_time() - started < BLOWN_UP, f"took too long: {text!r}"
    return accepted


def test_any_text_is_an_expression_or_a_compile_error() -> None:
    count = int(os.environ.get("DRAY_CEL_FUZZ", "8000"))
    assert 0 < try_many(count, seed=5491) < count


@pytest.mark.slow
def test_any_of_very_many_texts_is_an_expression_or_a_compile_error() -> None:
    count = int(os.environ.get("DRAY_CEL_FUZZ", "200000"))
    assert 0 < try_many(count, seed=5254) < count


NESTED = (
    "[", "(", "{1:", "!(", "-(", "[1].all(x, ", "[1].map(x, ", "cel.bind(x, [x0], ", "optional.of(", "f(", "a ? b : ",
    "1 + (", "1 == (", "a[", "has(a.", "x.optMap(y, ", "[1].sortBy(x, ", "{'a': 1}.transformMap(k, v, ", "'''", "\\",
    "true && ", "1 + ", "a.b", ".optMap(x, x)", "[[1]]==[[1]]||", "'a'+", "[1]+",
)  # fmt: skip


@pytest.mark.parametrize("piece", NESTED)
@pytest.mark.parametrize("closed", [True, False])
def test_texts_that_repeat_one_thing_end_soon(piece: str, closed: bool) -> None:
    closers = str.maketrans("([{", ")]}")
    for count in (60, 240, 10240 // len(piece)):
        opened = [character for character in piece if character in "([{"]
        open_ones = opened[piece.count(")") + piece.count("]") + piece.count("}") :]
        ending = "".join(reversed(open_ones)).translate(closers) * count
        text = "dyn(1)" + piece * count if piece.startswith(".") else piece * count + "dyn(1)"
        started = time.process_time()
        try_text(text + ending if closed else text, device_environment())
        assert time.process_time() - started < BLOWN_UP
