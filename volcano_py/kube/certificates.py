"""Generated certificates: a CA, and the server certificates that it signs.

The sandbox's API server uses one for the addresses of this machine, the webhook server one for its Service.
"""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ISSUER = "volcano-py"
AUTHORITY_LIFETIME = timedelta(days=3650)
LIFETIME = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Authority:
    """PEM texts: the CA certificate that clients trust, and its key."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """PEM texts: the CA certificate, the server's certificate and its key."""

    authority: bytes
    certificate: bytes
    key: bytes

    def context(self) -> ssl.SSLContext:
        """The TLS context of a server that presents the certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        self.load_into(context)
        return context

    def load_into(self, context: ssl.SSLContext) -> None:
        """Present this certificate for new connections of the context."""
        # ssl only reads files; they are deleted after the context has loaded them
        with tempfile.TemporaryDirectory() as folder:
            chain, key = Path(folder) / "cert.pem", Path(folder) / "key.pem"
            chain.write_bytes(self.certificate)
            key.write_bytes(self.key)
            context.load_cert_chain(chain, key)


def _name(text: str, organizations: tuple[str, ...] = ()) -> x509.Name:
    rows = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*rows, x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: str, public: ec.EllipticCurvePublicKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_name(issuer))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + lifetime)
    )


def new_authority(lifetime: timedelta = AUTHORITY_LIFETIME) -> Authority:
    """A new CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name(ISSUER), ISSUER, key.public_key(), lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate.public_bytes(serialization.Encoding.PEM), _private(key))


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def make(
    hosts: tuple[str, ...] = ("127.0.0.1", "::1", "localhost", "kubernetes.default"),
    authority: Authority | None = None,
    lifetime: timedelta = LIFETIME,
) -> ServerCertificate:
    """A certificate for the given names and addresses, signed by a new CA unless one is given."""
    authority = authority or new_authority()
    authority_key = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    certificate = (
        _builder(_name(hosts[0][:64]), ISSUER, key.public_key(), lifetime)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return ServerCertificate(
        authority.certificate,
        certificate.public_bytes(serialization.Encoding.PEM),
        _private(key),
    )


def make_client(
    user: str, groups: tuple[str, ...], authority: Authority, lifetime: timedelta = LIFETIME
) -> tuple[bytes, bytes]:
    """A client certificate and its key, as PEM: Kubernetes' user is the common name, its groups the organizations."""
    authority_key = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name(user, groups), ISSUER, key.public_key(), lifetime)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), _private(key)
