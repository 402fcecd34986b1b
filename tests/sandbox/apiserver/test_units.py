"""The parts that need no server: quantities, strategic merge, field sets, protobuf."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.sandbox.apiserver.apimachinery import quantity
from volcano_py.sandbox.apiserver.apply import fieldsets, strategic
from volcano_py.sandbox.apiserver.schema.types import builtin
from volcano_py.sandbox.apiserver.serializer.protobuf import decode, decode_envelope
from volcano_py.sandbox.apiserver.serializer.protobuf_writer import encode, envelope


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1", "1"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("0.5Gi", "512Mi"),
        ("1024Ki", "1Mi"),
        ("1000", "1k"),
        ("1e3", "1e3"),
        ("-0.5", "-500m"),
        ("0.0000000001", "1n"),
        (".5Ki", "512"),
        ("0Gi", "0"),
    ],
)
def test_quantities_have_one_spelling(text: str, canonical: str) -> None:
    assert quantity.canonical(text) == canonical


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1gi", "--1", "1.2.3", "Gi"])
def test_texts_that_are_no_quantities(text: str) -> None:
    with pytest.raises(quantity.QuantityError):
        quantity.parse(text)


@given(st.integers(-(10**15), 10**15), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "n", "u"]))
def test_the_spelling_keeps_the_value(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    assert quantity.parse(quantity.canonical(text)) == quantity.parse(text)


POD = builtin("core.v1.Pod")


def containers(*rows: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(rows)}}


@pytest.mark.parametrize(
    ("patch", "names"),
    [
        ([{"name": "b", "image": "new"}], ["a", "b"]),
        ([{"name": "c", "image": "x"}], ["c", "a", "b"]),
        ([{"name": "a", "$patch": "delete"}], ["b"]),
        ([{"$patch": "replace"}, {"name": "z", "image": "x"}], ["z"]),
    ],
)
def test_lists_with_a_key_are_merged_by_it(patch: list[Any], names: list[str]) -> None:
    live = containers({"name": "a", "image": "old"}, {"name": "b", "image": "old"})
    merged = strategic.apply(live, {"spec": {"containers": patch}}, POD)
    assert sorted(row["name"] for row in merged["spec"]["containers"]) == sorted(names)


def test_the_patch_may_give_the_order() -> None:
    live = containers({"name": "a"}, {"name": "b"}, {"name": "c"})
    patch = {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}], "containers": []}}
    merged = strategic.apply(live, patch, POD)
    assert [row["name"] for row in merged["spec"]["containers"]] == ["c", "a", "b"]


def test_null_removes_and_plain_lists_are_replaced() -> None:
    live = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"containers": [{"name": "a", "args": ["x"]}]}}
    patch = {"metadata": {"labels": {"a": None}}, "spec": {"containers": [{"name": "a", "args": ["y", "z"]}]}}
    merged = strategic.apply(live, patch, POD)
    assert merged["metadata"]["labels"] == {"b": "2"}
    assert merged["spec"]["containers"][0]["args"] == ["y", "z"]


LEAVES = st.dictionaries(st.sampled_from(["f:a", "f:b", "f:c"]), st.just({}), min_size=1)
SETS = st.dictionaries(st.sampled_from(["f:x", "f:y", "f:z"]), LEAVES, min_size=1)


@given(SETS, SETS)
def test_field_sets_obey_the_laws_of_sets(left: Any, right: Any) -> None:
    both = fieldsets.intersection(left, right)
    assert fieldsets.difference(left, left) == {}
    assert fieldsets.intersection(left, left) == left
    assert fieldsets.difference(both, left) == {} and fieldsets.difference(both, right) == {}
    rest = fieldsets.difference(left, right)
    assert fieldsets.intersection(rest, right) == {}
    assert fieldsets.union_top(rest, both) == left


def _field(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2, len(payload)]) + payload


def test_protobuf_objects_are_read() -> None:
    meta = _field(1, b"web") + _field(11, _field(1, b"app") + _field(2, b"x"))
    container = _field(1, b"c") + _field(2, b"busybox:1") + _field(3, b"sleep") + _field(3, b"1")
    pod = decode(POD, _field(1, meta) + _field(2, _field(2, container)))
    assert pod["metadata"]["name"] == "web" and pod["metadata"]["labels"] == {"app": "x"}
    first = pod["spec"]["containers"][0]
    assert first["name"] == "c" and first["image"] == "busybox:1" and first["command"] == ["sleep", "1"]


@given(st.binary(max_size=60))
def test_broken_protobuf_is_a_plain_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode(POD, data)


def test_protobuf_comes_back_as_it_was_written() -> None:
    metadata = {"name": "web", "labels": {"app": "x"}, "creationTimestamp": "2020-01-01T00:00:00Z"}
    container = {
        "name": "c",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "500m"}},
        "livenessProbe": {"httpGet": {"port": "http"}, "initialDelaySeconds": -1},
    }
    pod = {"metadata": metadata, "spec": {"containers": [container], "hostNetwork": True}}
    assert decode(POD, encode(POD, pod)) == pod


def test_a_status_can_be_protobuf() -> None:
    cause = {"reason": "FieldValueInvalid", "message": "no", "field": "spec"}
    status = {"kind": "Status", "apiVersion": "v1", "code": 422, "details": {"name": "a", "causes": [cause]}}
    assert decode_envelope(envelope(status)) == status
