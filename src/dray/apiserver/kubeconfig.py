"""Writes kubeconfig files, so that kubectl and every client library find the server and prove who they are."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from dray.apiserver.private_files import write_private


def format_kubeconfig(*, server: str, authority: bytes, user: str, token: str, cluster: str = "dray") -> bytes:
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster,
                "cluster": {
                    "server": server,
                    "certificate-authority-data": base64.b64encode(authority).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
        "current-context": cluster,
    }
    return yaml.safe_dump(content, sort_keys=False).encode()


def write_kubeconfig(path: Path, *, server: str, authority: bytes, user: str, token: str) -> None:
    """For the owner's eyes only: it holds a token."""
    write_private(path, format_kubeconfig(server=server, authority=authority, user=user, token=token))
