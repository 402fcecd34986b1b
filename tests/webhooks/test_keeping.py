"""The certificate in the Secret: made once, renewed in time, trusted without a gap."""

from __future__ import annotations

import time
from datetime import timedelta

from cryptography import x509

from volcano_py.webhooks import keeping

HOSTS = ("volcano-admission-service.volcano-system.svc", "localhost")
DAY = 86400.0
NOW = time.time()


def first():
    made = keeping.renewed(None, HOSTS, NOW)
    assert made is not None
    return made


def test_what_is_written_can_be_read_and_is_good():
    made = first()
    assert keeping.read(made.data()) == made
    assert keeping.renewed(made, HOSTS, NOW) is None
    assert keeping.renewed(made, HOSTS, NOW + 50 * DAY) is None


def test_the_last_third_of_its_life_brings_a_new_one_of_the_same_authority():
    made = first()
    later = keeping.renewed(made, HOSTS, NOW + 61 * DAY)
    assert later is not None
    assert (later.bundle, later.authority_key) == (made.bundle, made.authority_key)
    assert later.certificate != made.certificate


def test_another_host_needs_another_certificate():
    made = first()
    assert keeping.renewed(made, HOSTS[:1], NOW) is None
    later = keeping.renewed(made, (*HOSTS, "elsewhere"), NOW)
    assert later is not None
    assert later.bundle == made.bundle


def test_a_new_authority_is_trusted_beside_the_old_one():
    made = first()
    near = NOW + (keeping.AUTHORITY_LIFETIME - timedelta(days=100)).total_seconds()
    later = keeping.renewed(made, HOSTS, near)
    assert later is not None
    newest, older = x509.load_pem_x509_certificates(later.bundle)
    assert keeping._pem(older) == made.bundle
    certificate = x509.load_pem_x509_certificate(later.certificate)
    certificate.verify_directly_issued_by(newest)


def test_an_invalid_certificate_is_replaced():
    for data in ({}, {"tls.crt": "???"}, first().data() | {"tls.key": "Zm9v"}, first().data() | {"ca.crt": None}):
        assert keeping.read(data) is None
