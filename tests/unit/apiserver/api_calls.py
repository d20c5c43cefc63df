"""Requests to the API without HTTP."""

from __future__ import annotations

import json
from typing import Any

from dray.api.errors import StatusError
from dray.api.meta import Json
from dray.apiserver.dispatch import Api
from dray.apiserver.registry import Registry
from dray.apiserver.requests import ApiRequest, Query, parse_request
from dray.apiserver.responses import ApiResponse, error_response
from dray.apiserver.users import ADMIN, UserInfo
from dray.runtime.clock import Clock
from dray.store.memory import MemoryStore

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"


class Answer:
    def __init__(self, response: ApiResponse, body: bytes) -> None:
        self.status = response.status
        self.content_type = response.content_type
        self.warnings = [value for name, value in response.headers if name == "Warning"]
        self.body = body

    @property
    def json(self) -> Json:
        decoded: Json = json.loads(self.body)
        return decoded

    @property
    def message(self) -> str:
        return str(self.json["message"])

    @property
    def events(self) -> list[Json]:
        return [json.loads(line) for line in self.body.splitlines()]


class Caller:
    """Talks to an API of its own."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def ask(self, method: str, path: str, body: Any = None, *, user: UserInfo = ADMIN, **headers: str) -> Answer:
        plain, _, text = path.partition("?")
        query = Query(text)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        request = ApiRequest(method, parse_request(method, plain, query), query, user, names, data)
        try:
            response = await self.api.handle(request)
        except StatusError as error:
            response = error_response(error)
        content = response.body
        if not isinstance(content, bytes):
            content = b"".join([chunk async for chunk in content])
        return Answer(response, content)

    async def create(self, path: str, body: Json) -> Json:
        answer = await self.ask("POST", path, body)
        assert answer.status == 201, answer.body
        return answer.json

    async def get(self, path: str) -> Json:
        answer = await self.ask("GET", path)
        assert answer.status == 200, answer.body
        return answer.json


async def start_api(clock: Clock | None = None) -> Caller:
    api = Api(Registry(MemoryStore(), clock=clock))
    await api.bootstrap()
    return Caller(api)


def make_claim(name: str, **metadata: Any) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
    }


def make_config_map(name: str, **metadata: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def make_pod(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }
