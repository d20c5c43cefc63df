"""How to reach a cluster: its address, whom to trust, and who we are."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dray.runtime.credentials import Anonymous, Credentials, KeyPair


class BadAccess(Exception):
    """A cluster can't be reached as configured; the text says what is wrong and where."""


@dataclass(frozen=True)
class ClusterAccess:
    server: str
    """`https://host:port`, maybe with a path in front of the API's."""
    namespace: str = "default"
    authority: bytes | None = None
    """Certificates to trust, as PEM; None means those of the system."""
    server_name: str = ""
    """The name that the server's certificate must have, if it isn't the one in the address."""
    verify: bool = True
    key_pair: KeyPair | None = None
    credentials: Credentials = field(default_factory=Anonymous)
    impersonate: tuple[tuple[str, str], ...] = ()
    """Headers by which an administrator acts as somebody else."""


def make_tls_context(access: ClusterAccess, key_pair: KeyPair | None = None) -> ssl.SSLContext:
    """`key_pair` is used in place of the one in `access`. Raises BadAccess."""
    try:
        authority = None if access.authority is None else access.authority.decode("ascii")
        context = ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise BadAccess(f"{access.server}: the certificate authority can't be read: {error}") from None
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if (pair := key_pair or access.key_pair) is not None:
        try:
            # Python reads key pairs from files only.
            with _private_file(pair.certificate) as certificate, _private_file(pair.key) as key:
                context.load_cert_chain(certificate, key)
        except ssl.SSLError as error:
            raise BadAccess(f"{access.server}: the client certificate or its key can't be used: {error}") from None
    return context


@contextlib.contextmanager
def _private_file(content: bytes) -> Iterator[Path]:
    descriptor, name = tempfile.mkstemp(prefix="dray-")  # readable by us alone
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield Path(name)
    finally:
        Path(name).unlink()
