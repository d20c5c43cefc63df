"""Every namespace has a `default` ServiceAccount and the ConfigMap with the cluster's root certificate."""

from __future__ import annotations

from dray.api.errors import AlreadyExists, Forbidden, NotFound
from dray.api.meta import Json, ObjectKey
from dray.api.resources import CONFIG_MAPS, SERVICE_ACCOUNTS
from dray.runtime.client import Client
from dray.runtime.informer import Informer
from dray.runtime.queue import WorkQueue

ROOT_CA_NAME = "kube-root-ca.crt"


class ServiceAccountController:
    def __init__(
        self,
        client: Client,
        namespaces: Informer[Json],
        accounts: Informer[Json],
        config_maps: Informer[Json],
        queue: WorkQueue[ObjectKey],
        *,
        root_ca: str,
    ) -> None:
        self._client = client
        self._namespaces = namespaces
        self._accounts = accounts
        self._config_maps = config_maps
        self._root_ca = root_ca

        def namespace_changed(old: Json | None, new: Json | None) -> None:
            if new is not None:
                queue.add(ObjectKey("", new["metadata"]["name"]))

        def content_changed(old: Json | None, new: Json | None) -> None:
            metadata = (new or old or {})["metadata"]
            if metadata["name"] in ("default", ROOT_CA_NAME):
                queue.add(ObjectKey("", metadata["namespace"]))

        namespaces.add_handler(namespace_changed)
        accounts.add_handler(content_changed)
        config_maps.add_handler(content_changed)

    async def reconcile(self, key: ObjectKey) -> float | None:
        namespace = self._namespaces.get(key)
        if namespace is None or "deletionTimestamp" in namespace["metadata"]:
            return None
        try:
            await self._ensure_account(key.name)
            await self._ensure_root_ca(key.name)
        except (NotFound, Forbidden):  # the namespace went away in between
            return None
        return None

    async def _ensure_account(self, namespace: str) -> None:
        if self._accounts.get(ObjectKey(namespace, "default")) is not None:
            return
        account: Json = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        try:
            await self._client.create(SERVICE_ACCOUNTS, account, namespace)
        except AlreadyExists:
            return

    async def _ensure_root_ca(self, namespace: str) -> None:
        data = {"ca.crt": self._root_ca}
        existing = self._config_maps.get(ObjectKey(namespace, ROOT_CA_NAME))
        if existing is None:
            config_map: Json = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": ROOT_CA_NAME},
                "data": data,
            }
            try:
                await self._client.create(CONFIG_MAPS, config_map, namespace)
            except AlreadyExists:
                return
        elif existing.get("data") != data:
            await self._client.patch(CONFIG_MAPS, ROOT_CA_NAME, {"data": data}, namespace)
