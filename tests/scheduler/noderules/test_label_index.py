"""The index leaves out only objects that do not match, and finds each match once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from volcano_py.api.meta import LabelSelector, LabelSelectorRequirement
from volcano_py.api.selector import matches
from volcano_py.scheduler.noderules.label_index import ByLabels, BySelector

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
LABELS = st.dictionaries(KEYS, VALUES)
REQUIREMENTS = st.builds(
    LabelSelectorRequirement,
    key=KEYS,
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    values=st.lists(VALUES, max_size=3),
)
SELECTORS = st.none() | st.builds(
    LabelSelector,
    match_labels=st.none() | st.dictionaries(KEYS, VALUES, max_size=2),
    match_expressions=st.none() | st.lists(REQUIREMENTS, max_size=2),
)


@given(st.lists(LABELS, max_size=8), SELECTORS)
def test_labels_by_selector(label_sets: list[dict[str, str]], selector: LabelSelector | None) -> None:
    index: ByLabels[int] = ByLabels()
    for i, labels in enumerate(label_sets):
        index.add(i, labels)
    found = Counter(index.candidates(selector))
    assert max(found.values(), default=1) == 1
    assert {i for i, labels in enumerate(label_sets) if matches(selector, labels)} <= set(found)


@given(st.lists(SELECTORS, max_size=8), LABELS)
def test_selectors_by_labels(selectors: list[LabelSelector | None], labels: dict[str, str]) -> None:
    index: BySelector[int] = BySelector()
    for i, selector in enumerate(selectors):
        index.add(i, selector)
    found = Counter(index.candidates(labels))
    assert max(found.values(), default=1) == 1
    assert {i for i, selector in enumerate(selectors) if matches(selector, labels)} <= set(found)


def test_only_objects_with_the_label_are_evaluated() -> None:
    index: ByLabels[int] = ByLabels()
    for i in range(1000):
        index.add(i, {"app": f"a{i}", "tier": "web"})
    assert list(index.candidates(LabelSelector(match_labels={"tier": "web", "app": "a7"}))) == [7]
    values = LabelSelectorRequirement(key="app", operator="In", values=["a1", "a1", "none"])
    assert list(index.candidates(LabelSelector(match_expressions=[values]))) == [1]
