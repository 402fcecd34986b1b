"""Admission of Queues: defaults, and validation of the hierarchy. Volcano: /queues/mutate and /queues/validate.

Functions over plain manifests; validation returns all problems, an empty list means that the request is allowed.
Unlike Volcano, moving a queue below itself is denied.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from volcano_py.api import names
from volcano_py.api.scheduling import DEFAULT_QUEUE, QUEUE_CLOSED, QUEUE_OPEN, ROOT_QUEUE
from volcano_py.webhooks import identifiers
from volcano_py.webhooks.lookup import Manifest, Queues, about, parent_of, state_of
from volcano_py.webhooks.resources import amounts, check_amounts

MAX_DEPTH = 5
"""Default limit for the levels of queues below root."""

_RESOURCE_FIELDS = ("capability", "deserved", "guarantee")


def mutate_queue(queue: Manifest) -> dict[str, Any]:
    """The queue with its defaults set; the argument is not changed."""
    mutated = copy.deepcopy(dict(queue))
    annotations = mutated.get("metadata", {}).get("annotations") or {}
    path, weights = annotations.get(names.HIERARCHY), annotations.get(names.HIERARCHY_WEIGHTS)
    if path and weights and not path.startswith(ROOT_QUEUE):
        annotations[names.HIERARCHY] = f"{ROOT_QUEUE}/{path}"
        annotations[names.HIERARCHY_WEIGHTS] = f"1/{weights}"
    spec = mutated.setdefault("spec", {})
    if spec.get("reclaimable") is None:
        spec["reclaimable"] = True
    spec["weight"] = spec.get("weight") or 1
    return mutated


def validate_queue(
    queue: Manifest,
    queues: Queues,
    old: Manifest | None = None,
    *,
    max_depth: int = MAX_DEPTH,
    protect_root: bool = True,
) -> list[str]:
    """Problems of a new queue, or of the update of `old` to it."""
    name = queue["metadata"]["name"]
    changed = {
        field: old is None or (_spec(queue).get(field) or None) != (_spec(old).get(field) or None)
        for field in (*_RESOURCE_FIELDS, "parent")
    }
    problems = [*_check_resources(queue), *_check_state(queue), *_check_hierarchy(queue, queues)]
    if old is None:
        problems.extend(_check_name(name))
    if changed["parent"]:
        problems.extend(check_parent(queue, queues, max_depth))
    if name == ROOT_QUEUE:
        if old is not None and protect_root and any(changed[field] for field in _RESOURCE_FIELDS):
            problems.append("root queue's resource attributes (capability, deserved, guarantee) cannot be modified")
    elif any(changed.values()):
        problems.extend(check_against_parent(queue, queues))
        children = [child for child in queues.children(name) if child["metadata"]["name"] != name]
        problems.extend(check_against_children(queue, children, queues))
    return about("queue", queue, problems)


def validate_queue_delete(name: str, queues: Queues, *, check_allocated_pods: bool = False) -> list[str]:
    """Why a queue must not be deleted; empty if it may be."""
    if name in (DEFAULT_QUEUE, ROOT_QUEUE):
        return [f"`{name}` queue can not be deleted"]
    queue = queues.get(name)
    if queue is None:
        return [f"queue {name!r} not found"]
    problems = []
    if check_allocated_pods and (pods := _allocated_pods(queue)):
        problems.append(f"queue {name} cannot be deleted because it has allocated Pods: {pods}")
    if children := queues.children(name):
        listed = ", ".join(child["metadata"]["name"] for child in children)
        problems.append(f"queue {name} can not be deleted because it has {len(children)} child queues: {listed}")
    return problems


def _spec(queue: Manifest) -> Mapping[str, Any]:
    return queue.get("spec") or {}


def _resources(queue: Manifest, field: str) -> dict[str, Fraction]:
    return amounts(_texts(queue, field))


def _texts(queue: Manifest, field: str) -> Mapping[str, Any]:
    """The resources of a field as strings; those of `guarantee` are one level deeper."""
    value = _spec(queue).get(field) or {}
    return (value.get("resource") or {}) if field == "guarantee" else value


def _allocated_pods(queue: Manifest) -> int:
    return int(amounts((queue.get("status") or {}).get("allocated")).get("pods", 0))


def _check_name(name: str) -> Iterator[str]:
    if problem := identifiers.label_value(name):
        yield (
            f"metadata.name: Invalid value: {name!r}: pods of the queue have its name in the label "
            f"{names.QUEUE_NAME}, a value of which {problem}; create a queue with a shorter name"
        )


def _check_resources(queue: Manifest) -> Iterator[str]:
    """guarantee <= deserved <= capability; every guaranteed resource must be deserved."""
    for field in _RESOURCE_FIELDS:
        path = "spec.guarantee.resource" if field == "guarantee" else f"spec.{field}"
        yield from check_amounts(path, _texts(queue, field))
    guarantee, deserved, capability = (_resources(queue, field) for field in ("guarantee", "deserved", "capability"))
    for name, amount in guarantee.items():
        if name not in deserved or deserved[name] < amount:
            text = _texts(queue, "guarantee")[name]
            yield f"spec.deserved.{name}: deserved[{name}] must be >= guarantee[{name}]={text}"
    for name, amount in deserved.items():
        if name in capability and amount > capability[name]:
            text = _texts(queue, "capability")[name]
            yield f"spec.deserved.{name}: deserved[{name}] must be <= capability[{name}]={text}"


def _check_state(queue: Manifest) -> Iterator[str]:
    state = state_of(queue)
    if state not in ("", QUEUE_OPEN, QUEUE_CLOSED):
        yield f"status.state: Invalid value: {state!r}: queue state must be in [{QUEUE_OPEN} {QUEUE_CLOSED}]"


def _check_hierarchy(queue: Manifest, queues: Queues) -> Iterator[str]:
    """The annotations of hierarchical fair sharing: a path, and one weight for each of its parts."""
    annotations = queue["metadata"].get("annotations") or {}
    path, weights = annotations.get(names.HIERARCHY, ""), annotations.get(names.HIERARCHY_WEIGHTS, "")
    if not path and not weights:
        return
    if path.count("/") != weights.count("/") or not path or not weights:
        keys = f"{names.HIERARCHY} must have the same length with {names.HIERARCHY_WEIGHTS}"
        yield f"metadata.annotations: {keys}"
        return
    for weight in weights.split("/"):
        try:
            number = float(weight)
        except ValueError:
            yield f"metadata.annotations: {weight} in the {weights} is invalid number"
            continue
        if number <= 0:
            yield f"metadata.annotations: {weight} in the {weights} must be larger than 0"
    for other in queues.all():
        theirs = (other["metadata"].get("annotations") or {}).get(names.HIERARCHY, "")
        if other["metadata"]["name"] != queue["metadata"]["name"] and theirs.startswith(path + "/"):
            yield (
                f"metadata.annotations: {path} is not allowed to be in the sub path of {theirs} "
                f"of queue {other['metadata']['name']}"
            )


def check_parent(queue: Manifest, queues: Queues, max_depth: int) -> Iterator[str]:
    name, parent_name = queue["metadata"]["name"], _spec(queue).get("parent") or ROOT_QUEUE
    if parent_name == name:
        if name != ROOT_QUEUE:
            yield f"queue {name} cannot use itself as parent"
        return
    if parent_name == ROOT_QUEUE:
        return
    parent = queues.get(parent_name)
    if parent is None:
        yield f"failed to get parent queue {parent_name} of queue {name}: queue {parent_name!r} not found"
        return
    ancestors = _ancestors(queue, queues)
    if any(ancestor["metadata"]["name"] == name for ancestor in ancestors):
        yield f"queue {name} cannot be moved below {parent_name}, its own descendant: that would be a cycle"
    if len(ancestors) + 1 > max_depth:
        yield f"queue {name} exceeds the maximum allowed depth of {max_depth}"
    if not queues.children(parent_name) and (pods := _allocated_pods(parent)):
        yield (f"queue {parent_name} cannot be the parent queue of queue {name} because it has allocated Pods: {pods}")


def _ancestors(queue: Manifest, queues: Queues) -> list[Manifest]:
    """The parent, its parent and so on, without root; ends at a cycle or a missing queue."""
    found: list[Manifest] = []
    seen = set[str]()
    name = parent_of(queue)
    while name and name != ROOT_QUEUE and name not in seen:
        seen.add(name)
        ancestor = queues.get(name)
        if ancestor is None:
            break
        found.append(ancestor)
        name = parent_of(ancestor)
    return found


def check_against_parent(queue: Manifest, queues: Queues) -> Iterator[str]:
    """Children of root are not compared with root's resources; an ancestor without a field does not limit it."""
    name = queue["metadata"]["name"]
    ancestors = [ancestor for ancestor in _ancestors(queue, queues) if ancestor["metadata"]["name"] != name]
    if not ancestors:
        return
    limits = [_resources(ancestor, "capability") for ancestor in ancestors]
    for resource, amount in _resources(queue, "capability").items():
        limit = next((one[resource] for one in limits if one.get(resource, 0) > 0), None)
        if limit is not None and amount > limit:
            yield (
                f"queue {name} capability[{resource}]={_texts(queue, 'capability')[resource]} "
                f"exceeds its ancestor's capability={float(limit):g}"
            )
    for field in ("guarantee", "deserved"):
        limiting = next((ancestor for ancestor in ancestors if _texts(ancestor, field)), None)
        if limiting is not None and (problem := _check_sum(field, limiting, queues, queue)):
            which = "parent queue" if limiting is ancestors[0] else "queue"
            yield f"{which} {limiting['metadata']['name']} validation failed: {problem}"


def check_against_children(queue: Manifest, children: list[Manifest], queues: Queues) -> Iterator[str]:
    """The descendants of a queue, with `children` as the first level, fit into it."""
    name = queue["metadata"]["name"]
    if not children:
        return
    own = _resources(queue, "capability")
    needed = _highest(children, queues, frozenset((name,))) if own else {}
    for resource, amount in own.items():
        highest = needed.get(resource, Fraction(0))
        if amount < highest:
            yield (
                f"queue {name} capability[{resource}]={_texts(queue, 'capability')[resource]} "
                f"is smaller than its descendants' max capability={float(highest):g}"
            )
    for field in ("guarantee", "deserved"):
        if _texts(queue, field) and (problem := _check_sum(field, queue, queues, queue)):
            yield f"queue {name} validation failed: {problem}"


def _highest(children: Iterable[Manifest], queues: Queues, seen: frozenset[str]) -> dict[str, Fraction]:
    """The highest capability of some queues, by resource; one without a resource counts as its own children."""
    highest: dict[str, Fraction] = {}
    for child in children:
        name = child["metadata"]["name"]
        own = _resources(child, "capability")
        below = {} if name in seen else _highest(queues.children(name), queues, seen | {name})
        for resource in {*own, *below}:
            amount = own.get(resource, Fraction(0))
            if amount <= 0:
                amount = below.get(resource, Fraction(0))
            highest[resource] = max(highest.get(resource, amount), amount)
    return highest


def _check_sum(field: str, parent: Manifest, queues: Queues, changed: Manifest) -> str:
    """The sum of the children's field is within the parent's; a resource that the parent lacks counts as zero."""
    name = parent["metadata"]["name"]
    total = _sum(field, _children(name, queues, changed), queues, changed, frozenset((name,)))
    limit = _resources(parent, field)
    over = [
        f"{resource} {float(amount):g} > {float(limit.get(resource, 0)):g}"
        for resource, amount in sorted(total.items())
        if amount > limit.get(resource, 0)
    ]
    return f"sum of children's {field} exceeds parent's {field} limit ({', '.join(over)})" if over else ""


def _sum(
    field: str, children: Iterable[Manifest], queues: Queues, changed: Manifest, seen: frozenset[str]
) -> dict[str, Fraction]:
    """The sum over queues; one without the field limits nothing and counts as the sum of its own children."""
    total: dict[str, Fraction] = {}
    for child in children:
        name = child["metadata"]["name"]
        if name in seen:
            continue
        own = _resources(child, field) if _texts(child, field) else None
        if own is None:
            own = _sum(field, _children(name, queues, changed), queues, changed, seen | {name})
        for resource, amount in own.items():
            total[resource] = total.get(resource, Fraction(0)) + amount
    return total


def _children(name: str, queues: Queues, changed: Manifest) -> list[Manifest]:
    """The children of a queue, with the queue of the request as it will be."""
    kept = [child for child in queues.children(name) if child["metadata"]["name"] != changed["metadata"]["name"]]
    return [*kept, changed] if parent_of(changed) == name else kept
