"""Whether the nodes have the image that the chart installs. A Deployment whose image does not exist replaces Volcano by
pods that never start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from volcano_py import __version__

DEFAULT_IMAGE = f"volcano-py/volcano-py:{__version__}"
"""The image of the chart's values."""
HOW = "docs/installation.md#the-image"
_MOST_REPORTED = 50
"""kubelet reports this number of images at most (nodeStatusMaxImages)."""


def missing_image(nodes: list[dict[str, Any]], image: str) -> Iterator[tuple[bool, str, str]]:
    """(whether it certainly fails, what is missing, remedy)."""
    named = [_images(node) for node in nodes]
    have = sum(_plain(image) in names for names in named)
    unsure = any(len(names) >= _MOST_REPORTED and _plain(image) not in names for names in named)
    if not nodes or have == len(nodes):
        return
    where = f"on {have} of {len(nodes)} nodes" if have else f"on none of the {len(nodes)} nodes"
    if len(nodes) == 1:
        where = "not on the node"
    if _names_registry(image) or unsure:
        remedy = f"check that every node can pull it: docker manifest inspect {image} ({HOW})"
        yield False, f"image {image} is {where}; the others pull it", remedy
        return
    remedy = f"build it, and load it into the nodes or push it to a registry ({HOW}); then set --image"
    yield True, f"image {image} is {where}, and names no registry to pull it from", remedy


def _images(node: dict[str, Any]) -> set[str]:
    images = (node.get("status") or {}).get("images") or ()
    return {_plain(name) for image in images for name in image.get("names") or ()}


def _plain(name: str) -> str:
    """Without the registry that container runtimes add to names that have none."""
    for prefix in ("docker.io/library/", "docker.io/", "localhost/"):
        name = name.removeprefix(prefix)
    return name


def _names_registry(image: str) -> bool:
    first, slash, _ = image.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost")
