"""Who sends a request: a client certificate, a bearer token, or nobody in particular."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dray.api.errors import Unauthorized
from dray.api.meta import Json
from dray.apiserver.default_roles import ANONYMOUS
from dray.apiserver.service_accounts import TokenIssuer
from dray.apiserver.tokens import AUTHENTICATED, TokenFile
from dray.apiserver.users import UserInfo
from dray.store.interface import Store


class Authenticator:
    """Tries client certificate, then bearer token. Wrong credentials are refused; none at all is the anonymous user."""

    def __init__(self, store: Store, tokens: TokenFile, issuer: TokenIssuer) -> None:
        self._store = store
        self._tokens = tokens
        self._issuer = issuer

    async def authenticate(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> UserInfo:
        """Raises Unauthorized. `certificate` is the verified one of the connection, as `ssl` describes it."""
        if certificate and (user := user_of_certificate(certificate)) is not None:
            return user
        header = headers.get("authorization", "")
        if not header:
            return ANONYMOUS
        scheme, _, token = header.partition(" ")
        user = None
        if scheme.lower() == "bearer" and token.strip():
            user = await self.authenticate_token(token.strip())
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    async def authenticate_token(self, token: str) -> UserInfo | None:
        user = self._tokens.authenticate(token)
        if user is None and token.count(".") == 2:
            user = await self._issuer.authenticate(token, self._find_uid)
        return user

    async def _find_uid(self, resource: str, namespace: str, name: str) -> str | None:
        entry = await self._store.get(f"/registry/core/{resource}/{namespace}/{name}")
        if entry is None:
            return None
        obj: Json = msgspec.json.decode(entry.value)
        uid: str | None = obj["metadata"].get("uid")
        return uid


def user_of_certificate(certificate: Mapping[str, Any]) -> UserInfo | None:
    """The common name is the user, the organizations are the groups. Without a name it stands for nobody."""
    names: list[str] = []
    groups: list[str] = []
    for part in certificate.get("subject", ()):
        for attribute, value in part:
            if attribute == "commonName":
                names.append(value)
            elif attribute == "organizationName":
                groups.append(value)
    if not names:
        return None
    return UserInfo(names[0], groups=(*groups, AUTHENTICATED))
