"""Deep trees: expressions may nest deeper than Python's default recursion limit allows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

DEEP_LIMIT: Final = 50_000
"""Python frames live on the heap, so this is bounded by the depth of the tree, which the parser bounds."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def with_deep_stack(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Calls a function that can be called again; if it runs out of stack, once more with a larger one."""
    try:
        return function(*args, **kwargs)
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, DEEP_LIMIT))
        try:
            return function(*args, **kwargs)
        finally:
            sys.setrecursionlimit(limit)
