"""A note about queues whose deserved amounts have no effect, because no action reclaims. Not in Volcano."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from volcano_py.api.kinds import CONFIGMAP
from volcano_py.cli.queue_tree import Branch
from volcano_py.kube.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

NAMESPACE, NAME, KEY = "volcano-system", "volcano-scheduler-configmap", "volcano-scheduler.conf"
"""The ConfigMap of Volcano's chart with the configuration."""
RECLAIMING = {"reclaim", "gangreclaim"}
NOTE = (
    "No action of the configuration reclaims, so a queue waits for what it deserves until other queues release it: "
    "add reclaim to the actions"
)


async def without_reclaim(client: Client, trees: list[Branch]) -> str:
    """The note, if a queue has deserved amounts and the configuration has no action that reclaims; else empty, also if
    the user may not read the configuration."""
    if not any(_deserves(b) for b in trees):
        return ""
    try:
        found = await client.get(CONFIGMAP, NAME, NAMESPACE)
    except (Forbidden, NotFound):
        return ""
    actions = _actions((found.get("data") or {}).get(KEY) or "")
    return NOTE if actions and not actions & RECLAIMING else ""


def _deserves(branch: Branch) -> bool:
    return any(amount > 0 for amount in branch.deserved.values()) or any(_deserves(b) for b in branch.children)


def _actions(text: str) -> set[str]:
    import yaml

    from volcano_py.api import yaml_documents

    try:
        document: Any = yaml_documents.load(text)
    except yaml.YAMLError:
        return set()
    actions = document.get("actions") if isinstance(document, dict) else None
    return {name.strip() for name in str(actions or "").split(",")} - {""}
