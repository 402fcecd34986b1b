"""Native groups (scheduling.k8s.io) of a cluster: what becomes a gang here, and what an upgrade to Kubernetes 1.37
requires. Volcano reads none of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from volcano_py.api import names
from volcano_py.api.kinds import COMPOSITE_PODGROUP, NATIVE_PODGROUPS, POD
from volcano_py.api.resource_types import NATIVE_PODGROUP, ResourceType, namespaced_kind
from volcano_py.kube.client import Client
from volcano_py.kube.errors import ApiError, NotFound
from volcano_py.kube.served import served

Manifest = dict[str, Any]
Weight = Literal["blocks", "changes", "note"]
UPGRADE = "docs/native-gangs.md#upgrade-from-136-to-137"


@dataclass
class NativeFacts:
    """Manifests. `version`: in which PodGroups are served; empty: they are not."""

    version: str = ""
    groups: list[Manifest] = field(default_factory=list)
    composites: list[Manifest] = field(default_factory=list)
    workloads: list[Manifest] = field(default_factory=list)
    pods: list[Manifest] = field(default_factory=list)
    """Pods that name a group."""


async def read_native(client: Client, unread: list[str]) -> NativeFacts:
    """Read the groups, and pods if there are groups. `unread`: gets what cannot be read, with the reason."""
    facts = NativeFacts()
    try:
        rt = await served(client, NATIVE_PODGROUPS)
    except ApiError as error:
        unread.append(f"versions of {NATIVE_PODGROUP.group}: {error}")
        return facts
    if rt is None:
        return facts
    facts.version = rt.version
    workload = namespaced_kind(rt.api_version, "workloads", "Workload")
    facts.groups = await _list(client, rt, unread)
    facts.workloads = await _list(client, workload, unread)
    facts.composites = await _list(client, COMPOSITE_PODGROUP, unread)
    if facts.groups:
        facts.pods = [p for p in await _list(client, POD, unread) if _group_of(p)]
    return facts


async def _list(client: Client, rt: ResourceType, unread: list[str]) -> list[Manifest]:
    try:
        return [dict(found) for found in await client.list(rt, None)]
    except NotFound:
        return []
    except ApiError as error:
        unread.append(f"{rt.plural}.{rt.group}: {error}" if rt.group else f"{rt.plural}: {error}")
        return []


def native_findings(facts: NativeFacts) -> Iterator[tuple[Weight, str, str]]:
    """Weight, what is different, and the action to take."""
    ours = [p for p in facts.pods if (p.get("spec") or {}).get("schedulerName") == names.SCHEDULER_NAME]
    if ours:
        yield (
            "changes",
            f"{_counted(len(ours), 'pod')} of schedulerName {names.SCHEDULER_NAME} {_verb(ours, 'name')} a PodGroup of "
            f"{NATIVE_PODGROUP.group}, which Volcano ignores; volcano_py schedules the members of each as a gang",
            "read docs/native-gangs.md",
        )
    twice = sorted(_key(p) for p in ours if _volcano_group(p) and not p["spec"].get("nodeName"))
    if twice:
        shown = ", ".join(twice[:3]) + (f" and {len(twice) - 3} more" if len(twice) > 3 else "")
        yield (
            "blocks",
            f"{_counted(len(twice), 'pending pod')} ({shown}) {_verb(twice, 'name')} a PodGroup of "
            f"{NATIVE_PODGROUP.group}, and one of Volcano in the annotation {names.GROUP_NAME}",
            "remove one of them: delete the annotation, which Volcano's controller has set, or create the pods again",
        )
    old = [(facts.groups, "PodGroup"), (facts.workloads, "Workload")]
    if facts.version == NATIVE_PODGROUP.version and any(of for of, _ in old):
        what = " and ".join(_counted(len(of), kind) for of, kind in old if of)
        yield (
            "note",
            f"{what} of {NATIVE_PODGROUP.api_version} exist, a version that Kubernetes 1.37 does not have",
            f"before an upgrade to 1.37 save them with `volcano-py migrate groups` and delete them: {UPGRADE}",
        )
    if facts.composites:
        yield (
            "changes",
            f"{_counted(len(facts.composites), 'CompositePodGroup')} {_verb(facts.composites, 'exist')}: the pods "
            "below each root are one job of volcano_py, with the queue and the priority of the root",
            "set the label volcano.sh/queue-name of the roots; read docs/native-gangs.md#groups-of-groups",
        )


def _group_of(pod: Manifest) -> str:
    return str(((pod.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName") or "")


def _volcano_group(pod: Manifest) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(names.GROUP_NAME) or "")


def _key(pod: Manifest) -> str:
    return f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _verb(of: list[Any], verb: str) -> str:
    return f"{verb}s" if len(of) == 1 else verb
