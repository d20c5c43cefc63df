"""Writes whose outcome must be known.

An answer that got lost says nothing: the write may have happened, or may still happen. So it is sent again as it was,
with the same resourceVersion as precondition. Of all copies at most one can take effect: if one is answered with
success, that was it; if with a conflict, the object has changed, none can take effect any more, and a look shows
whether one did. A server that is too busy to look at a copy says nothing about the others.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from dray.api.errors import Conflict, StatusError, TooManyRequests
from dray.api.meta import Json
from dray.api.resources import Resource
from dray.runtime.client import Client, PatchStep
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 10.0


def is_doubtful(error: Exception) -> bool:
    """Whether a failed request may have been carried out all the same."""
    return not isinstance(error, StatusError) or error.code >= 500


def _is_unread(error: Exception) -> bool:
    """Whether the server sent the request away before it looked at what is asked for."""
    return isinstance(error, StatusError) and error.code in (401, 429)


class SureStep(NamedTuple):
    step: PatchStep
    is_done: Callable[[Json], bool]
    """Tells by an object whether this step, and those before it, are in it."""


async def patch_surely(
    client: Client,
    clock: Clock,
    resource: Resource,
    name: str,
    steps: Sequence[SureStep],
    namespace: str,
    *,
    halfway: Callable[[Json], None],
) -> Json:
    """Steps whose first patch has a resourceVersion. Returns, or raises StatusError, when it is certain what happened.

    `halfway` is told of every write but the last. While the server is away this waits.
    """
    writes = [steps] if client.joins_steps else [(step,) for step in steps]
    written: Json = {}
    for part in writes:
        patches = [step.step for step in part]
        if written:
            halfway(written)
            metadata = written["metadata"]
            patches[0] = patches[0].provided(metadata["uid"], metadata["resourceVersion"])
        what = f"{resource.plural} {namespace}/{name}"
        send = partial(client.patch_steps, resource, name, patches, namespace)
        look = partial(get_surely, client, clock, resource, name, namespace)
        written = await write_surely(clock, what, send, look, part[-1].is_done)
    return written


async def write_surely(
    clock: Clock,
    what: str,
    send: Callable[[], Awaitable[Json]],
    look: Callable[[], Awaitable[Json]],
    is_done: Callable[[Json], bool],
) -> Json:
    """The answer to `send`, of which at most one copy can take effect; or what `look` finds, if one did unanswered.

    Raises StatusError when it is certain that nothing happens any more.
    """
    delay = FIRST_DELAY
    in_doubt = False
    while True:
        try:
            return await send()
        except (StatusError, OSError) as error:
            if not is_doubtful(error) and not (in_doubt and _is_unread(error)):
                if not in_doubt or not isinstance(error, Conflict):
                    raise
                current = await look()
                if not is_done(current):
                    raise
                return current
            in_doubt = True
            log.info("%s: was it written? %s", what, error)
        await clock.sleep(delay)
        delay = min(delay * 2, LONGEST_DELAY)


async def get_surely(client: Client, clock: Clock, resource: Resource, name: str, namespace: str) -> Json:
    """Raises StatusError only if the server says so: NotFound, Forbidden and the like."""
    delay = FIRST_DELAY
    while True:
        try:
            return await client.get(resource, name, namespace)
        except (StatusError, OSError) as error:
            if not is_doubtful(error) and not isinstance(error, TooManyRequests):
                raise
            log.info("%s %s/%s: %s", resource.plural, namespace, name, error)
        await clock.sleep(delay)
        delay = min(delay * 2, LONGEST_DELAY)
