"""The webhook server's certificate, stored in a Secret that all replicas share, and renewed before it expires.

Volcano creates it once, in a hook of its chart, and needs an upgrade before it expires. Here any replica renews it when
a third of its lifetime is left, and all replicas present the certificate in the Secret. When the CA is renewed, clients
trust the old and the new CA until the old one expires.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509

from volcano_py.kube.certificates import Authority, ServerCertificate, make, new_authority

AUTHORITY_LIFETIME = timedelta(days=3650)
LIFETIME = timedelta(days=90)
_AUTHORITY, _BUNDLE, _CERTIFICATE, _KEY = "ca.key", "ca.crt", "tls.crt", "tls.key"


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """PEM texts: the CAs that clients trust (newest first), and the serving certificate."""

    bundle: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes

    def data(self) -> dict[str, str]:
        """The data of the Secret; the keys `ca.crt`, `tls.crt` and `tls.key` are those of Volcano's Secret."""
        texts = {_BUNDLE: self.bundle, _AUTHORITY: self.authority_key, _CERTIFICATE: self.certificate, _KEY: self.key}
        return {name: base64.b64encode(text).decode() for name, text in texts.items()}

    def served(self) -> ServerCertificate:
        return ServerCertificate(self.bundle, self.certificate, self.key)


def read(data: Mapping[str, Any]) -> StoredCertificate | None:
    """The content of a Secret; None if a part is missing or invalid."""
    try:
        texts = {name: base64.b64decode(data[name]) for name in (_BUNDLE, _AUTHORITY, _CERTIFICATE, _KEY)}
        stored = StoredCertificate(texts[_BUNDLE], texts[_AUTHORITY], texts[_CERTIFICATE], texts[_KEY])
        x509.load_pem_x509_certificates(stored.bundle)
        x509.load_pem_x509_certificate(stored.certificate)
        stored.served().context()
    except (KeyError, TypeError, binascii.Error, ValueError, OSError):
        return None
    return stored


def renewed(stored: StoredCertificate | None, hosts: Sequence[str], now: float) -> StoredCertificate | None:
    """The new content of the Secret; None if the stored certificate is valid. `now`: seconds since the epoch."""
    moment = datetime.fromtimestamp(now, UTC)
    authority: Authority | None = None
    older = b""
    if stored is not None:
        newest, *others = x509.load_pem_x509_certificates(stored.bundle)
        if moment < newest.not_valid_after_utc - 2 * LIFETIME:
            authority = Authority(_pem(newest), stored.authority_key)
        unexpired = [one for one in ([] if authority else [newest]) + others if moment < one.not_valid_after_utc]
        older = b"".join(_pem(one) for one in unexpired)
        certificate = x509.load_pem_x509_certificate(stored.certificate)
        if authority is not None and _is_valid(certificate, newest, hosts, moment):
            return None
    authority = authority or new_authority(AUTHORITY_LIFETIME)
    created = make(tuple(hosts), authority, LIFETIME)
    return StoredCertificate(authority.certificate + older, authority.key, created.certificate, created.key)


def _is_valid(
    certificate: x509.Certificate, authority: x509.Certificate, hosts: Sequence[str], moment: datetime
) -> bool:
    """Signed by the newest CA, for all hosts, and not in the last third of its lifetime."""
    if certificate.issuer != authority.subject or set(hosts) - _hosts(certificate):
        return False
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:  # the exception depends on the type of key
        return False
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return moment < certificate.not_valid_after_utc - life / 3


def _hosts(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {*names.get_values_for_type(x509.DNSName), *(str(a) for a in names.get_values_for_type(x509.IPAddress))}


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)
