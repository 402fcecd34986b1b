"""The scanner agrees with a real decoder wherever that one can read, and goes on where it cannot."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.faults.poison import DEPTHS, deep
from volcano_py.kube import scan

KEYS = st.text(max_size=6) | st.sampled_from(["metadata", "name", "items", "uid"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=5)


def strings(value):
    return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}


@example({"": ""}, False)
@example({"metadata": {"": ""}}, False)
@given(OBJECTS, st.booleans())
def test_texts_are_the_string_fields_of_the_object_at_the_path(obj, spaced):
    raw = json.dumps(obj, indent=2 if spaced else None, ensure_ascii=spaced).encode()
    assert scan.texts(raw) == strings(obj)
    assert scan.texts(raw, "metadata") == strings(obj.get("metadata"))
    meta = obj.get("metadata")
    assert scan.texts(raw, "metadata", "name") == strings(meta.get("name") if isinstance(meta, dict) else None)


@given(st.lists(OBJECTS, max_size=5), OBJECTS)
def test_members_and_elements_are_cut_out_whole(items, head):
    raw = json.dumps({**head, "items": items}).encode()
    found = scan.elements(scan.member(raw, "items"))
    assert [json.loads(one) for one in found] == items


@given(st.binary(max_size=200))
def test_any_bytes_are_scanned_without_an_error(raw):
    scan.texts(raw, "metadata")
    list(scan.elements(scan.member(raw, "items")))


@pytest.mark.parametrize("depth", DEPTHS)
def test_depth_does_not_matter(depth):
    raw = deep({"metadata": {"name": "n", "namespace": "s", "uid": "u"}, "spec": {}}, depth)
    assert scan.texts(raw, "metadata") == {"name": "n", "namespace": "s", "uid": "u"}
