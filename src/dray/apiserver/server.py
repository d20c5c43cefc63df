"""One API server: store, certificates, tokens, registry and HTTPS, wired together."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dray.api.features import ALL_GATES, FeatureGates
from dray.apiserver.authentication import Authenticator
from dray.apiserver.authorization import AccessControl
from dray.apiserver.certificates import LOCAL_NAMES, SERVICE_NAMES, CertificateAuthority, server_context
from dray.apiserver.dispatch import Api
from dray.apiserver.gateway import Gateway
from dray.apiserver.health import Health
from dray.apiserver.http_protocol import ConnectionLimits
from dray.apiserver.kubeconfig import write_kubeconfig
from dray.apiserver.metrics import Metrics
from dray.apiserver.node_logs import NodeLogProxy
from dray.apiserver.overload import RequestLimits
from dray.apiserver.pod_logs import LogSource
from dray.apiserver.registry import Registry
from dray.apiserver.service_accounts import TokenIssuer
from dray.apiserver.serving import HttpsServer
from dray.apiserver.tokens import ADMIN_USER, CONTROLLERS_USER, MASTERS, NODE_PREFIX, SCHEDULER_USER, TokenFile
from dray.runtime.clock import Clock, SystemClock
from dray.runtime.files import remove_leftovers
from dray.store.local import LocalStore
from dray.store.memory import MemoryStore
from dray.store.sqlite import SqliteStore

DEFAULT_PORT: Final = 6443
TOKEN_FILE: Final = "tokens.csv"
ADMIN_KUBECONFIG: Final = "admin.kubeconfig"
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
_log: Final = logging.getLogger("dray.apiserver")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    data_dir: Path
    """Holds the store, the certificates, the tokens and kubeconfig files."""
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0: any free one."""
    names: tuple[str, ...] = ()
    """More names and addresses under which clients reach the server."""
    memory: bool = False
    """Keep objects in memory only. Certificates and tokens are still kept in `data_dir`."""
    gates: FeatureGates = ALL_GATES
    requests: RequestLimits = field(default_factory=RequestLimits)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    shutdown_seconds: float = 10.0


class ApiServer:
    """Made with `open`, then `start` and, always, `stop`."""

    def __init__(self, options: ServerOptions, store: LocalStore, clock: Clock) -> None:
        pki = options.data_dir / "pki"
        self.options = options
        self.store = store
        self.tokens = TokenFile(options.data_dir / TOKEN_FILE)
        self.authority = CertificateAuthority.load_or_create(pki, clock.now)
        self.authority.serving_pair(pki, [*LOCAL_NAMES, *SERVICE_NAMES, *_certifiable(options.host), *options.names])
        issuer = TokenIssuer.load_or_create(pki / "service-accounts.key", lambda: clock.now().timestamp())
        self.access = AccessControl(store)
        self.registry = Registry(
            store,
            clock=clock,
            gates=options.gates,
            authorize=self.access,
            root_certificate=self.authority.pem.decode(),
        )
        authenticator = Authenticator(store, self.tokens, issuer)
        self._api = Api(
            self.registry, access=self.access, token_issuer=issuer, authenticate_token=authenticator.authenticate_token
        )
        self._api.logs = NodeLogProxy(self.registry, self.authority)
        self.metrics = Metrics()
        self._gateway = Gateway(
            self._api.handle,
            authenticator=authenticator,
            authorize=self.access,
            health=Health(
                live={"ping": lambda: True, "access-control": lambda: self.access.is_following},
                ready={"store": lambda: store.is_open, "shutdown": lambda: not self._gateway.is_stopping},
            ),
            metrics=self.metrics,
            limits=options.requests,
        )
        self._https = HttpsServer(self._gateway, server_context(pki, self.authority), options.connections)
        self._port = 0
        self.metrics.add_gauge("apiserver_storage_objects", "Objects in the store.", lambda: store.size)
        self.metrics.add_gauge("apiserver_storage_watchers", "Watches on the store.", lambda: store.watchers)
        self.metrics.add_gauge("apiserver_connections", "Open connections.", lambda: self._https.connections)

    @classmethod
    async def open(cls, options: ServerOptions, clock: Clock | None = None) -> ApiServer:
        """Raises StoreUnusable, BadCertificate or BadTokenFile; their texts say what to do."""
        clock = clock or SystemClock()
        options.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        store: LocalStore
        if options.memory:
            store = MemoryStore(clock=clock.monotonic)
        else:
            store = await SqliteStore.open(options.data_dir / "dray.db", clock=clock.monotonic)
        try:
            if not options.memory:  # who holds the file is alone here
                _sweep(options.data_dir)
            return cls(options, store, clock)
        except BaseException:
            await store.close()
            raise

    @property
    def logs(self) -> LogSource:
        """Where the logs of containers come from: the nodes' agents, unless someone knows a shorter way."""
        return self._api.logs

    @logs.setter
    def logs(self, source: LogSource) -> None:
        self._api.logs = source

    async def start(self) -> None:
        """Makes what a cluster starts with, then listens. Raises CannotListen."""
        try:
            await self._api.bootstrap()
            await self.access.start()
            self._port = await self._https.start(self.options.host, self.options.port)
        except BaseException:
            await self.stop()
            raise
        _log.info("listening on %s", self.address)

    async def stop(self) -> None:
        """Finishes requests, ends watches, closes the store."""
        await self._https.stop(end_streams=self._gateway.end_streams, seconds=self.options.shutdown_seconds)
        await self.access.stop()
        await self.store.close()

    @property
    def address(self) -> str:
        """Where clients on this machine find the server."""
        host = self.options.host
        host = _WILDCARDS.get(host, f"[{host}]" if ":" in host else host)
        return f"https://{host}:{self._port}"

    def write_kubeconfigs(self, nodes: tuple[str, ...] = ()) -> Path:
        """For the administrator (whose file's path is returned), the components, and these nodes."""
        folder = self.options.data_dir
        self._write(folder / ADMIN_KUBECONFIG, ADMIN_USER, self.tokens.ensure(ADMIN_USER, (MASTERS,)))
        for name, user in (("scheduler", SCHEDULER_USER), ("controllers", CONTROLLERS_USER)):
            self._write(folder / "kubeconfigs" / f"{name}.kubeconfig", user, self.tokens.ensure(user))
        for node, token in self.tokens.ensure_nodes(nodes).items():
            self._write(folder / "kubeconfigs" / f"node-{node}.kubeconfig", NODE_PREFIX + node, token)
        return folder / ADMIN_KUBECONFIG

    def _write(self, path: Path, user: str, token: str) -> None:
        write_kubeconfig(path, server=self.address, authority=self.authority.pem, user=user, token=token)


def _sweep(data_dir: Path) -> None:
    """Keys and tokens must not lie about for ever because a server was killed while it wrote them."""
    for folder, name in (("", TOKEN_FILE), ("", ADMIN_KUBECONFIG), ("pki", "*"), ("kubeconfigs", "*")):
        remove_leftovers(data_dir / folder, name)


def _certifiable(host: str) -> list[str]:
    return [] if host in _WILDCARDS else [host]
