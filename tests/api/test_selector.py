"""Requirements of selectors: every operator, with and without a value."""

from __future__ import annotations

import pytest

from volcano_py.api import selector
from volcano_py.api.meta import LabelSelector, LabelSelectorRequirement


@pytest.mark.parametrize(
    ("operator", "value", "values", "expected"),
    [
        ("In", "a", ["a", "b"], True),
        ("In", "c", ["a", "b"], False),
        ("In", None, ["a"], False),
        ("NotIn", "a", ["a"], False),
        ("NotIn", "c", ["a"], True),
        ("NotIn", None, ["a"], True),
        ("Exists", "", [], True),
        ("Exists", None, [], False),
        ("DoesNotExist", None, [], True),
        ("DoesNotExist", "", [], False),
        ("Gt", "10", ["9"], True),
        ("Gt", "9", ["9"], False),
        ("Lt", "-1", ["0"], True),
        ("Lt", "1", ["0"], False),
        ("Gt", None, ["0"], False),
        ("Lt", "x", ["0"], False),
        ("Gt", "1", ["x"], False),
    ],
)
def test_holds(operator: str, value: str | None, values: list[str], expected: bool) -> None:
    assert selector.holds(operator, value, values) is expected


def test_an_unknown_operator_is_rejected() -> None:
    with pytest.raises(ValueError, match="'Near' is unknown"):
        selector.holds("Near", "a", ["a"])


@pytest.mark.parametrize("operator", ["Gt", "Lt", "in"])
def test_label_selectors_have_four_operators(operator: str) -> None:
    rows = [LabelSelectorRequirement(key="k", operator=operator, values=["1"])]
    with pytest.raises(ValueError, match="use In, NotIn, Exists or DoesNotExist"):
        selector.matches(LabelSelector(match_expressions=rows), {"k": "2"})
