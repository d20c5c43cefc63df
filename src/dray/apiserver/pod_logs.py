"""The subresource pods/log: finds the container that is meant and asks whoever has its log.

The API server keeps no logs. A `LogSource` gets them: of nodes in the same process directly, of others through the
port that their agents serve.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Protocol

from dray.api.errors import BadRequest, NotFound
from dray.api.meta import Json
from dray.apiserver.options import read_int
from dray.apiserver.registry import Registry
from dray.apiserver.requests import Query
from dray.apiserver.responses import ApiResponse
from dray.apiserver.targets import Target

DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which log, and how much of it."""

    node: str
    pod_namespace: str
    pod_name: str
    pod_uid: str
    container: str
    follow: bool = False
    previous: bool = False
    """Of the attempt before the last restart."""
    tail_lines: int | None = None
    limit_bytes: int | None = None


class LogSource(Protocol):
    def read(self, request: LogRequest) -> AsyncIterator[bytes]:
        """An async generator of what the container wrote.

        Raises StatusError before the first piece, which comes at once and may be empty.
        """
        ...


class NoLogs:
    """For a server that no node agent is known to."""

    async def read(self, request: LogRequest) -> AsyncIterator[bytes]:
        raise BadRequest(f"the logs of node {request.node} can't be reached from this server")
        yield b""  # makes this an async generator


async def serve_log(registry: Registry, target: Target, query: Query, source: LogSource) -> ApiResponse:
    pod = (await registry.get(Target(target.row, target.version, target.namespace, target.name))).obj
    pieces: Any = source.read(_read_request(pod, target, query))
    first = await anext(pieces, b"")  # so that what can't be had is an error, not a broken stream

    async def body() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            if first:
                yield first
            async for piece in pieces:
                yield piece

    return ApiResponse(200, body(), content_type="text/plain")


def _read_request(pod: Json, target: Target, query: Query) -> LogRequest:
    if query.flag("timestamps"):
        raise BadRequest("timestamps of log lines are not kept")
    tail, limit = read_int(query, "tailLines"), read_int(query, "limitBytes")
    if tail is not None and tail < 0:
        raise BadRequest("tailLines: must be greater than or equal to 0")
    if limit is not None and limit < 1:
        raise BadRequest("limitBytes: must be greater than 0")
    container = _find_container(pod, query.text("container"))
    node = pod["spec"].get("nodeName", "")
    if not node:
        raise BadRequest(f"pod {target.name} does not have a host assigned")
    previous = query.flag("previous")
    _check_started(pod, container, previous=previous)
    return LogRequest(
        node=node,
        pod_namespace=target.namespace,
        pod_name=target.name,
        pod_uid=pod["metadata"]["uid"],
        container=container,
        follow=query.flag("follow"),
        previous=previous,
        tail_lines=tail,
        limit_bytes=limit,
    )


def _find_container(pod: Json, wanted: str) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    main = [container["name"] for container in spec.get("containers") or ()]
    init = [container["name"] for container in spec.get("initContainers") or ()]
    if wanted:
        if wanted not in (*main, *init):
            raise BadRequest(f"container {wanted} is not valid for pod {name}")
        return wanted
    default = (pod["metadata"].get("annotations") or {}).get(DEFAULT_CONTAINER, "")
    if default in main:
        return str(default)
    if len(main) == 1:
        return str(main[0])
    choices = f"choose one of: [{' '.join(main)}]"
    if init:
        choices += f" or one of the init containers: [{' '.join(init)}]"
    raise BadRequest(f"a container name must be specified for pod {name}, {choices}")


def _check_started(pod: Json, container: str, *, previous: bool) -> None:
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    known = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    found = next((item for item in known if item["name"] == container), None)
    if found is None:
        raise BadRequest(f'container "{container}" in pod "{name}" is not available')
    if previous and not (found.get("lastState") or {}).get("terminated"):
        raise NotFound(f'previous terminated container "{container}" in pod "{name}" not found', details={})
    waiting = (found.get("state") or {}).get("waiting")
    if waiting is not None and not found.get("restartCount") and not (found.get("lastState") or {}).get("terminated"):
        reason = waiting.get("reason") or "ContainerCreating"
        raise BadRequest(f'container "{container}" in pod "{name}" is waiting to start: {reason}')
