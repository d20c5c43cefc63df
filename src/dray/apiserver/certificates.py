"""The server's own certificate authority: made on first start, kept with the data.

It signs the serving certificate and client certificates. A client certificate's common name is the user, its
organizations are the groups, as in Kubernetes.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dray.apiserver.private_files import read_private, write_private

LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")
SERVICE_NAMES: Final = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_CA_LIFETIME: Final = datetime.timedelta(days=3650)
_LIFETIME: Final = datetime.timedelta(days=365)
_RENEWAL: Final = datetime.timedelta(days=30)
_CLOCK_SKEW: Final = datetime.timedelta(minutes=5)

Clock = Callable[[], datetime.datetime]


class BadCertificate(Exception):
    """A file in the certificate folder can't be used; the text says which and what to do."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate with its key, as PEM."""

    certificate: bytes
    key: bytes


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class CertificateAuthority:
    """Signs certificates. `load_or_create` keeps one in a folder."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, clock: Clock = utc_now) -> None:
        self._certificate = certificate
        self._key = key
        self._clock = clock
        self.pem = certificate.public_bytes(serialization.Encoding.PEM)

    @classmethod
    def create(cls, clock: Clock = utc_now, key: ec.EllipticCurvePrivateKey | None = None) -> CertificateAuthority:
        key = key or ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dray-ca")])
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = _builder(name, name, key.public_key(), clock(), _CA_LIFETIME)
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key, clock)

    @classmethod
    def load_or_create(cls, folder: Path, clock: Clock = utc_now) -> CertificateAuthority:
        """Raises BadCertificate if the files there don't fit."""
        certificate, key = read_private(folder / "ca.crt"), read_private(folder / "ca.key")
        if key is None:
            if certificate is not None:
                raise BadCertificate(
                    f"{folder / 'ca.crt'} has no ca.key beside it. Restore the key, or remove the certificate: "
                    "a new authority is then made, and clients need new kubeconfig files."
                )
            authority = cls.create(clock)
            write_private(folder / "ca.key", _key_pem(authority._key))
            write_private(folder / "ca.crt", authority.pem)
            return authority
        try:
            loaded_key = serialization.load_pem_private_key(key, password=None)
            loaded = None if certificate is None else x509.load_pem_x509_certificate(certificate)
        except ValueError as error:
            raise BadCertificate(
                f"the certificate authority in {folder} can't be read: {error}. Restore ca.key and ca.crt from backup."
            ) from error
        if not isinstance(loaded_key, ec.EllipticCurvePrivateKey):
            raise BadCertificate(f"{folder / 'ca.key'} is no elliptic curve key. Restore it from a backup.")
        if loaded is None:  # ended between the two writes of a first start
            authority = cls.create(clock, loaded_key)
            write_private(folder / "ca.crt", authority.pem)
            return authority
        if loaded_key.public_key() != loaded.public_key():
            raise BadCertificate(f"ca.crt and ca.key in {folder} don't belong together. Restore both from one backup.")
        return cls(loaded, loaded_key, clock)

    def issue_server(self, names: Iterable[str]) -> KeyPair:
        """A serving certificate for DNS names and IP addresses."""
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in dict.fromkeys(names)])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dray-apiserver")])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def issue_client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """A certificate that makes its holder `user`, a member of `groups`."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def serving_pair(self, folder: Path, names: Sequence[str]) -> KeyPair:
        """The certificate kept in `folder`, made anew if it lacks one of the names or ends soon."""
        certificate, key = read_private(folder / "server.crt"), read_private(folder / "server.key")
        if certificate is not None and key is not None and self._still_fits(certificate, key, names):
            return KeyPair(certificate, key)
        pair = self.issue_server(names)
        write_private(folder / "server.key", pair.key)
        write_private(folder / "server.crt", pair.certificate)
        return pair

    def _still_fits(self, certificate: bytes, key: bytes, names: Sequence[str]) -> bool:
        try:
            loaded = x509.load_pem_x509_certificate(certificate)
            loaded.verify_directly_issued_by(self._certificate)
            public_key = serialization.load_pem_private_key(key, password=None).public_key()
            alternatives = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
            return False  # it is simply made anew
        lasts = loaded.not_valid_after_utc - self._clock() > _RENEWAL
        return (
            lasts and public_key == loaded.public_key() and {_general_name(name) for name in names} <= set(alternatives)
        )

    def _issue(
        self, subject: x509.Name, purpose: x509.ObjectIdentifier, alternatives: x509.SubjectAlternativeName | None
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self._certificate.subject
        builder = _builder(subject, issuer, key.public_key(), self._clock(), _LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def server_context(folder: Path, authority: CertificateAuthority) -> ssl.SSLContext:
    """TLS for a server that accepts client certificates of `authority` but doesn't insist on one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    context.load_verify_locations(cadata=authority.pem.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    lifetime: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
