"""Tokens of service accounts: signed, bound to an account and maybe to a pod and its node, valid for a while.

They are JSON web tokens (ES256) with Kubernetes' claims. An account that is deleted, or made again under the same
name, takes its tokens with it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from dray.api.meta import Json
from dray.apiserver.certificates import BadCertificate
from dray.apiserver.private_files import read_private, write_private
from dray.apiserver.rbac import SERVICE_ACCOUNT_PREFIX
from dray.apiserver.tokens import AUTHENTICATED
from dray.apiserver.users import UserInfo

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
_EXTRA: Final = "authentication.kubernetes.io/"
_ALGORITHM: Final = "ES256"
_SIZE: Final = 32
_MAX_CACHED: Final = 4096


class BoundObject(NamedTuple):
    name: str
    uid: str


class TokenSubject(NamedTuple):
    """What a token says about its holder."""

    namespace: str
    name: str
    uid: str
    pod: BoundObject | None = None
    node: BoundObject | None = None


UidLookup = Callable[[str, str, str], Awaitable[str | None]]
"""Of (plural resource, namespace, name) the uid; None if there is no such object."""


class TokenIssuer:
    """Signs and checks tokens. `load_or_create` keeps the key in a file."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, clock: Callable[[], float]) -> None:
        self._key = key
        self._public = key.public_key()
        self._clock = clock
        point = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        header = {"alg": _ALGORITHM, "kid": _encode(hashlib.sha256(point).digest())}
        self._header = _encode(msgspec.json.encode(header))
        self._checked: dict[bytes, Json] = {}

    @classmethod
    def load_or_create(cls, path: Path, clock: Callable[[], float]) -> TokenIssuer:
        content = read_private(path)
        if content is None:
            key = ec.generate_private_key(ec.SECP256R1())
            pem = key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            write_private(path, pem)
            return cls(key, clock)
        try:
            loaded = serialization.load_pem_private_key(content, password=None)
        except ValueError as error:
            raise BadCertificate(
                f"{path} can't be read: {error}. Restore it, or remove it to void all tokens."
            ) from error
        if not isinstance(loaded, ec.EllipticCurvePrivateKey) or not isinstance(loaded.curve, ec.SECP256R1):
            raise BadCertificate(f"{path} holds another kind of key. Restore it, or remove it to void all tokens.")
        return cls(loaded, clock)

    def issue(self, subject: TokenSubject, *, seconds: int, audiences: Sequence[str] = ()) -> tuple[str, float]:
        """A token, and when it expires as seconds since 1970."""
        now = int(self._clock())
        bound: Json = {
            "namespace": subject.namespace,
            "serviceaccount": {"name": subject.name, "uid": subject.uid},
        }
        for kind, ref in (("pod", subject.pod), ("node", subject.node)):
            if ref is not None:
                bound[kind] = {"name": ref.name, "uid": ref.uid}
        claims: Json = {
            "aud": list(audiences) or [ISSUER],
            "exp": now + seconds,
            "iat": now,
            "nbf": now,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": bound,
            "sub": f"{SERVICE_ACCOUNT_PREFIX}{subject.namespace}:{subject.name}",
        }
        signed = f"{self._header}.{_encode(msgspec.json.encode(claims))}"
        signature = self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        r, s = decode_dss_signature(signature)
        return f"{signed}.{_encode(r.to_bytes(_SIZE, 'big') + s.to_bytes(_SIZE, 'big'))}", float(now + seconds)

    async def authenticate(
        self, token: str, find_uid: UidLookup, audiences: Sequence[str] = (ISSUER,)
    ) -> UserInfo | None:
        """Who holds this token; None if it isn't ours, has expired, or its account or pod is gone."""
        claims = self._claims(token)
        if claims is None or not set(audiences) & set(claims["aud"]):
            return None
        if not claims["nbf"] - 60 <= self._clock() < claims["exp"]:
            return None
        bound = claims["kubernetes.io"]
        namespace, account = bound["namespace"], bound["serviceaccount"]
        if await find_uid("serviceaccounts", namespace, account["name"]) != account["uid"]:
            return None
        pod = bound.get("pod")
        if pod is not None and await find_uid("pods", namespace, pod["name"]) != pod["uid"]:
            return None
        extra = {f"{_EXTRA}credential-id": (f"JTI={claims['jti']}",)}
        for kind in ("pod", "node"):
            if kind in bound:
                extra[f"{_EXTRA}{kind}-name"] = (bound[kind]["name"],)
                extra[f"{_EXTRA}{kind}-uid"] = (bound[kind]["uid"],)
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        return UserInfo(claims["sub"], uid=account["uid"], groups=groups, extra=extra)

    def _claims(self, token: str) -> Json | None:
        """What a token with a good signature says. Remembered, since checking a signature takes its time."""
        digest = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        known = self._checked.get(digest)
        if known is not None:
            return known
        claims = self._verify(token)
        if claims is not None:
            if len(self._checked) >= _MAX_CACHED:
                self._checked.clear()
            self._checked[digest] = claims
        return claims

    def _verify(self, token: str) -> Json | None:
        header, _, rest = token.partition(".")
        payload, _, signature_text = rest.partition(".")
        if header != self._header:  # we only accept what we issue, so the header has exactly one form
            return None
        try:
            signature = _decode(signature_text)
            if len(signature) != 2 * _SIZE:
                return None
            der = encode_dss_signature(
                int.from_bytes(signature[:_SIZE], "big"), int.from_bytes(signature[_SIZE:], "big")
            )
            self._public.verify(der, f"{header}.{payload}".encode(), ec.ECDSA(hashes.SHA256()))
            claims: Any = msgspec.json.decode(_decode(payload))
        except (InvalidSignature, binascii.Error, ValueError):
            return None
        return claims if isinstance(claims, dict) else None


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
