"""One search for a node as data: its inputs beside the model, and the outcome. Not in Kubernetes.

A search is a pure function of the model, the profile and these inputs, so a recording can run it again.
"""

from __future__ import annotations

from msgspec import Struct


class SearchOutcome(Struct):
    """What a search found: a node, or why there is none."""

    node: str = ""
    message: str = ""
    rejected_by: list[str] = []
    """The plugins that rejected the pod, sorted."""
    nominated: str | None = None
    """The node that evictions free; empty to clear the nomination; None to leave it unchanged."""
    victims: list[str] = []
    error: bool = False


class Search(Struct):
    """One search. `pod` is `namespace/name`; `now` is monotonic, in seconds."""

    pod: str
    now: float
    start: int
    """Where the search over a part of the nodes begins (`percentageOfNodesToScore`)."""
    nominated: dict[str, str]
    """The nominated nodes of the pods of profiles."""
    outcome: SearchOutcome
