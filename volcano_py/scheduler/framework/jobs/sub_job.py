"""SubJob: a gang within a gang, with its own minimum and its own domain of the network. Volcano: SubJobInfo.

Only jobs with a network topology or with sub-group policies have sub-jobs; every task of such a job is in exactly
one: that of the first policy that it matches, else the job's default one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from volcano_py.api.scheduling import HARD, SOFT, NetworkTopology, SubGroupPolicy
from volcano_py.api.selector import matches
from volcano_py.scheduler.framework.jobs.gang_counts import GangCounts
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import Resource

_LONGEST = 128
"""Longer joined values of labels are replaced by a hash."""
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of Kubernetes' safe encoding: no vowels, and no characters that are easily confused."""


BELOW_ALL_TIERS = -1


class TierConstraint(NamedTuple):
    """How close together tasks must be in this session: within one HyperNode of at most this tier.

    Soft constraints have become hard ones with the tier of the whole cluster; None: the tier does not exist, and there
    is no constraint. `label`: within the nodes that have the same value of this label instead. `unknown`: the name of a
    tier that no HyperNode has; `tier` is then below all tiers, so that the tasks wait.
    """

    tier: int | None
    label: str = ""
    unknown: str = ""

    @property
    def hard(self) -> bool:
        return self.tier is not None or bool(self.label)


class Level(NamedTuple):
    """A group in a tree: the label whose value its nodes share, or "", and the UIDs of the sub-jobs at or below it."""

    topology_key: str
    subs: tuple[str, ...]


class SubJob(GangCounts):
    """See the module. `allocated_hyper_node`: the lowest HyperNode that contains all of its placed tasks, or ""."""

    __slots__ = (
        "allocated_hyper_node",
        "constraint",
        "current_hyper_node",
        "evicted_whole",
        "gid",
        "match_index",
        "nominated_hyper_node",
        "path",
        "priority",
        "uid",
    )

    def __init__(
        self, uid: str, gid: str, min_available: int, constraint: TierConstraint | None, match_index: int = 0
    ) -> None:
        self.uid = uid
        self.gid = gid
        self.min_available = min_available
        self.constraint = constraint
        self.match_index = match_index
        self.priority = 0
        self.path: tuple[Level, ...] = ()
        """Of a PodGroup in a tree: the groups above it, without the root, and itself."""
        self.evicted_whole = False
        """Whether one of these groups is evicted all together or not at all."""
        self.tasks = {}
        self.counts = [0] * 10
        self.best_effort_counts = st.NO_TASKS
        self.fit_failed_roles = frozenset()
        self.allocated_hyper_node = ""
        self.current_hyper_node = ""
        """While tasks are being placed: the lowest HyperNode that contains those placed so far."""
        self.nominated_hyper_node = ""
        """The HyperNode in which this session has evicted pods for it."""

    def add(self, task: Task, status: int) -> None:
        self.tasks[task.key] = task
        self.counts[status] += 1
        if task.best_effort:
            self.best_effort_counts = st.counted(self.best_effort_counts, status, 1)
        self.priority = max(self.priority, task.priority)

    def pending_request(self, statuses: bytearray) -> Resource:
        """The sum of the requests of its pending tasks."""
        total = Resource()
        for task in self.tasks.values():
            if statuses[task.slot] == st.PENDING:
                total.add(task.request)
        return total


def constraint(
    topology: NetworkTopology | None, tier_of_name: dict[str, int], soft_tier: int, unknown_waits: bool = False
) -> TierConstraint | None:
    """The constraint of a topology in this session. `soft_tier`: the tier of a soft one.

    `unknown_waits`: the name of a tier that does not exist is a constraint that nothing meets.
    """
    if topology is None:
        return None
    if topology.mode == SOFT:
        return TierConstraint(soft_tier)
    if topology.mode != HARD:
        return TierConstraint(None)
    if topology.highest_tier_allowed is None and topology.highest_tier_name:
        name = topology.highest_tier_name
        if unknown_waits and name not in tier_of_name:
            return TierConstraint(BELOW_ALL_TIERS, unknown=name)
        return TierConstraint(tier_of_name.get(name))
    return TierConstraint(topology.highest_tier_allowed)


def sub_group_of(task: Task, policies: Iterable[SubGroupPolicy]) -> tuple[SubGroupPolicy, list[str]] | None:
    """The first policy that a task matches, with the values that distinguish its sub-jobs."""
    labels = task.pod.metadata.labels or {}
    for policy in policies:
        values = match_values(policy, labels)
        if values:
            return policy, values
    return None


def match_values(policy: SubGroupPolicy, labels: Mapping[str, str]) -> list[str] | None:
    """The labels' values by which a policy groups pods; None if the policy does not select this pod."""
    try:
        if policy.label_selector is not None and not matches(policy.label_selector, labels):
            return None
    except ValueError:
        return None  # an invalid selector matches no pod
    values = [labels.get(key, "") for key in policy.match_label_keys or ()]
    return values if all(values) else None


def sub_job_uid(job: str, policy: str, values: list[str]) -> str:
    """The name of the sub-job of a policy with these values."""
    joined = "-".join(values)
    if len(joined) > _LONGEST:
        joined = _safely(_fnv32a(joined.encode()))
    return f"{job}/{policy}-{joined}"


def group_sub_job(job: str, group: str) -> str:
    """The name of the sub-job of a PodGroup in a tree of CompositePodGroups."""
    return f"{job}/{group}"


def match_index(values: list[str]) -> int:
    """The first value as a number, for the order of sub-jobs; 0 if it is not a number."""
    text = values[0]
    if not (text.isascii() and text.lstrip("+-").isdigit()):
        return 0
    number = int(text)
    return number if -(2**63) <= number < 2**63 else 0


def _fnv32a(data: bytes) -> int:
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def _safely(value: int) -> str:
    return "".join(_SAFE[ord(c) % len(_SAFE)] for c in str(value))
