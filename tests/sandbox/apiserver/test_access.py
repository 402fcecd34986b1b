"""Who may do what: tokens, roles, service accounts, impersonation."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.sandbox.clients import CONFIGMAPS, PODS, Http, http, pod
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
JANE = "jane-token"


@pytest.fixture
async def api() -> AsyncIterator[Http]:
    users = {JANE: User("jane", ("developers", "system:authenticated"))}
    async with Sandbox(nodes=0, users=users) as sandbox, http(sandbox) as client:
        yield client


def role(name: str, *verbs: str, resource: str = "pods") -> dict:
    return {"metadata": {"name": name}, "rules": [{"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}]}


def binding(name: str, kind: str, subject: str, role_kind: str = "Role") -> dict:
    row = {"kind": kind, "name": subject}
    if kind == "ServiceAccount":
        row["namespace"] = "default"
    else:
        row["apiGroup"] = "rbac.authorization.k8s.io"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": name}
    return {"metadata": {"name": name}, "subjects": [row], "roleRef": reference}


async def test_an_unknown_token_is_401_and_no_token_is_anonymous(api: Http) -> None:
    status, answer = await api.call("GET", PODS, token="wrong")
    assert status == 401 and answer["reason"] == "Unauthorized"
    status, answer = await api.call("GET", PODS, Authorization="")
    assert status == 403 and 'User "system:anonymous" cannot list resource "pods"' in answer["message"]


async def test_a_role_grants_its_rules_in_its_namespace(api: Http) -> None:
    status, answer = await api.call("GET", PODS, token=JANE)
    assert status == 403
    assert answer["message"] == (
        'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"'
    )
    await api.ok("POST", f"{RBAC}/namespaces/default/roles", role("reader", "get", "list"))
    await api.ok("POST", f"{RBAC}/namespaces/default/rolebindings", binding("reader", "User", "jane"))
    assert (await api.call("GET", PODS, token=JANE))[0] == 200
    assert (await api.call("POST", PODS, pod("a"), token=JANE))[0] == 403
    assert (await api.call("GET", "/api/v1/namespaces/kube-system/pods", token=JANE))[0] == 403
    await api.ok("DELETE", f"{RBAC}/namespaces/default/rolebindings/reader")
    assert (await api.call("GET", PODS, token=JANE))[0] == 403


async def test_cluster_roles_hold_for_groups_everywhere(api: Http) -> None:
    await api.ok("POST", f"{RBAC}/clusterrolebindings", binding("view", "Group", "developers", "ClusterRole"))
    assert (await api.call("GET", "/api/v1/pods", token=JANE))[0] == 200
    assert (await api.call("GET", "/api/v1/secrets", token=JANE))[0] == 403


async def test_no_user_grants_more_than_they_hold(api: Http) -> None:
    rules = role("author", "create", "get")
    rules["rules"].append({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]})
    await api.ok("POST", f"{RBAC}/namespaces/default/roles", rules)
    await api.ok("POST", f"{RBAC}/namespaces/default/rolebindings", binding("author", "User", "jane"))
    where = f"{RBAC}/namespaces/default/roles"
    assert (await api.call("POST", where, role("same", "get"), token=JANE))[0] == 201
    status, answer = await api.call("POST", where, role("more", "delete"), token=JANE)
    assert status == 403 and "attempting to grant RBAC permissions not currently held" in answer["message"]


async def test_a_service_accounts_token_lives_as_long_as_the_account(api: Http) -> None:
    await api.ok("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    made = await api.ok("POST", f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 600}})
    token = made["status"]["token"]
    status, answer = await api.call("GET", CONFIGMAPS, token=token)
    assert status == 403 and 'User "system:serviceaccount:default:robot"' in answer["message"]
    await api.ok("POST", f"{RBAC}/namespaces/default/roles", role("maps", "list", resource="configmaps"))
    await api.ok("POST", f"{RBAC}/namespaces/default/rolebindings", binding("maps", "ServiceAccount", "robot"))
    assert (await api.call("GET", CONFIGMAPS, token=token))[0] == 200
    await api.ok("DELETE", f"{ACCOUNTS}/robot")
    assert (await api.call("GET", CONFIGMAPS, token=token))[0] == 401


async def test_reviews_and_impersonation_agree(api: Http) -> None:
    question = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}}
    where = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await api.ok("POST", where, question))["status"]["allowed"] is True
    status, answer = await api.call("POST", where, question, **{"Impersonate-User": "jane"})
    assert status == 201 and answer["status"]["allowed"] is False
    assert (await api.call("GET", PODS, **{"Impersonate-User": "jane"}))[0] == 403
    status, answer = await api.call("GET", PODS, token=JANE, **{"Impersonate-User": "admin"})
    assert status == 403 and 'User "jane" cannot impersonate' in answer["message"]


async def test_a_kind_that_is_not_served_is_403_without_rights(api: Http) -> None:
    for path, resource, group in (
        ("/apis/none.example.com/v1/foos", "foos.none.example.com", "none.example.com"),
        ("/api/v1/nothings", "nothings", ""),
    ):
        status, answer = await api.call("GET", path, token=JANE)
        assert (status, answer["message"]) == (
            403,
            f'{resource} is forbidden: User "jane" cannot list resource "{resource.split(".")[0]}" '
            f'in API group "{group}" at the cluster scope',
        )
        assert (await api.call("GET", path))[0] == 404
    assert (await api.call("GET", "/apis/none.example.com/v1", token=JANE))[0] == 404
