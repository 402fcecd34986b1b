"""The expressions of policies have types: kube-apiserver lists warnings in the status of those that have not.

The API server derives types from the schemas of the definitions, in which an object is no map. Here a protobuf message
stands for each object, because the CEL library has no other typed objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cel_expr_python import cel  # type: ignore[import-untyped]
from cel_expr_python.ext import ext_math, ext_optional, ext_strings  # type: ignore[import-untyped]
from google.protobuf import descriptor_pb2, descriptor_pool, struct_pb2  # type: ignore[import-untyped]

from volcano_py.api.cel import _functions
from volcano_py.api.yaml_documents import FAST_LOADER
from volcano_py.webhooks.policy_documents import documents

Schema = dict[str, Any]
FIELD = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "string": FIELD.TYPE_STRING,
    "boolean": FIELD.TYPE_BOOL,
    "number": FIELD.TYPE_DOUBLE,
    "integer": FIELD.TYPE_INT64,
}
TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
META = {"type": "object", "properties": {"name": TEXT, "namespace": TEXT, "annotations": TEXTS, "labels": TEXTS}}
REQUEST = {"type": "object", "properties": {"operation": TEXT, "name": TEXT, "namespace": TEXT}}


def message(within: Any, name: str, schema: Schema) -> None:
    """Add a message for an object."""
    made = within.add(name=name)
    for number, (key, inner) in enumerate((schema.get("properties") or {}).items(), 1):
        field = made.field.add(name=key, number=number, label=FIELD.LABEL_OPTIONAL)
        give_type(made, field, key, inner)


def give_type(owner: Any, field: Any, key: str, schema: Schema) -> None:
    """Set the type of a field. What has no type in the schema, such as a quantity, is dyn."""
    kind, values = schema.get("type"), schema.get("additionalProperties")
    if kind == "array" and schema["items"].get("type") != "array":
        field.label = FIELD.LABEL_REPEATED
        give_type(owner, field, key, schema["items"])
    elif kind == "object" and schema.get("properties"):
        message(owner.nested_type, f"T_{key}", schema)
        field.type, field.type_name = FIELD.TYPE_MESSAGE, f"T_{key}"
    elif kind == "object" and isinstance(values, dict):
        entry = owner.nested_type.add(name=f"{key[0].upper()}{key[1:]}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
        value = entry.field.add(name="value", number=2, label=FIELD.LABEL_OPTIONAL)
        if values.get("type") == "array":
            value.type, value.type_name = FIELD.TYPE_MESSAGE, ".google.protobuf.ListValue"
        else:
            give_type(owner, value, f"{key}_values", values)
        field.label, field.type, field.type_name = FIELD.LABEL_REPEATED, FIELD.TYPE_MESSAGE, entry.name
    elif kind in SCALARS:
        field.type = SCALARS[kind]
    else:
        field.type, field.type_name = FIELD.TYPE_MESSAGE, ".google.protobuf.Value"


@pytest.fixture(scope="module")
def kinds() -> dict[str, str]:
    """The kind of each plural."""
    return {one["spec"]["names"]["plural"]: one["spec"]["names"]["kind"] for one in definitions()}


@pytest.fixture(scope="module")
def pool() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="kinds.proto", package="k", syntax="proto2")
    file.dependency.append("google/protobuf/struct.proto")
    message(file.message_type, "Request", REQUEST)
    for one in definitions():
        schema = one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        properties = {**schema["properties"], "metadata": META}
        message(file.message_type, one["spec"]["names"]["kind"], {**schema, "properties": properties})
    made = descriptor_pool.DescriptorPool()
    made.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
    made.Add(file)
    return made


def definitions() -> Iterator[Schema]:
    for path in sorted((Path(__file__).parents[2] / "crds").glob("*.yaml")):
        yield from yaml.load_all(path.read_text(), Loader=FAST_LOADER)


def warning(pool: Any, kind: str, params: str, expression: str) -> str:
    """Why the API server would list the expression; empty if it has a type."""
    variables = {name: cel.Type(f"k.{kind}") for name in ("object", "oldObject")}
    variables["request"] = cel.Type("k.Request")
    if params:
        variables["params"] = cel.Type(f"k.{params}")
    extensions = [ext_strings.ExtStrings(), ext_optional.ExtOptional(), ext_math.ExtMath()]
    environment = cel.NewEnv(descriptor_pool=pool, variables=variables, extensions=extensions, functions=_functions())
    try:
        environment.compile(expression)
    except Exception as error:  # the library raises several types
        return str(error)
    return ""


def test_every_expression_has_a_type(pool: Any, kinds: dict[str, str]) -> None:
    checked, warnings = 0, []
    for policy in documents():
        spec = policy["spec"]
        if policy["kind"] != "ValidatingAdmissionPolicy":
            continue
        [plural] = spec["matchConstraints"]["resourceRules"][0]["resources"]
        if plural == "pods":
            continue  # not a kind of ours; its rules read annotations only
        for one in spec["validations"]:
            params = (spec.get("paramKind") or {}).get("kind", "")
            checked += 1
            if text := warning(pool, kinds[plural], params, one["expression"]):
                warnings.append((policy["metadata"]["name"], one["message"], text.splitlines()[0]))
    assert checked > 50 and warnings == []


@pytest.mark.parametrize(
    ("kind", "expression", "overload"),
    [
        ("Job", "object.spec.?networkTopology.orValue({}) == {}", "'orValue'"),
        ("Queue", "object.spec.?guarantee.orValue({}) == {}", "'orValue'"),
        ("Queue", "['deserved'].all(f, object.spec[?f] == oldObject.spec[?f])", "'_[?_]'"),
        ("Job", "object.spec.nothing == ''", "undefined field"),
        ("Job", "object.spec.queue == 1", "'_==_'"),
    ],
)
def test_forms_without_a_type_are_found(pool: Any, kind: str, expression: str, overload: str) -> None:
    assert overload in warning(pool, kind, "", expression)
