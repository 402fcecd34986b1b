"""Sets of completion indexes in the format of a Job's status: `0-2,5`. Kubernetes: indexed_job_utils.go."""

from __future__ import annotations

from collections.abc import Iterable


def parse(text: str, completions: int) -> set[int]:
    """The indexes below `completions`."""
    out: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        out.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return out


def render(indexes: Iterable[int]) -> str:
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
