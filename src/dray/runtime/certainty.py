"""Writes whose outcome must be known.

An answer that got lost says nothing: the write may have happened, or may still happen. So it is sent again as it was,
with the same resourceVersion as precondition. Of all copies at most one can take effect: if one is answered with
success, that was it; if with a conflict, the object has changed, none can take effect any more, and a look shows
whether one did.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from dray.api.errors import Conflict, StatusError
from dray.api.meta import Json
from dray.api.resources import Resource
from dray.runtime.client import Client
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 10.0


def is_doubtful(error: Exception) -> bool:
    """Whether a failed request may have been carried out all the same."""
    return not isinstance(error, StatusError) or error.code >= 500


async def patch_surely(
    client: Client,
    clock: Clock,
    resource: Resource,
    name: str,
    patch: Json,
    namespace: str,
    *,
    subresource: str = "",
    is_done: Callable[[Json], bool],
) -> Json:
    """A merge patch with a resourceVersion in it. Returns, or raises StatusError, when it is certain what happened.

    `is_done` tells by an object whether the patch is in it. While the server is away this waits.
    """
    delay = FIRST_DELAY
    in_doubt = False
    while True:
        try:
            return await client.patch(resource, name, patch, namespace, subresource=subresource)
        except (StatusError, OSError) as error:
            if not is_doubtful(error):
                if not in_doubt or not isinstance(error, Conflict):
                    raise
                current = await get_surely(client, clock, resource, name, namespace)
                if not is_done(current):
                    raise
                return current
            in_doubt = True
            log.info("%s %s/%s: was it written? %s", resource.plural, namespace, name, error)
        await clock.sleep(delay)
        delay = min(delay * 2, LONGEST_DELAY)


async def get_surely(client: Client, clock: Clock, resource: Resource, name: str, namespace: str) -> Json:
    """Raises StatusError only if the server says so: NotFound, Forbidden and the like."""
    delay = FIRST_DELAY
    while True:
        try:
            return await client.get(resource, name, namespace)
        except (StatusError, OSError) as error:
            if not is_doubtful(error):
                raise
            log.info("%s %s/%s: %s", resource.plural, namespace, name, error)
        await clock.sleep(delay)
        delay = min(delay * 2, LONGEST_DELAY)
