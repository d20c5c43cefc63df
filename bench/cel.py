"""CEL: nanoseconds per evaluation beside a hand-written function and two other libraries, and compile times.

Neither of the other libraries has Kubernetes' quantities, so memory is a plain number of bytes for them.
"""

from __future__ import annotations

import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

import celpy
import celpy.adapter
from cel_expr_python import cel as cel_expr

from dray.api.devices import Device, DeviceAttribute, DeviceCapacity
from dray.api.quantities import Quantity
from dray.cel.devices import DeviceValue, bind_device
from dray.cel.program import Program, compile_constraint, compile_selector

DRIVER = "gpu.example.com"
DEVICE = Device(
    name="gpu-0",
    attributes={
        "model": DeviceAttribute(string_value="A100"),
        "uuid": DeviceAttribute(string_value="GPU-4257-7af7-6726"),
        "index": DeviceAttribute(int_value=3),
        "driverVersion": DeviceAttribute(version_value="580.82.7"),
    },
    capacity={"memory": DeviceCapacity(value=Quantity.parse("80Gi"))},
)
PLAIN: dict[str, Any] = {
    "driver": DRIVER,
    "attributes": {
        DRIVER: {"model": "A100", "uuid": "GPU-4257-7af7-6726", "index": 3, "driverVersion": "580.82.7"},
    },
    "capacity": {DRIVER: {"memory": 80 * 2**30}},
}
LIMIT = Quantity.parse("40Gi")

DRIVER_SELECTOR = f'device.driver == "{DRIVER}"'
MODEL_SELECTOR = (
    f'device.attributes["{DRIVER}"].model == "A100" && '
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
)
MODEL_PLAIN = f'device.attributes["{DRIVER}"].model == "A100" && device.capacity["{DRIVER}"].memory >= {40 * 2**30}'
RING = (
    "size(devices) == 4 && devices.map(d, d.attributes['mla.example.com'].deviceid).max() - "
    "devices.map(d, d.attributes['mla.example.com'].deviceid).min() == 3"
)


def is_ours(device: DeviceValue) -> bool:
    return device.driver == DRIVER


def has_model_and_memory(device: DeviceValue) -> bool:
    return (
        device.attributes[DRIVER]["model"] == "A100"  # type: ignore[index]
        and device.capacity[DRIVER]["memory"] >= LIMIT  # type: ignore[index]
    )


def measure(function: Callable[[], object], count: int) -> float:
    """Nanoseconds of the fastest of many short rounds: other work on the machine disturbs some of them."""
    rounds = 100
    return min(timeit.repeat(function, number=max(1, count // rounds), repeat=rounds)) / max(1, count // rounds) * 1e9


def make_celpy(text: str) -> Callable[[], object]:
    environment = celpy.Environment()
    program = environment.program(environment.compile(text))
    return lambda: program.evaluate({"device": celpy.adapter.json_to_cel(PLAIN)})


def make_cel_expr(text: str) -> Callable[[], object]:
    environment = cel_expr.NewEnv(variables={"device": cel_expr.Type.DYN})
    expression = environment.compile(text)
    return lambda: expression.eval(data={"device": PLAIN}).value()


def show(name: str, text: str, plain_text: str, by_hand: Callable[[DeviceValue], bool]) -> None:
    program = compile_selector(text)
    device = bind_device(DRIVER, DEVICE)
    assert program.matches(device) is by_hand(device) is True
    assert make_celpy(plain_text)()
    assert make_cel_expr(plain_text)()
    matches = program.matches
    empty = measure(lambda: None, 200_000)
    ours = measure(lambda: matches(device), 200_000) - empty
    hand = measure(lambda: by_hand(device), 200_000) - empty
    bound = measure(lambda: matches(bind_device(DRIVER, DEVICE)), 20_000)
    python = measure(make_celpy(plain_text), 200)
    native = measure(make_cel_expr(plain_text), 5_000)
    exact = measure(lambda: program.run_exact(device), 5_000)
    print(f"{name}\n  {text}")
    print(f"  dray                              {ours:10.0f} ns")
    print(f"  (a) written by hand               {hand:10.0f} ns   dray takes {ours / hand:.2f} times as long (goal: 3)")
    print(f"  dray, device bound each time      {bound:10.0f} ns")
    for library, found, goal in (("(b) cel-python", python, 50), ("(c) cel-expr-python", native, 5)):
        print(
            f"  {library + ', bound each time':36s}{found:8.0f} ns   dray is {found / bound:.1f} times faster "
            f"if it binds each time as well (goal: {goal}), {found / ours:.0f} times if not"
        )
    print(f"  dray, exact path                  {exact:10.0f} ns")


def show_compilation() -> None:
    compile_selector(MODEL_SELECTOR)
    texts = iter([MODEL_SELECTOR.replace("A100", f"B{index}") for index in range(1000)])
    each = measure(lambda: compile_selector(next(texts)), 300) / 1e6
    print(f"compiling a new selector, text to code: {each:.2f} ms (goal: 1.5)")


def show_constraint() -> None:
    program = compile_constraint(RING)
    devices = [
        bind_device("mla.example.com", Device(attributes={"deviceid": DeviceAttribute(int_value=index)}))
        for index in range(4)
    ]
    assert program.matches(devices)
    print(f"ring of 4 (KEP-5254): {measure(lambda: program.matches(devices), 20_000):.0f} ns per set")


def show_limit() -> None:
    numbers = "[1,2,3,4,5,6,7,8,9,10]"
    text = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, {numbers}.all(d, {numbers}.all(e, a+b+c+d+e > 0)))))"
    program: Program = compile_selector(text)
    start = time.perf_counter()
    outcome = program.run_exact(bind_device(DRIVER, DEVICE))
    print(f"exact path up to the cost limit ({outcome.cost:,}): {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}, cel-python, cel-expr-python")
    show("driver", DRIVER_SELECTOR, DRIVER_SELECTOR, is_ours)
    show("model and memory", MODEL_SELECTOR, MODEL_PLAIN, has_model_and_memory)
    show_compilation()
    show_constraint()
    show_limit()
