"""Admission policies written in CEL."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.clients import CONFIGMAPS, Http
from volcano_py.sandbox.apiserver.cel.objects import plain

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RULES = {
    "resourceRules": [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    ]
}


async def policy(api: Http, kind: str, spec: dict[str, Any], **binding: Any) -> None:
    body = {"metadata": {"name": "p"}, "spec": {"matchConstraints": RULES, **spec}}
    await api.ok("POST", f"{ADMISSION}/{kind}admissionpolicies", body)
    bound = {"metadata": {"name": "b"}, "spec": {"policyName": "p", **binding}}
    await api.ok("POST", f"{ADMISSION}/{kind}admissionpolicybindings", bound)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def test_a_policy_denies_with_its_message(api: Http) -> None:
    rule = {
        "expression": "size(variables.name) < 4",
        "messageExpression": "'not ' + variables.name",
        "reason": "Forbidden",
    }
    variables = [{"name": "name", "expression": "object.metadata.name"}]
    await policy(api, "validating", {"validations": [rule], "variables": variables}, validationActions=["Deny"])
    status, answer = await api.call("POST", CONFIGMAPS, config_map("long-one"))
    assert status == 403 and answer["message"] == (
        "configmaps \"long-one\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
        "not long-one"
    )
    await api.ok("POST", CONFIGMAPS, config_map("ok"))


async def test_a_policy_may_only_warn(api: Http) -> None:
    rules = [{"expression": "'a' in object.data", "message": "no a"}]
    await policy(api, "validating", {"validations": rules}, validationActions=["Warn"])
    status, _, headers = await api.full("POST", CONFIGMAPS, config_map("x", b="1"))
    assert status == 201 and "no a" in headers["Warning"]


@pytest.mark.parametrize(("failure", "status"), [("Fail", 422), ("Ignore", 201)])
async def test_an_expression_without_a_value_fails_by_policy(api: Http, failure: str, status: int) -> None:
    rules = [{"expression": "object.data.missing == '1'"}]
    await policy(api, "validating", {"validations": rules, "failurePolicy": failure}, validationActions=["Deny"])
    got, answer = await api.call("POST", CONFIGMAPS, config_map("x", b="1"))
    assert got == status, answer


async def test_parameters_come_from_an_object(api: Http) -> None:
    await api.ok("POST", CONFIGMAPS, config_map("limits", most="2"))
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "size(object.data) <= int(params.data.most)", "message": "too much"}],
    }
    reference = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
    await policy(api, "validating", spec, validationActions=["Deny"], paramRef=reference)
    await api.ok("POST", CONFIGMAPS, config_map("x", a="1", b="2"))
    status, answer = await api.call("POST", CONFIGMAPS, config_map("y", a="1", b="2", c="3"))
    assert status == 422 and "too much" in answer["message"]
    await api.ok("DELETE", f"{CONFIGMAPS}/limits")
    status, answer = await api.call("POST", CONFIGMAPS, config_map("z"))
    assert status == 422 and "no params found" in answer["message"]


async def test_mutations_by_object_and_by_patch(api: Http) -> None:
    mutations = [
        {
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {
                "expression": "Object{metadata: Object.metadata{labels: {'size': string(size(object.data))}}}"
            },
        },
        {
            "patchType": "JSONPatch",
            "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/data/b', value: object.metadata.name}]"},
        },
    ]
    await policy(api, "mutating", {"mutations": mutations, "reinvocationPolicy": "Never"})
    made = await api.ok("POST", CONFIGMAPS, config_map("x", a="1"))
    assert made["metadata"]["labels"] == {"size": "1"} and made["data"] == {"a": "1", "b": "x"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Object{}", "{}"),
        ("Object{spec: Object.spec{replicas: 1}}", '{"spec": {"replicas": 1}}'),
        ("Object{a: x ? {b: c} : d, e: [f, g]}", '{"a": x ? {b: c} : d, "e": [f, g]}'),
        ("""Object{a: "Object{b: 1}"}""", """{"a": "Object{b: 1}"}"""),
        ("[JSONPatch{op: 'add', path: '/x'}]", """[{"op": 'add', "path": '/x'}]"""),
    ],
)
def test_typed_literals_become_maps(given: str, expected: str) -> None:
    assert plain(given) == expected
