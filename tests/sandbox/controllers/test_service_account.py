"""The default service account of every namespace, and lasting tokens."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.sandbox.clients import MERGE, Http, Kubectl
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.controllers.manager import Options

NAMESPACES = "/api/v1/namespaces"
LAB = NAMESPACES + "/lab"


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """A cluster as `volcano-py sandbox up` makes it, without nodes."""
    async with Sandbox(nodes=0, controllers=Options(service_accounts=True)) as made:
        yield made


def present(value: dict[str, Any]) -> bool:
    return value.get("code") != 404


async def test_every_namespace_has_a_default_account_and_the_certificate(api: Http) -> None:
    await api.ok("POST", NAMESPACES, {"metadata": {"name": "lab"}})
    for namespace in ("default", "kube-system", "lab"):
        await api.until(f"{NAMESPACES}/{namespace}/serviceaccounts/default", present)
    published = await api.until(LAB + "/configmaps/kube-root-ca.crt", present)
    assert published["data"]["ca.crt"] == api.sandbox.authority.decode()
    first = await api.ok("GET", LAB + "/serviceaccounts/default")
    await api.ok("DELETE", LAB + "/serviceaccounts/default")
    uid = first["metadata"]["uid"]
    await api.until(LAB + "/serviceaccounts/default", lambda v: v.get("metadata", {}).get("uid", uid) != uid)
    await api.ok("PATCH", LAB + "/configmaps/kube-root-ca.crt", {"data": {"ca.crt": "other"}}, MERGE)
    await api.until(LAB + "/configmaps/kube-root-ca.crt", lambda v: v["data"] == published["data"])
    await api.ok("DELETE", LAB)
    await api.until(LAB, lambda v: not present(v))


async def test_kubectl_creates_valid_tokens(api: Http, kubectl: Kubectl) -> None:
    await api.until(NAMESPACES + "/default/serviceaccounts/default", present)
    token = (await kubectl("create", "token", "default")).strip()
    assert "system:serviceaccount:default:default" in await kubectl("--token", token, "auth", "whoami")


async def test_a_secret_gets_a_token_as_long_as_its_account_is_there(api: Http) -> None:
    accounts, secrets = NAMESPACES + "/default/serviceaccounts", NAMESPACES + "/default/secrets"
    notes = {"kubernetes.io/service-account.name": "robot"}
    body = {"metadata": {"name": "robot", "annotations": notes}, "type": "kubernetes.io/service-account-token"}
    await api.ok("POST", secrets, body)
    account = await api.ok("POST", accounts, {"metadata": {"name": "robot"}})
    filled = await api.until(secrets + "/robot", lambda v: v.get("data", {}).get("token"))
    assert filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]
    assert base64.b64decode(filled["data"]["namespace"]) == b"default"
    token = base64.b64decode(filled["data"]["token"]).decode()
    reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    status, answer = await api.call("POST", reviews, {}, token=token)
    assert status == 201, answer
    assert answer["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
    await api.ok("DELETE", accounts + "/robot")
    await api.until(secrets + "/robot", lambda v: not present(v))
    assert (await api.call("POST", reviews, {}, token=token))[0] == 401
