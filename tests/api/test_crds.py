"""The CRDs in crds/, the generator they come from, and the structs that read them say the same."""

import sys
import types
import typing
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest
import yaml

from volcano_py.api import kinds, meta
from volcano_py.api.quantity import Quantity
from volcano_py.api.yaml_documents import FAST_LOADER

CRDS = Path(__file__).parents[2] / "crds"
FILES = sorted(CRDS.glob("*.yaml"))
BY_NAME = {crd["metadata"]["name"]: crd for crd in (yaml.load(path.read_text(), FAST_LOADER) for path in FILES)}

JSON_TYPES = {str: "string", int: "integer", bool: "boolean", list: "array", dict: "object"}


def schema_of(resource_type):
    crd = BY_NAME[f"{resource_type.plural}.{resource_type.group}"]
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def strip_none(annotation):
    """`X | None` is X; other unions stay."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        return members[0] if len(members) == 1 else annotation
    return annotation


def differences(annotation, schema, path):
    """Where the type of a struct's field and a schema disagree."""
    annotation = strip_none(annotation)
    if annotation is typing.Any or annotation == Quantity:
        return
    if isinstance(annotation, types.UnionType):
        assert set(typing.get_args(annotation)) == set(typing.get_args(Quantity)) | {type(None)}, path
        assert schema.get("x-kubernetes-int-or-string"), path
        return
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        if schema.get("type") != "object":
            yield f"{path}: a struct, but {schema.get('type')} in the CRD"
            return
        yield from struct_differences(origin, schema, path)
        return
    if schema.get("x-kubernetes-int-or-string"):
        yield f"{path}: a quantity in the CRD, {annotation} in the struct"
        return
    if schema.get("type") != JSON_TYPES[origin]:
        yield f"{path}: {annotation} in the struct, {schema.get('type')} in the CRD"
        return
    if origin is list:
        yield from differences(typing.get_args(annotation)[0], schema["items"], f"{path}[]")
    elif origin is dict and "additionalProperties" in schema:
        yield from differences(typing.get_args(annotation)[1], schema["additionalProperties"], f"{path}{{}}")


def struct_differences(struct, schema, path):
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    names = set(fields)
    if struct is meta.Condition:
        names -= {"lastProbeTime"}  # of pods and nodes only
    if names != set(schema.get("properties", {})):
        yield f"{path}: fields differ: {sorted(names ^ set(schema.get('properties', {})))}"
    for name in names & set(schema.get("properties", {})):
        field, part = fields[name], schema["properties"][name]
        if issubclass(struct, meta.ApiObject) and name in ("apiVersion", "kind", "metadata"):
            continue
        if field.default is not msgspec.NODEFAULT:
            zero = (None, "", 0, False)
            if "default" in part and field.default != part["default"]:
                yield f"{path}.{name}: default {field.default!r}, in the CRD {part['default']!r}"
            if "default" not in part and field.default not in zero:
                yield f"{path}.{name}: default {field.default!r}, none in the CRD"
        yield from differences(field.type, part, f"{path}.{name}")


@pytest.mark.parametrize("resource_type", kinds.VOLCANO, ids=lambda rt: rt.plural)
def test_struct_and_crd_agree(resource_type):
    found = list(struct_differences(kinds.STRUCTS[resource_type], schema_of(resource_type), resource_type.kind))
    assert found == []


@pytest.mark.parametrize("resource_type", kinds.VOLCANO, ids=lambda rt: rt.plural)
def test_names_agree(resource_type):
    spec = BY_NAME[f"{resource_type.plural}.{resource_type.group}"]["spec"]
    assert spec["names"]["kind"] == resource_type.kind
    assert tuple(spec["names"].get("shortNames", ())) == resource_type.short_names
    assert (spec["scope"] == "Namespaced") is resource_type.namespaced
    assert [version["name"] for version in spec["versions"]] == [resource_type.version]


def test_the_comparison_sees_a_difference():
    schema = schema_of(kinds.PODGROUP)
    spec = schema["properties"]["spec"]["properties"]
    changed = schema | {
        "properties": schema["properties"]
        | {"spec": {"type": "object", "properties": spec | {"minMember": {"type": "string"}, "extra": {}}}}
    }
    found = list(struct_differences(kinds.STRUCTS[kinds.PODGROUP], changed, "PodGroup"))
    assert len(found) == 2


def test_files_are_what_the_generator_writes(monkeypatch):
    monkeypatch.syspath_prepend(str(CRDS))
    import generate

    try:
        assert generate.files() == {path.name: path.read_text() for path in FILES}
    finally:
        for name in ("generate", "schema", "kinds_batch", "kinds_scheduling"):
            sys.modules.pop(name, None)


def parts(schema, path=""):
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{path}.{name}")
    if "items" in schema:
        yield from parts(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from parts(schema["additionalProperties"], f"{path}{{}}")


@pytest.mark.parametrize("name", BY_NAME)
def test_schemas_are_structural(name):
    """Every part has a type, required fields exist, defaults and enums satisfy their own part."""
    version = BY_NAME[name]["spec"]["versions"][0]
    for path, part in parts(version["schema"]["openAPIV3Schema"]):
        assert part.get("type") or part.get("x-kubernetes-int-or-string"), path
        assert set(part.get("required", ())) <= set(part.get("properties", {})), path
        assert not ("properties" in part and "additionalProperties" in part), path
        if "default" in part:
            jsonschema_rs.validate(part, part["default"])


JOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "a"}}
TASK = {
    "name": "t",
    "replicas": 1,
    "template": {"spec": {"containers": [{"name": "c", "image": "i", "x": 1}]}},
}


@pytest.mark.parametrize(
    ("spec", "valid"),
    [
        ({"tasks": [TASK]}, True),
        ({}, True),
        ({"tasks": []}, False),
        ({"tasks": [TASK | {"replicas": -1}]}, False),
        ({"tasks": [TASK | {"name": "A_"}]}, False),
        ({"tasks": [TASK | {"template": {"spec": {"nodeSelector": {}}}}]}, False),
        ({"tasks": [TASK | {"template": {"spec": {"containers": [{"name": "c", "image": 1}]}}}]}, False),
        ({"tasks": [TASK | {"partitionPolicy": {"totalPartitions": 2}}]}, False),
        ({"queue": "No Queue"}, False),
        ({"minSuccess": 0}, False),
        ({"policies": [{"event": "Nope"}]}, False),
        ({"volumes": [{"mountPath": "a:b"}]}, False),
        ({"networkTopology": {"mode": "medium"}}, False),
    ],
)
def test_job_schema(spec, valid):
    assert jsonschema_rs.is_valid(schema_of(kinds.JOB), JOB | {"spec": spec}) is valid


def test_pod_templates_know_the_fields_of_pods():
    tasks = schema_of(kinds.JOB)["properties"]["spec"]["properties"]["tasks"]
    spec = tasks["items"]["properties"]["template"]["properties"]["spec"]
    assert "x-kubernetes-preserve-unknown-fields" not in spec
    assert {"containers", "nodeSelector", "tolerations", "schedulingGates"} <= set(spec["properties"])
    ports = spec["properties"]["containers"]["items"]["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["items"]["properties"]["protocol"]["default"] == "TCP"


@pytest.mark.parametrize(
    ("selector", "broken"),
    [
        ({"exactMatch": {"name": "a"}}, []),
        ({"labelMatch": {}}, []),
        ({}, ["Either ExactMatch or RegexMatch or LabelMatch must be specified"]),
        (
            {"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "b"}},
            ["Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"],
        ),
    ],
)
def test_hypernode_selector_rules(selector, broken):
    cel = pytest.importorskip("cel_expr_python.cel")
    member = schema_of(kinds.HYPERNODE)["properties"]["spec"]["properties"]["members"]["items"]
    rules = member["properties"]["selector"]["x-kubernetes-validations"]
    env = cel.NewEnv(variables={"self": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)})
    failed = [rule["message"] for rule in rules if not env.compile(rule["rule"]).eval(data={"self": selector}).value()]
    assert failed == broken
