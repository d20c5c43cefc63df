"""User stories that can be played: a directory with manifests and a file `story.toml` that says what to do with them.

    title = "Partial GPU allocation"
    source = "KEP-4381"
    model = "acme"                       # or a file beside it
    nodes = 2
    drivers = ["../../drivers/acme.py:AcmeGpus"]
    environment = {HOST_ROOT = "host"}   # for the drivers; paths beside the file

    [[steps]]
    say = "A user asks for a part with more than 2 GiB."
    apply = "pod.yaml"
    wait = {pod = "device-consumer", phase = "Running"}

    [[steps]]
    say = "Its containers find the device in their environment."
    log = {pod = "device-consumer", container = "workload", has = "DRA_GPU_REQUEST_0=.*part-2"}

The same file drives `dray demo` and the tests.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec
import yaml

from dray.api.errors import NotFound
from dray.api.kinds import KINDS
from dray.api.meta import RESOURCE_GROUP, Json
from dray.api.resources import (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    PODS,
    RESOURCE_CLAIMS,
    Resource,
)
from dray.apiserver.pod_logs import LogRequest
from dray.cluster.inventories import find_model
from dray.cluster.local import ClusterOptions, LocalCluster, MakeDriver
from dray.driver.base import Driver
from dray.runtime.client import Client, PatchType

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
STORY_FILE = "story.toml"
WAIT_SECONDS = 30.0
LOOK_INTERVAL = 0.05
NAMESPACE = "default"


class BadStory(Exception):
    """A story can't be played; the text says which and why."""


class StoryFailed(Exception):
    """A step did not end as the story says."""


class PodWait(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pod: str
    phase: str


class LogCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pod: str
    has: str
    """A regular expression that some of the log matches."""
    container: str = ""


class EventCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: str
    has: str


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Done in the order of the fields."""

    say: str
    apply: str = ""
    wait: PodWait | None = None
    log: LogCheck | None = None
    event: EventCheck | None = None
    devices: str = ""
    """The claim of this pod has devices whose names, joined by commas, match this."""
    pod: str = ""
    delete: str = ""


class Story(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    source: str
    steps: tuple[Step, ...]
    model: str = "acme"
    nodes: int = 1
    drivers: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    directory: str = ""


class Teller(Protocol):
    """Tells the story while it is played."""

    def say(self, text: str) -> None: ...
    def show_file(self, path: Path) -> None: ...
    def show_log(self, text: str) -> None: ...
    def show_event(self, text: str) -> None: ...
    async def show_cluster(self, client: Client) -> None: ...


def load_story(directory: Path) -> Story:
    """Raises BadStory."""
    try:
        content = tomllib.loads((directory / STORY_FILE).read_text())
        return msgspec.convert({**content, "directory": str(directory)}, Story)
    except FileNotFoundError:
        raise BadStory(f"{directory}: there is no {STORY_FILE}") from None
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadStory(f"{directory / STORY_FILE}: {error}") from error


def story_options(story: Story, data_dir: Path, **more: Any) -> ClusterOptions:
    """A cluster for the story. Raises BadStory, BadModel."""
    directory = Path(story.directory)
    beside = directory / story.model
    model = find_model(str(beside) if beside.is_file() else story.model)
    drivers = dict(_load_driver(directory, text) for text in story.drivers)
    return ClusterOptions(data_dir=data_dir, model=model, nodes=story.nodes, drivers=drivers, memory=True, **more)


@contextmanager
def story_environment(story: Story) -> Iterator[None]:
    """Set for drivers of this process while the block runs."""
    before = {name: os.environ.get(name) for name in story.environment}
    os.environ |= {name: str(Path(story.directory, path).resolve()) for name, path in story.environment.items()}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _load_driver(directory: Path, text: str) -> tuple[str, MakeDriver]:
    """`FILE:NAME`, with the file's path from the story's directory. NAME is a class of drivers, or a driver."""
    file, _, name = text.rpartition(":")
    path = (directory / file).resolve()
    spec = importlib.util.spec_from_file_location(f"dray_story_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BadStory(f"{directory}: no driver in {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    target = getattr(module, name, None)
    if isinstance(target, type) and issubclass(target, Driver):
        return target.name, lambda node, state: target()
    if not isinstance(target, Driver):
        raise BadStory(f"{directory}: {name} in {file} is no driver")
    return target.name, lambda node, state: target


async def play(story: Story, cluster: LocalCluster, teller: Teller) -> None:
    """All steps, in order. Raises StoryFailed."""
    player = _Player(story, cluster, teller)
    for step in story.steps:
        teller.say(step.say)
        await player.do(step)


class _Player:
    def __init__(self, story: Story, cluster: LocalCluster, teller: Teller) -> None:
        self._directory = Path(story.directory)
        self._cluster = cluster
        self._client = cluster.client
        self._teller = teller

    async def do(self, step: Step) -> None:
        if step.apply:
            self._teller.show_file(self._directory / step.apply)
            for obj in self._objects(step.apply):
                await self._client.patch(
                    _resource_of(obj),
                    obj["metadata"]["name"],
                    obj,
                    obj["metadata"].get("namespace", NAMESPACE),
                    patch_type=PatchType.APPLY,
                    field_manager="dray-story",
                    force=True,
                )
        if step.wait is not None:
            await self._wait_for_pod(step.wait)
        if step.log is not None:
            await self._check_log(step.log)
        if step.event is not None:
            await self._check_event(step.event)
        if step.devices:
            await self._check_devices(step.pod, step.devices)
        if step.delete:
            await self._delete(step.delete)
        await self._teller.show_cluster(self._client)

    def _objects(self, file: str) -> list[Json]:
        return [obj for obj in yaml.load_all((self._directory / file).read_text(), _LOADER) if obj]

    async def _wait_for_pod(self, wait: PodWait) -> None:
        async def reached() -> bool:
            pod = await self._client.get(PODS, wait.pod, NAMESPACE)
            return bool((pod.get("status") or {}).get("phase") == wait.phase)

        await _eventually(reached, f"pod {wait.pod} to be {wait.phase}")

    async def _check_log(self, check: LogCheck) -> None:
        text = ""

        async def written() -> bool:
            nonlocal text
            text = await self._read_log(check)
            return re.search(check.has, text) is not None

        await _eventually(written, f"the log of pod {check.pod} to have {check.has!r}")
        self._teller.show_log(text)

    async def _read_log(self, check: LogCheck) -> str:
        pod = await self._client.get(PODS, check.pod, NAMESPACE)
        request = LogRequest(
            node=pod["spec"].get("nodeName", ""),
            pod_namespace=NAMESPACE,
            pod_name=check.pod,
            pod_uid=pod["metadata"]["uid"],
            container=check.container or pod["spec"]["containers"][0]["name"],
        )
        with suppress(NotFound):
            return b"".join([piece async for piece in self._cluster.server.logs.read(request)]).decode()
        return ""

    async def _check_event(self, check: EventCheck) -> None:
        message = ""

        async def recorded() -> bool:
            nonlocal message
            events = await self._client.list(EVENTS, NAMESPACE)
            texts = [item["message"] for item in events["items"] if item["reason"] == check.reason]
            message = next((text for text in texts if re.search(check.has, text)), "")
            return bool(message)

        await _eventually(recorded, f"an event {check.reason} with {check.has!r}")
        self._teller.show_event(message)

    async def _check_devices(self, pod: str, pattern: str) -> None:
        obj = await self._client.get(PODS, pod, NAMESPACE)
        made = (obj.get("status") or {}).get("resourceClaimStatuses") or ()
        names = [item["resourceClaimName"] for item in made]
        names += [item["resourceClaimName"] for item in obj["spec"]["resourceClaims"] if "resourceClaimName" in item]
        devices: list[str] = []
        for name in names:
            claim = await self._client.get(RESOURCE_CLAIMS, name, NAMESPACE)
            devices += [result["device"] for result in claim["status"]["allocation"]["devices"]["results"]]
        if not re.fullmatch(pattern, ",".join(devices)):
            raise StoryFailed(f"pod {pod} has devices {', '.join(devices)}, expected {pattern}")

    async def _delete(self, file: str) -> None:
        objects = self._objects(file)
        for obj in reversed(objects):
            namespace = obj["metadata"].get("namespace", NAMESPACE)
            with suppress(NotFound):
                await self._client.delete(_resource_of(obj), obj["metadata"]["name"], namespace)

        async def gone() -> bool:
            pods = {obj["metadata"]["name"] for obj in objects if obj["kind"] == "Pod"}
            left = await self._client.list(PODS, NAMESPACE)
            claims = await self._client.list(RESOURCE_CLAIMS, NAMESPACE)
            return not any(item["metadata"]["name"] in pods for item in left["items"]) and not any(
                owner["name"] in pods
                for claim in claims["items"]
                for owner in claim["metadata"].get("ownerReferences") or ()
            )

        await _eventually(gone, "pods and their claims to be gone")


def _resource_of(obj: Json) -> Resource:
    api_version, kind = obj["apiVersion"], obj["kind"]
    group, _, version = api_version.rpartition("/")
    known = {"Pod": PODS, "Namespace": NAMESPACES, "ConfigMap": CONFIG_MAPS}
    if group == "" and kind in known:
        return known[kind]
    if group == RESOURCE_GROUP and (api_version, kind) in KINDS:
        plural = f"{kind.lower()}es" if kind.endswith("Class") else f"{kind.lower()}s"
        return Resource(group, version, plural, kind, kind in ("ResourceClaim", "ResourceClaimTemplate"))
    raise BadStory(f"stories have no {kind} of {api_version}")


async def _eventually(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """The cluster's parts can't tell a story's player: look again and again. Raises StoryFailed."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while not await condition():  # noqa: ASYNC110 - a condition of the whole cluster
                await asyncio.sleep(LOOK_INTERVAL)
    except TimeoutError:
        raise StoryFailed(f"waited {WAIT_SECONDS:g}s in vain for {what}") from None
