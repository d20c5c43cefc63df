"""The server's own certificate authority."""

from __future__ import annotations

import datetime
import stat
from pathlib import Path

import pytest
from cryptography import x509

from dray.apiserver.certificates import BadCertificate, CertificateAuthority, utc_now


def test_an_authority_is_made_once_and_kept_for_its_owner_only(tmp_path: Path) -> None:
    first = CertificateAuthority.load_or_create(tmp_path / "pki")
    second = CertificateAuthority.load_or_create(tmp_path / "pki")
    assert first.pem == second.pem
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "pki").iterdir()} == {0o600}
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700


def test_a_key_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    CertificateAuthority.load_or_create(tmp_path)
    (tmp_path / "ca.key").chmod(0o644)
    CertificateAuthority.load_or_create(tmp_path)
    assert stat.S_IMODE((tmp_path / "ca.key").stat().st_mode) == 0o600


def test_a_start_that_ended_between_key_and_certificate_is_completed(tmp_path: Path) -> None:
    first = CertificateAuthority.load_or_create(tmp_path)
    issued = x509.load_pem_x509_certificate(first.issue_client("me").certificate)
    (tmp_path / "ca.crt").unlink()
    completed = CertificateAuthority.load_or_create(tmp_path)
    issued.verify_directly_issued_by(x509.load_pem_x509_certificate(completed.pem))


def test_a_certificate_without_its_key_is_refused_with_advice(tmp_path: Path) -> None:
    CertificateAuthority.load_or_create(tmp_path)
    (tmp_path / "ca.key").unlink()
    with pytest.raises(BadCertificate, match="Restore the key, or remove the certificate"):
        CertificateAuthority.load_or_create(tmp_path)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    CertificateAuthority.load_or_create(tmp_path / "a")
    CertificateAuthority.load_or_create(tmp_path / "b")
    (tmp_path / "a" / "ca.key").write_bytes((tmp_path / "b" / "ca.key").read_bytes())
    with pytest.raises(BadCertificate, match="don't belong together"):
        CertificateAuthority.load_or_create(tmp_path / "a")


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    CertificateAuthority.load_or_create(tmp_path)
    (tmp_path / "ca.crt").write_text("nonsense")
    with pytest.raises(BadCertificate, match="can't be read"):
        CertificateAuthority.load_or_create(tmp_path)


def names_in(certificate: bytes) -> set[str]:
    loaded = x509.load_pem_x509_certificate(certificate)
    names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    return addresses | set(names.get_values_for_type(x509.DNSName))


def test_the_serving_certificate_is_kept_while_it_fits(tmp_path: Path) -> None:
    authority = CertificateAuthority.create()
    first = authority.serving_pair(tmp_path, ["localhost", "127.0.0.1"])
    assert authority.serving_pair(tmp_path, ["127.0.0.1"]) == first
    assert names_in(first.certificate) == {"localhost", "127.0.0.1"}


@pytest.mark.parametrize("damage", ["more names", "another authority", "garbage"])
def test_the_serving_certificate_is_made_anew_when_it_no_longer_fits(tmp_path: Path, damage: str) -> None:
    authority = CertificateAuthority.create()
    first = authority.serving_pair(tmp_path, ["localhost"])
    names = ["localhost"]
    match damage:
        case "more names":
            names.append("dray.example.com")
        case "another authority":
            authority = CertificateAuthority.create()
        case "garbage":
            (tmp_path / "server.crt").write_text("garbage")
    second = authority.serving_pair(tmp_path, names)
    assert second != first
    assert set(names) <= names_in(second.certificate)


def test_the_serving_certificate_is_renewed_before_it_ends(tmp_path: Path) -> None:
    now = utc_now()
    authority = CertificateAuthority.create(lambda: now)
    first = authority.serving_pair(tmp_path, ["localhost"])
    now += datetime.timedelta(days=340)
    assert authority.serving_pair(tmp_path, ["localhost"]) != first


def test_a_client_certificate_names_user_and_groups() -> None:
    pair = CertificateAuthority.create().issue_client("system:node:n1", ["system:nodes", "more"])
    subject = x509.load_pem_x509_certificate(pair.certificate).subject
    assert [str(part.value) for part in subject] == ["system:nodes", "more", "system:node:n1"]
