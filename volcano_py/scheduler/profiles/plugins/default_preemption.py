"""Evicting pods of lower priority when no node fits. Kubernetes: DefaultPreemption and framework/preemption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeVar

import msgspec

from volcano_py.api.core import PodDisruptionBudget
from volcano_py.api.selector import is_empty, matches
from volcano_py.scheduler.profiles.attempts.messages import no_node_fits
from volcano_py.scheduler.profiles.groups.units import Units
from volcano_py.scheduler.profiles.observations import SeenPreemption
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    Candidate,
    PodGroupPostFilter,
    PostFilter,
    PostFilterResult,
)
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.rejected_group import PodGroupPostFilterResult, RejectedGroup
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Code, Status, unresolvable, unschedulable
from volcano_py.scheduler.profiles.plugins.gangs.whole_gangs import WholeGangs

T = TypeVar("T")
_Unit = tuple[PodInfo, ...]
"""Pods of a node that are evicted together: a single pod, or the members of a gang that is evicted as a whole."""

BY_SCHEDULER = "PreemptionByScheduler"
"""The reason of the condition DisruptionTarget of victims."""
_SHIFT = 2**31
"""An offset that makes every priority non-negative, so that more victims never cost less."""
_NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
_NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")


class PreemptionArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class DefaultPreemption(PostFilter, PodGroupPostFilter):
    name = "DefaultPreemption"

    def __init__(self, args: PreemptionArguments, handle: Handle) -> None:
        self._args = args
        self._cluster = handle.cluster
        self._filters = handle.filters
        self._handle = handle
        in_units = handle.release.whole_groups and handle.release.gang_gate in handle.features
        self._gangs = Units(handle.cluster, handle.tree) if in_units else WholeGangs(handle.cluster)
        self._budgets: list[PodDisruptionBudget] = []
        """The budgets of the last attempt; a change of a budget creates another list."""
        self._covering: dict[str, tuple[PodInfo, list[int]]] = {}
        """The positions of the budgets that a pod's eviction counts against, by the pod's key."""

    def post_filter(self, state: CycleState, pod: PodInfo, rejected: dict[str, Status]) -> PostFilterResult:
        why = self.not_eligible(pod, rejected)
        if why:
            return PostFilterResult(unschedulable(f"preemption: {why}"))
        with self._handle.observe_preemption() as seen:
            result = self._find(state, pod, rejected, seen)
            seen.result = result.status.code.value
        return result

    def _find(
        self, state: CycleState, pod: PodInfo, rejected: dict[str, Status], seen: SeenPreemption
    ) -> PostFilterResult:
        """Nominate the node of the best candidate, and return its victims."""
        candidates, statuses = self.candidates(state, pod, rejected)
        for reviewer in self._handle.reviewers if candidates else ():
            reviewed = reviewer.review(state, pod, candidates)
            if isinstance(reviewed, Status):
                return PostFilterResult(reviewed)
            candidates = [*reviewed]
        if not candidates:
            names = self._cluster.nodes
            message = no_node_fits({n: statuses.get(n, _NOT_HELPFUL) for n in names}, len(names))
            return PostFilterResult(unschedulable(f"preemption: {message}"), nominated="")
        if any(v.group for c in candidates for v in c.victims):
            whole = [c._replace(victims=self._gangs.fallen(c.victims)) for c in candidates]
            best = choose(whole, self._gangs.priority)
        else:
            best = choose(candidates)
        victims = tuple(v for v in best.victims if not v.terminating)
        seen.victims, seen.violations = len(victims), best.violations
        seen.units = len(self._gangs.together(victims))
        status = SUCCESS
        if self._handle.release.states_victims:
            found = f"found a potential placement for pod on node {best.node}, preempting {len(best.victims)} victims"
            status = Status(Code.SUCCESS, (f"preemption: {found}",))
        return PostFilterResult(status, best.node, victims)

    def pod_group_post_filter(self, group: RejectedGroup) -> PodGroupPostFilterResult:
        return group.evict_weaker()

    def not_eligible(self, pod: PodInfo, rejected: dict[str, Status]) -> str:
        """Why the pod may not evict others now; empty if it may."""
        if pod.pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        nominated = pod.pod.status.nominated_node_name
        status = rejected.get(nominated)
        node = self._cluster.nodes.get(nominated)
        if node is None or (status is not None and status.code is Code.UNRESOLVABLE):
            return ""
        if any(evicted_by_scheduler(p) and self._gangs.fall_for(p, pod) for p in node.pods.values()):
            return "not eligible due to a terminating pod on the nominated node."
        return ""

    def candidates(
        self, state: CycleState, pod: PodInfo, rejected: dict[str, Status]
    ) -> tuple[list[Candidate], dict[str, Status]]:
        """Nodes on which evictions would help, and why the other nodes are no candidates."""
        budgets = list(self._cluster.budgets.values())
        if len(budgets) != len(self._budgets) or any(a is not b for a, b in zip(budgets, self._budgets, strict=True)):
            self._budgets = budgets
            self._covering.clear()
        nodes = ((i, rejected.get(i.name)) for i in self._cluster.in_order())
        tried = [i for i, status in nodes if status is not None and status.code is Code.UNSCHEDULABLE]
        enough = len(tried) * self._args.min_candidate_nodes_percentage // 100
        enough = min(max(enough, self._args.min_candidate_nodes_absolute), len(tried))
        found: list[Candidate] = []
        statuses: dict[str, Status] = {}
        for node in tried:
            candidate, status = self._known(state, pod, node)
            if candidate is None:
                statuses[node.name] = status
                continue
            found.append(candidate)
            if len(found) >= enough and any(not c.violations for c in found):
                break
        return found, statuses

    def _known(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> tuple[Candidate | None, Status]:
        """The candidate for a node; kept for equal pods until the node or a budget changes, unless gangs with members
        on other nodes may be among the victims."""
        kept = state.per_node
        if kept is None or node.in_groups or self._cluster.nominated_node(pod) == node.name:
            return self._on_node(state.clone(), pod, node.clone())
        known: tuple[Candidate | None, Status, object] | None = kept.get(node.name)
        if known is None or known[2] is not self._budgets:
            known = kept[node.name] = (*self._on_node(state.clone(), pod, node.clone()), self._budgets)
        return known[:2]

    def _on_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> tuple[Candidate | None, Status]:
        """The fewest victims on a node (both arguments are copies that may be changed)."""
        in_groups = bool(node.in_groups)
        if in_groups:
            weaker = [p for p in node.pods.values() if self._gangs.fall_for(p, pod)]
        else:
            weaker = [p for p in node.pods.values() if p.priority < pod.priority]
        if not weaker:
            return None, _NO_VICTIMS
        for p in weaker:
            self._remove(state, pod, p, node)
        status = self._filters.filter_with_nominated(state, pod, node)
        if not status.ok:
            return None, status
        units = self._gangs.together(weaker) if in_groups else [(p,) for p in weaker]
        units.sort(key=self._importance)
        violating, others = split_by_budgets(units, self._budgets, self._counts_against)
        victims: list[PodInfo] = []
        violations = 0
        for row, breaks in ((violating, True), (others, False)):
            for unit in row:
                if not self._reprieve(state, pod, unit, node):
                    fallen = self._gangs.fallen(unit) if unit[0].group else unit
                    victims += fallen
                    violations += breaks * len(fallen)
        if not victims:
            return None, Status(Code.ERROR, (f'expected at least one victim pod on node "{node.name}"',))
        victims.sort(key=importance)
        return Candidate(node.name, tuple(victims), violations), SUCCESS

    def _importance(self, unit: _Unit) -> tuple[float, ...]:
        return self._gangs.importance(unit)

    def _counts_against(self, unit: _Unit) -> Sequence[int]:
        if len(unit) == 1 and not unit[0].group:
            return self._covering_of(unit[0])
        return [i for p in self._gangs.fallen(unit) for i in self._covering_of(p)]

    def _covering_of(self, pod: PodInfo) -> Sequence[int]:
        known = self._covering.get(pod.key)
        if known is None or known[0] is not pod:
            known = self._covering[pod.key] = (pod, covering(pod, self._budgets))
        return known[1]

    def _reprieve(self, state: CycleState, pod: PodInfo, unit: _Unit, node: NodeInfo) -> bool:
        for p in unit:
            node.add(p)
            self._filters.add_pod(state, pod, p, node)
        if self._filters.still_fits(state, pod, node):
            return True
        for p in unit:
            self._remove(state, pod, p, node)
        return False

    def _remove(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        node.remove(other)
        self._filters.remove_pod(state, pod, other, node)


def evicted_by_scheduler(pod: PodInfo) -> bool:
    """Whether the pod terminates because a scheduler evicted it."""
    return pod.terminating and any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == BY_SCHEDULER
        for c in pod.pod.status.conditions or ()
    )


def importance(pod: PodInfo) -> tuple[float, float]:
    """A sort key, the most important pod first: higher priority, then earlier start."""
    start = pod.start
    return -pod.priority, float("inf") if start is None else start


def split_by_budgets(
    victims: Sequence[T], budgets: Sequence[PodDisruptionBudget], counts_against: Callable[[T], Sequence[int]]
) -> tuple[list[T], list[T]]:
    """(victims whose eviction would break a budget, the others), evicted in this order.

    `counts_against`: the positions of the budgets that select a victim, see `covering`.
    """
    left = [b.status.disruptions_allowed for b in budgets]
    violating: list[T] = []
    others: list[T] = []
    for victim in victims:
        breaks = False
        for i in counts_against(victim):
            left[i] -= 1
            breaks = breaks or left[i] < 0
        (violating if breaks else others).append(victim)
    return violating, others


def covering(pod: PodInfo, budgets: Sequence[PodDisruptionBudget]) -> list[int]:
    """The positions of the budgets that a pod's eviction counts against."""
    found = []
    for i, budget in enumerate(budgets):
        chosen = budget.spec.selector
        if not pod.labels or budget.metadata.namespace != pod.namespace or chosen is None or is_empty(chosen):
            continue
        if matches(chosen, pod.labels) and pod.name not in (budget.status.disrupted_pods or {}):
            found.append(i)
    return found


def choose(candidates: Sequence[Candidate], priority: Callable[[PodInfo], float] = attrgetter("priority")) -> Candidate:
    """The candidate whose victims cost least; the first of equals. `priority`: the priority of a victim."""
    return min(candidates, key=lambda candidate: _cost(candidate, priority))


def _cost(candidate: Candidate, priority: Callable[[PodInfo], float]) -> tuple[float, ...]:
    victims = candidate.victims
    priorities = [priority(v) for v in victims]
    highest = max(priorities)
    starts = [victims[i].start for i, p in enumerate(priorities) if p == highest]
    earliest = min(float("inf") if s is None else s for s in starts)
    return candidate.violations, highest, sum(priorities) + len(priorities) * _SHIFT, len(priorities), -earliest
