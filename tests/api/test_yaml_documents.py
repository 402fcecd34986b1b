"""YAML of others: every fault is a YAMLError, and aliases do not multiply a document."""

from __future__ import annotations

import pytest
import yaml

from volcano_py.api import yaml_documents

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(c + 1)}: &{chr(c + 1)} [{', '.join([f'*{chr(c)}'] * 9)}]\n" for c in range(ord("a"), ord("i"))
)


def test_a_document_with_aliases() -> None:
    assert yaml_documents.load("a: &x {b: 1}\nc: *x\n") == {"a": {"b": 1}, "c": {"b": 1}}
    assert yaml_documents.load_all("a: 1\n---\nb: 2\n") == [{"a": 1}, {"b": 2}]
    assert yaml_documents.load(b"") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BOMB, "aliases"),
        ("a: &a [*a]\n", "nested too deep"),
        ("a: &a {b: *a}\n", "nested too deep"),
        ("[" * 3000, "nested too deep"),
        ("{a: [" * 600, "nested too deep"),
        ("a: !!timestamp x\n", "does not fit"),
        ("a: 2026-02-30\n", "does not fit"),
        ("a: !!int ''\n", "does not fit"),
        ("a: !!bool maybe\n", "does not fit"),
    ],
)
def test_faults_that_the_parser_does_not_declare(text: str, why: str) -> None:
    for read in (yaml_documents.load, yaml_documents.load_all):
        with pytest.raises(yaml.YAMLError, match=why):
            read(text)


def test_a_fault_of_the_parser_keeps_its_position() -> None:
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        yaml_documents.load("a: 1\nb: [\n")
    assert caught.value.problem_mark is not None and caught.value.problem_mark.line == 2
