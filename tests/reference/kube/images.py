"""Image locality."""

from __future__ import annotations

from tests.reference.kube.selectors import Pod
from tests.reference.node import Node

MIB = 1024 * 1024
LEAST = 23 * MIB
MOST_PER_CONTAINER = 1000 * MIB


def score(pod: Pod, node: Node, nodes: dict[str, Node]) -> int:
    containers = [*(pod["spec"].get("initContainers") or []), *(pod["spec"].get("containers") or [])]
    if not containers:
        return 0
    total = 0
    for container in containers:
        image = _tagged(container.get("image") or "")
        if image not in _images(node):
            continue
        # As recorded when the node was added: the nodes that had the image then, and its size on the first of them.
        by_then = []
        for other in nodes.values():
            if image in _images(other):
                by_then.append(_images(other)[image])
            if other.name == node.name:
                break
        total += int(by_then[0] * (len(by_then) / len(nodes)))
    most = MOST_PER_CONTAINER * len(containers)
    total = min(max(total, LEAST), most)
    return 100 * (total - LEAST) // (most - LEAST)


def _images(node: Node) -> dict[str, int]:
    found = {}
    for image in (node.manifest.get("status") or {}).get("images") or []:
        for name in image.get("names") or []:
            found.setdefault(name, image.get("sizeBytes", 0))
    return found


def _tagged(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"
