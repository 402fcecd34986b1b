"""Custom resources: serving, pruning, defaults, validation, subresources, columns."""

from __future__ import annotations

from typing import Any

from tests.sandbox.clients import MERGE, STRATEGIC, Http

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/e.com/v1/namespaces/default/widgets"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "x-kubernetes-validations": [{"rule": "self.size <= self.limit", "message": "size is over the limit"}],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "limit": {"type": "integer", "default": 10},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                },
            },
        },
        "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
    },
}


def definition(subresources: dict[str, Any] | None = None) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    if subresources:
        version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.e.com"},
        "spec": {
            "group": "e.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [version],
        },
    }


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "e.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


async def served(api: Http, subresources: dict[str, Any] | None = None) -> None:
    await api.ok("POST", CRDS, definition(subresources))
    await api.until(WIDGETS, lambda value: isinstance(value, dict) and value.get("kind") == "WidgetList")


async def test_a_definition_is_served_and_withdrawn(api: Http) -> None:
    await served(api)
    await api.ok("POST", WIDGETS, widget("a", size=1))
    listing = await api.ok("GET", "/apis/e.com/v1")
    assert [row["name"] for row in listing["resources"]] == ["widgets"]
    await api.ok("DELETE", CRDS + "/widgets.e.com")
    await api.until(CRDS + "/widgets.e.com", lambda value: value.get("code") == 404)
    assert (await api.call("GET", WIDGETS))[0] == 404


async def test_a_subresource_that_is_not_defined(api: Http) -> None:
    await served(api)
    await api.ok("POST", WIDGETS, widget("a", size=1))
    for method in ("GET", "PUT", "PATCH", "POST", "DELETE"):
        for subresource in ("nothing", "scale"):
            status, answer = await api.call(method, f"{WIDGETS}/a/{subresource}")
            assert status == 404 and answer["message"] == 'widgets.e.com "a" not found'
            assert answer["details"] == {"name": "a", "group": "e.com", "kind": "widgets"}


async def test_objects_are_pruned_and_defaulted(api: Http) -> None:
    await served(api)
    made = await api.ok("POST", WIDGETS, widget("a", size=1, nope=2, free={"any": [1, {"x": None}]}))
    assert made["spec"] == {"size": 1, "limit": 10, "free": {"any": [1, {"x": None}]}}
    assert made["metadata"]["generation"] == 1


async def test_faults_name_their_fields(api: Http) -> None:
    await served(api)
    body = widget("a", size="big", color="green", port=1.5, items=[{"name": "x"}, {"name": "x"}, {}])
    status, answer = await api.call("POST", WIDGETS, body)
    assert status == 422
    causes = {(row["reason"], row["field"]) for row in answer["details"]["causes"]}
    assert ("FieldValueTypeInvalid", "spec.size") in causes
    assert ("FieldValueNotSupported", "spec.color") in causes
    assert ("FieldValueTypeInvalid", "spec.port") in causes
    assert ("FieldValueDuplicate", "spec.items[1]") in causes
    assert ("FieldValueRequired", "spec.items[2].name") in causes


async def test_cel_rules_hold(api: Http) -> None:
    await served(api)
    status, answer = await api.call("POST", WIDGETS, widget("a", size=11))
    assert status == 422 and "size is over the limit" in answer["message"]
    assert (await api.call("POST", WIDGETS, widget("a", size=11, limit=12)))[0] == 201


async def test_put_needs_a_revision_and_strategic_patches_are_rejected(api: Http) -> None:
    await served(api)
    await api.ok("POST", WIDGETS, widget("a", size=1))
    status, answer = await api.call("PUT", WIDGETS + "/a", widget("a", size=2))
    assert status == 422 and answer["details"]["causes"][0]["field"] == "metadata.resourceVersion"
    assert (await api.call("PATCH", WIDGETS + "/a", {"spec": {"size": 2}}, STRATEGIC))[0] == 415


async def test_status_is_written_by_its_subresource_only(api: Http) -> None:
    await served(api, {"status": {}})
    body = {**widget("a", size=1), "status": {"ready": 5}}
    made = await api.ok("POST", WIDGETS, body)
    assert "status" not in made
    changed = await api.ok("PATCH", WIDGETS + "/a/status", {"spec": {"size": 9}, "status": {"ready": 1}}, MERGE)
    assert changed["status"] == {"ready": 1} and changed["spec"]["size"] == 1
    assert changed["metadata"]["generation"] == 1
    again = await api.ok("PATCH", WIDGETS + "/a", {"spec": {"size": 2}, "status": {"ready": 7}}, MERGE)
    assert again["status"] == {"ready": 1} and again["metadata"]["generation"] == 2


async def test_without_the_subresource_status_is_a_field(api: Http) -> None:
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 1},
        "status": {"phase": "Pending"},
    }
    made = await api.ok("POST", path, group)
    assert made["status"] == {"phase": "Pending"}
    assert (await api.call("PATCH", path + "/g/status", {"status": {"phase": "Running"}}, MERGE))[0] == 404
    changed = await api.ok("PATCH", path + "/g", {"status": {"phase": "Running"}}, MERGE)
    assert changed["status"] == {"phase": "Running"} and changed["metadata"]["generation"] == 2


async def test_an_invalid_definition_is_rejected(api: Http) -> None:
    bad = definition()
    bad["metadata"]["name"] = "wrong"
    bad["spec"]["versions"][0]["storage"] = False
    status, answer = await api.call("POST", CRDS, bad)
    fields = {row["field"] for row in answer["details"]["causes"]}
    assert status == 422 and {"metadata.name", "spec.versions"} <= fields


async def test_volcanos_admission_denies(api: Http) -> None:
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "minAvailable": 1,
            "tasks": [
                {
                    "replicas": 1,
                    "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}},
                }
            ],
        },
    }
    made = await api.ok("POST", path, job)
    assert made["spec"]["queue"] == "default" and made["spec"]["tasks"][0]["name"] == "default0"
    bad = {**job, "metadata": {"name": "k"}, "spec": {**job["spec"], "minAvailable": 5}}
    status, answer = await api.call("POST", path, bad)
    assert status == 400 and "validatejob.volcano.sh" in answer["message"]


async def test_a_plain_finalizer_is_warned_about(api: Http) -> None:
    await api.ok("POST", CRDS, definition())
    made = {**widget("a", size=1), "metadata": {"name": "a", "finalizers": ["mine"]}}
    status, _, headers = await api.full("POST", WIDGETS, made)
    assert status == 201
    assert "prefer a domain-qualified finalizer name to avoid" in headers["Warning"]
