"""Kubeconfig files, and the service account of a pod: where the cluster is and how to log in.

Several files may be given (`KUBECONFIG=a:b`). They are laid over each other as kubectl does it: of clusters, users and
contexts with the same name the first counts, and so does the first current context.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from dray.api.meta import Json
from dray.runtime.access import BadAccess, ClusterAccess
from dray.runtime.credentials import Anonymous, Credentials, KeyPair, Password, StaticToken, TokenFile
from dray.runtime.exec_credentials import VERSIONS, ExecCredentials, ExecPlugin

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NO_CLUSTER: Final = (
    "no cluster given: use --kubeconfig FILE, set KUBECONFIG, or run inside a pod with a service account"
)
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def find_access(
    kubeconfig: Path | None = None, context: str = "", environ: Mapping[str, str] = os.environ
) -> ClusterAccess:
    """The cluster that is meant: the given file, else $KUBECONFIG, else ~/.kube/config, else the pod's own.

    Raises BadAccess.
    """
    if kubeconfig is not None:
        return load_kubeconfig([kubeconfig.expanduser()], context, environ)
    if named := [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]:
        present = [path for path in named if path.exists()]
        if not present:
            raise BadAccess(f"KUBECONFIG names {', '.join(map(str, named))}, which isn't there")
        return load_kubeconfig(present, context, environ)
    home = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    if home.exists():
        return load_kubeconfig([home], context, environ)
    if "KUBERNETES_SERVICE_HOST" in environ:
        return load_service_account(environ)
    raise BadAccess(NO_CLUSTER)


def load_service_account(environ: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> ClusterAccess:
    """The cluster that this process runs in as a pod. Raises BadAccess."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise BadAccess(NO_CLUSTER)
    try:
        authority = (folder / "ca.crt").read_bytes()
        namespace = (folder / "namespace").read_text().strip() if (folder / "namespace").exists() else "default"
    except OSError as error:
        raise BadAccess(f"service account of the pod: {error}") from None
    return ClusterAccess(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace,
        authority=authority,
        credentials=TokenFile(folder / "token"),
    )


class _Entry(NamedTuple):
    """A named part of a file; paths in it are relative to the file's folder."""

    content: Json
    file: Path


class _Merged(NamedTuple):
    clusters: dict[str, _Entry]
    users: dict[str, _Entry]
    contexts: dict[str, _Entry]
    current: str
    files: str


def load_kubeconfig(paths: list[Path], context: str = "", environ: Mapping[str, str] = os.environ) -> ClusterAccess:
    """Raises BadAccess."""
    merged = _merge(paths)
    name = context or merged.current
    if not name:
        raise BadAccess(f"{merged.files}: there is no current-context; contexts: {_names(merged.contexts)}")
    chosen = _pick(merged.contexts, "context", name, merged.files)
    cluster = _pick(merged.clusters, "cluster", str(chosen.content.get("cluster", "")), merged.files)
    user_name = str(chosen.content.get("user") or "")
    user = _pick(merged.users, "user", user_name, merged.files) if user_name else _Entry({}, cluster.file)
    return _make_access(cluster, user, str(chosen.content.get("namespace") or "default"), environ)


def _merge(paths: list[Path]) -> _Merged:
    merged = _Merged({}, {}, {}, "", ", ".join(map(str, paths)))
    for path in paths:
        config = _read(path)
        for plural, singular, known in (
            ("clusters", "cluster", merged.clusters),
            ("users", "user", merged.users),
            ("contexts", "context", merged.contexts),
        ):
            for item in config.get(plural) or ():
                if not isinstance(item, dict) or not isinstance(item.get(singular) or {}, dict):
                    raise BadAccess(f"{path}: {plural}: expected entries with a name and a {singular}")
                known.setdefault(str(item.get("name", "")), _Entry(item.get(singular) or {}, path))
        if not merged.current:
            merged = merged._replace(current=str(config.get("current-context") or ""))
    return merged


def _read(path: Path) -> Json:
    try:
        config: Any = yaml.load(path.read_bytes(), _LOADER)
    except OSError as error:
        raise BadAccess(f"{path}: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadAccess(f"{path} is not a kubeconfig file: {error}") from None
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise BadAccess(f"{path} is not a kubeconfig file")
    return config


def _pick(entries: dict[str, _Entry], kind: str, name: str, files: str) -> _Entry:
    if name not in entries:
        raise BadAccess(f"{files}: there is no {kind} {name!r}; there are: {_names(entries)}")
    return entries[name]


def _names(entries: dict[str, _Entry]) -> str:
    return ", ".join(entries) or "none"


def _make_access(cluster: _Entry, user: _Entry, namespace: str, environ: Mapping[str, str]) -> ClusterAccess:
    server = str(cluster.content.get("server") or "")
    if not server.startswith(("https://", "http://")):
        raise BadAccess(f"{cluster.file}: server: expected https://HOST:PORT, got {server!r}")
    if cluster.content.get("proxy-url"):
        raise BadAccess(f"{cluster.file}: proxy-url isn't supported")
    authority = _data(cluster, "certificate-authority")
    certificate, key = _data(user, "client-certificate"), _data(user, "client-key")
    if (certificate is None) != (key is None):
        raise BadAccess(f"{user.file}: a client certificate and a client key go together; one of them is missing")
    return ClusterAccess(
        server=server.rstrip("/"),
        namespace=namespace,
        authority=authority,
        server_name=str(cluster.content.get("tls-server-name") or ""),
        verify=cluster.content.get("insecure-skip-tls-verify") is not True,
        key_pair=KeyPair(certificate, key) if certificate is not None and key is not None else None,
        credentials=_credentials(cluster, user, authority, environ),
        impersonate=tuple(_impersonation(user)),
    )


def _data(entry: _Entry, name: str) -> bytes | None:
    """The content of `NAME-data`, else that of the file that `NAME` names."""
    if encoded := entry.content.get(f"{name}-data"):
        try:
            return base64.b64decode(str(encoded), validate=True)
        except binascii.Error as error:
            raise BadAccess(f"{entry.file}: {name}-data: {error}") from None
    if path := entry.content.get(name):
        try:
            return _resolve(entry, str(path)).read_bytes()
        except OSError as error:
            raise BadAccess(f"{entry.file}: {name}: {path}: {error.strerror or error}") from None
    return None


def _resolve(entry: _Entry, path: str) -> Path:
    return entry.file.parent / Path(path).expanduser()


def _credentials(cluster: _Entry, user: _Entry, authority: bytes | None, environ: Mapping[str, str]) -> Credentials:
    content = user.content
    if path := content.get("tokenFile"):
        return TokenFile(_resolve(user, str(path)))
    if token := content.get("token"):
        return StaticToken(str(token))
    if name := content.get("username"):
        return Password(str(name), str(content.get("password") or ""))
    if isinstance(plugin := content.get("exec"), dict):
        return ExecCredentials(_read_plugin(cluster, user, plugin, authority), environ)
    if provider := content.get("auth-provider"):
        known = provider.get("name") if isinstance(provider, dict) else provider
        raise BadAccess(f"{user.file}: auth-provider {known!r} isn't supported any more; use an exec plugin")
    return Anonymous()


def _read_plugin(cluster: _Entry, user: _Entry, plugin: Json, authority: bytes | None) -> ExecPlugin:
    version = str(plugin.get("apiVersion") or "")
    if version not in VERSIONS:
        raise BadAccess(f"{user.file}: exec: apiVersion {version!r} isn't supported; use {' or '.join(VERSIONS)}")
    if plugin.get("interactiveMode") == "Always":
        raise BadAccess(f"{user.file}: exec: {plugin.get('command')} wants to talk to a person (interactiveMode)")
    command = str(plugin.get("command") or "")
    if not command:
        raise BadAccess(f"{user.file}: exec: command is missing")
    if "/" in command:
        command = str(_resolve(user, command))
    told: Json | None = None
    if plugin.get("provideClusterInfo"):
        told = {"server": cluster.content["server"]}
        if authority is not None:
            told["certificate-authority-data"] = base64.b64encode(authority).decode()
        for name in ("tls-server-name", "insecure-skip-tls-verify"):
            if cluster.content.get(name):
                told[name] = cluster.content[name]
        for extension in cluster.content.get("extensions") or ():
            if extension.get("name") == "client.authentication.k8s.io/exec":
                told["config"] = extension.get("extension")
    return ExecPlugin(
        command=command,
        arguments=tuple(map(str, plugin.get("args") or ())),
        environment=tuple((str(item["name"]), str(item.get("value", ""))) for item in plugin.get("env") or ()),
        api_version=version,
        install_hint=str(plugin.get("installHint") or ""),
        cluster=told,
    )


def _impersonation(user: _Entry) -> list[tuple[str, str]]:
    content = user.content
    headers: list[tuple[str, str]] = []
    if name := content.get("as"):
        headers.append(("Impersonate-User", str(name)))
    if uid := content.get("as-uid"):
        headers.append(("Impersonate-Uid", str(uid)))
    headers += [("Impersonate-Group", str(group)) for group in content.get("as-groups") or ()]
    for key, values in (content.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{key}", str(value)) for value in values or ()]
    return headers
