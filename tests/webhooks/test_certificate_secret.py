"""The certificate in the Secret: created once, renewed before it expires, trusted without a gap."""

from __future__ import annotations

import time
from datetime import timedelta

from cryptography import x509

from volcano_py.webhooks import certificate_secret

HOSTS = ("volcano-admission-service.volcano-system.svc", "localhost")
DAY = 86400.0
NOW = time.time()


def first():
    made = certificate_secret.renewed(None, HOSTS, NOW)
    assert made is not None
    return made


def test_a_new_certificate_is_stored_and_valid():
    made = first()
    assert certificate_secret.read(made.data()) == made
    assert certificate_secret.renewed(made, HOSTS, NOW) is None
    assert certificate_secret.renewed(made, HOSTS, NOW + 50 * DAY) is None


def test_a_certificate_is_renewed_in_the_last_third_of_its_lifetime():
    made = first()
    later = certificate_secret.renewed(made, HOSTS, NOW + 61 * DAY)
    assert later is not None
    assert (later.bundle, later.authority_key) == (made.bundle, made.authority_key)
    assert later.certificate != made.certificate


def test_an_additional_host_requires_a_new_certificate():
    made = first()
    assert certificate_secret.renewed(made, HOSTS[:1], NOW) is None
    later = certificate_secret.renewed(made, (*HOSTS, "elsewhere"), NOW)
    assert later is not None
    assert later.bundle == made.bundle


def test_the_old_ca_is_trusted_beside_the_new_one():
    made = first()
    near = NOW + (certificate_secret.AUTHORITY_LIFETIME - timedelta(days=100)).total_seconds()
    later = certificate_secret.renewed(made, HOSTS, near)
    assert later is not None
    newest, older = x509.load_pem_x509_certificates(later.bundle)
    assert certificate_secret._pem(older) == made.bundle
    certificate = x509.load_pem_x509_certificate(later.certificate)
    certificate.verify_directly_issued_by(newest)


def test_an_invalid_certificate_is_replaced():
    for data in ({}, {"tls.crt": "???"}, first().data() | {"tls.key": "Zm9v"}, first().data() | {"ca.crt": None}):
        assert certificate_secret.read(data) is None
