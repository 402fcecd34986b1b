"""Patterns of node names: many patterns, large patterns, and what they match together."""

from __future__ import annotations

import re

import pytest
import re2  # type: ignore[import-untyped]

from volcano_py.api import node_patterns
from volcano_py.api.node_patterns import MAX_LENGTH, MAX_PATTERNS, Budget, InvalidPattern, TooCostly, matching

NODES = [f"rack-{r}-node-{i}" for r in range(40) for i in range(5)] + ["gpu-7", "GPU-7", "a|b", "n"]
PATTERNS = [
    *(f"^rack-{r}-node-[0-9]+$" for r in range(50)),
    *("node-3$", "^rack", "^rack-1", "^(rack-2|gpu)-", "^rack-3|gpu", "^a|b", "^r?", "^[]r]", "^[^]r]", "(?i)^gpu-7$"),
    *("^\\(|7", "^gpu-7$", "", "^", "$", "^\\Qa|b\\E$", "^(?:rack-1-node-0|n)$", "^rack-1-(node|x)-[0-3]", "^[|]|n$"),
]


def test_patterns_that_are_matched_together_match_what_each_matches_alone() -> None:
    found = matching(PATTERNS, NODES)
    for pattern in PATTERNS:
        if "\\Q" not in pattern:
            assert found[pattern] == sorted(n for n in NODES if re.search(pattern, n)), pattern
    assert found["^\\Qa|b\\E$"] == ["a|b"]


def test_patterns_that_re2_cannot_compile_together_are_matched_in_smaller_groups() -> None:
    large = [f"[a-z0-9-]{{1,{500 + i}}}x{i}$" for i in range(40)]
    together = re2.Set.SearchSet()
    with pytest.raises(re2.error):
        for pattern in large * 20:
            together.Add(pattern)
        together.Compile()
    names = [f"node-x{i}" for i in range(40)]
    found = matching([*large, "^node"], names)
    assert all(f"node-x{i}" in found[pattern] for i, pattern in enumerate(large))
    assert found["^node"] == sorted(names)


@pytest.mark.parametrize("fails", ["Compile", "Match"])
def test_a_failure_of_patterns_together_does_not_lose_a_name(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Limited(re2.Set):  # type: ignore[misc]
        """A Set that has memory for two patterns, and the one that always matches."""

        def __init__(self) -> None:
            super().__init__(re2._Anchor.UNANCHORED, node_patterns._QUIET)
            self.size = 0

        @classmethod
        def SearchSet(cls, options: object = None) -> Limited:
            return cls()

        def Add(self, pattern: str) -> int:
            self.size += 1
            return int(super().Add(pattern))

        def Compile(self) -> None:
            if fails == "Compile" and self.size > 3:
                raise re2.error("failed to compile Set")
            super().Compile()

        def Match(self, text: str) -> object:
            return None if fails == "Match" and self.size > 3 and "x3" in text else super().Match(text)

    monkeypatch.setattr(re2, "Set", Limited)
    names = [f"node-x{i}" for i in range(9)]
    found = matching([f"x{i}$" for i in range(9)], names)
    assert found == {f"x{i}$": [f"node-x{i}"] for i in range(9)}


def test_ten_thousand_patterns_with_a_literal_prefix_are_no_common_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(re2, "Set", None)
    found = matching(
        [f"^rack-{i}-node-[0-9]+$" for i in range(10_000)], [f"rack-{i}-node-0" for i in range(0, 10_000, 9)]
    )
    assert sum(map(len, found.values())) == 1112 and found["^rack-9-node-[0-9]+$"] == ["rack-9-node-0"]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a(b", "use RE2 syntax"),
        ("x" * (MAX_LENGTH + 1), "it has 16385 characters, more than 16384"),
        ("[a-z]{1,1000}" * 11, "it compiles to more than 20000 instructions"),
        ("\\pL{1,500}", "it compiles to more than 20000 instructions"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_a_pattern_that_cannot_be_used(pattern: str, why: str) -> None:
    with pytest.raises(InvalidPattern, match=why):
        Budget().use(pattern)
    assert matching([pattern, "^n"], ["n0"]) == {"^n": ["n0"]}


def test_the_budget_of_one_object() -> None:
    budget = Budget()
    for i in range(MAX_PATTERNS):
        budget.use(f"^n{i}$")
    budget.use("^n0$")  # counted already
    with pytest.raises(TooCostly, match="more than 1000 different patterns"):
        budget.use("one more")
    budget, failed = Budget(), 0
    with pytest.raises(TooCostly, match="more than 100000 instructions"):
        for i in range(100):
            try:
                budget.use(f"\\pL{{1,{500 + i}}}")
            except TooCostly:
                raise
            except InvalidPattern:
                failed += 1
    assert failed == 5  # each counts as the largest pattern
