"""One ledger of volumes and devices for session and profiles, under random histories.

Both schedule pods with claims, some of which they share. Each write of the dispatcher may fail, leadership and pods may
be lost in between. Nothing is assigned twice, and nothing is kept forever. `LEDGER_HISTORIES` as in
`test_claim_ledgers`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.scheduler.test_claim_ledgers import HISTORIES, History, described
from volcano_py.api import core
from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.plan import Operation
from volcano_py.scheduler.pods.feed import Feed
from volcano_py.scheduler.pods.operations import operations
from volcano_py.scheduler.profiles.cluster_events import BindEnded, PermitAllowed, PlaceFreed
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.configuration import FEATURES, load
from volcano_py.scheduler.profiles.decisions import Decision, Patch
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, Permit
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Code, Status
from volcano_py.scheduler.profiles.registry import REGISTRY, of
from volcano_py.scheduler.profiles.scheduler import PodScheduler
from volcano_py.scheduler.rules.arrays import Bools
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.manifests import Manifest, as_struct
from volcano_py.simulate.profiles import merge_patch

PROFILE = "default-scheduler"
SECONDS = 30.0
"""Between two steps: longer than every back-off."""


class Hold(Permit):
    """Lets pods wait between Reserve and PreBind, until the history allows them or their time is over."""

    name = "Hold"

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        return Status(Code.WAIT, ("held",)), 2 * SECONDS


class SimulatedCluster(Simulation):
    """A cluster whose changes are also sent to a PodScheduler."""

    feed: Feed | None = None
    seconds = 0.0

    def put(self, manifest: Manifest) -> None:
        kind, new = manifest["kind"], as_struct(manifest)
        old = self._known(kind, new.metadata.key) if new is not None else None
        super().put(manifest)
        if self.feed is not None and new is not None:
            self.feed.changed(kind, old, new, self.seconds)

    def drop(self, kind: str, key: str) -> None:
        old = self._known(kind, key)
        super().drop(kind, key)
        if self.feed is not None and old is not None:
            self.feed.changed(kind, old, None, self.seconds)

    def _known(self, kind: str, key: str) -> Any:
        if kind == "Pod":
            task = self.cluster.tasks.get(key)
            return task.pod if task is not None else None
        return self.cluster.others.get(kind, {}).get(key)

    def _is_responsible_for(self, pod: core.Pod) -> bool:
        return pod.spec.scheduler_name == PROFILE or super()._is_responsible_for(pod)


def with_pods_of_profiles(rng: random.Random, objects: list[Manifest]) -> list[Manifest]:
    """Additional pods, with their own claims or those of others; one type of claim is for one pod at a time."""
    for manifest in objects:
        if manifest["kind"] == "PersistentVolumeClaim" and rng.random() < 0.3:
            manifest["spec"]["accessModes"] = ["ReadWriteOncePod"]
        if manifest["kind"] == "PersistentVolume":
            manifest["spec"]["accessModes"] = ["ReadWriteOnce", "ReadWriteOncePod"]
    known = {
        k: [o["metadata"]["name"] for o in objects if o["kind"] == k]
        for k in ("PersistentVolumeClaim", "ResourceClaim")
    }
    for number in range(rng.randint(1, 6)):
        spec: dict[str, Any] = {"schedulerName": PROFILE, "containers": [{"name": "c", "image": "i"}]}
        if rng.random() < 0.7:
            name = (
                f"pvc-p{number}"
                if rng.random() < 0.6 or not known["PersistentVolumeClaim"]
                else rng.choice(known["PersistentVolumeClaim"])
            )
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
            modes = [rng.choice(("ReadWriteOnce", "ReadWriteOncePod"))]
            wanted = {"storageClassName": rng.choice(("local", "made")), "accessModes": modes}
            if name not in known["PersistentVolumeClaim"]:
                objects.append({"kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": wanted})
        if rng.random() < 0.6:
            name = (
                f"claim-p{number}"
                if rng.random() < 0.6 or not known["ResourceClaim"]
                else rng.choice(known["ResourceClaim"])
            )
            spec["resourceClaims"] = [{"name": "c", "resourceClaimName": name}]
            request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": rng.randint(1, 2)}}
            if name not in known["ResourceClaim"]:
                of_claim = {"devices": {"requests": [request]}}
                objects.append({"kind": "ResourceClaim", "metadata": {"name": name}, "spec": of_claim})
        objects.append({"kind": "Pod", "metadata": {"name": f"p{number}"}, "spec": spec})
    return objects


class MixedHistory(History):
    """Runs the session and the profiles in turn."""

    world: SimulatedCluster

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.mine: dict[str, str] = {}
        """Pods that the profile binds, by uid."""
        self.waiting: list[Decision] = []
        registry = {**REGISTRY, Hold.name: of(Hold)}
        config = {"profiles": [{"plugins": {"permit": {"enabled": [{"name": Hold.name}]}}}]}
        self.scheduler = PodScheduler(load(config, FEATURES, registry), FEATURES, self.world.cluster)
        self.compared = 0
        self.different: list[str] = []
        for rule in self.scheduler._profiles[PROFILE]._far_filters:
            rule.filter_fitting = self.comparing(rule)  # type: ignore[method-assign]
        self.world.feed = Feed(self.scheduler, frozenset((PROFILE,)))
        for (kind, _), manifest in list(self.world.objects.items()):
            if kind == "Pod":
                self.world.feed.changed(kind, None, as_struct(manifest), 0.0)

    def comparing(self, rule: Filter) -> Any:
        """The array form of a filter, compared with its result for each node."""
        fitting = rule.filter_fitting

        def compared(state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools | None:
            found = fitting(state, pod, nodes, ok)
            for i in np.flatnonzero(ok).tolist():
                status = rule.filter(state, pod, nodes.infos[i])
                if found is not None and found[i] != status.ok:
                    self.different.append(f"{rule.name}: {pod.key} on {nodes.infos[i].name}: {status}")
                self.compared += 1
            return found

        return compared

    def described_cluster(self) -> Simulation:
        return SimulatedCluster(with_pods_of_profiles(self.rng, described(self.rng)), now=1000.0)

    def step(self) -> None:
        self.world.seconds += SECONDS
        if self.rng.random() < 0.5:
            self.run_profiles()
            super().step()
        else:
            super().step()
            self.run_profiles()
            self.carry_out()
        self.check()

    def run_profiles(self) -> None:
        self.carry(self.waiting)
        self.waiting = []
        self.carry(self.scheduler.tick(self.world.seconds))
        self.allow_some()
        for _ in range(20):
            decisions = self.scheduler.attempt(self.world.seconds)
            if decisions is None:
                break
            self.carry(decisions)
            self.check()

        self.allow_some()

    def allow_some(self) -> None:
        for held in self.scheduler.waiting_pods():
            if not self.failing or self.rng.random() < 0.4:
                self.carry(self.scheduler.handle(PermitAllowed(held.pod.key, Hold.name), self.world.seconds))
                self.check()

    def carry(self, decisions: Sequence[Decision]) -> None:
        found = list(operations(decisions, self.world.cluster))
        self.mine |= {op.uid: f"{op.namespace}/{op.name}" for op in found if isinstance(op, plan.Bind)}
        if found:
            self.send(found)
            for op in found:
                self.world.cluster.assume(op)
        for decision in decisions:
            if isinstance(decision, Patch) and (claim := self.world.objects.get(("ResourceClaim", decision.key))):
                self.world.put(merge_patch(claim, decision.patch))

    def handle(self, op: Operation, result: Result) -> None:
        failed = result.outcome not in ("done", "superseded")
        if failed:
            self.world.cluster.forget(op)
        if isinstance(op, plan.Bind) and op.uid in self.mine:
            key, why = self.mine.pop(op.uid), result.message or result.outcome if failed else ""
            self.waiting += self.scheduler.handle(BindEnded(key, why, op.uid), self.world.seconds)
        elif isinstance(op, plan.Bind) and failed and (pod := self.scheduler.cluster.pod(f"{op.namespace}/{op.name}")):
            self.scheduler.handle(PlaceFreed(pod, op.node), self.world.seconds)
        if failed:
            self.refresh(op)

    def check(self, settled: bool = False) -> None:
        super().check(settled)
        users: Counter[str] = Counter()
        for task in self.world.cluster.tasks.values():
            if task.takes_capacity and task.claims.volumes is not None:
                users.update(task.claims.volumes.exclusive)
        assert not self.different
        assert max(users.values(), default=0) <= 1, f"a claim of one pod at a time has more: {users}"
        if settled:
            claims = self.scheduler._world.claims
            assert not claims._reserved and not claims._written and not claims._to_write


@pytest.mark.parametrize("block", range(4))
def test_session_and_profiles_assign_nothing_twice(block: int) -> None:
    kinds: Counter[str] = Counter()
    bound: Counter[str] = Counter()
    compared = 0
    for seed in range(block, HISTORIES, 4):
        history = MixedHistory(seed)
        try:
            history.run()
        except AssertionError as error:
            raise AssertionError(f"history {seed}: {error}") from error
        compared += history.compared
        for (kind, _), pod in history.world.objects.items():
            if kind == "Pod" and pod["spec"].get("nodeName"):
                bound[pod["spec"]["schedulerName"]] += 1
                kinds.update(k for k in ("volumes", "resourceClaims") if pod["spec"].get(k))
    assert compared > 20
    assert bound[PROFILE] > 5 and bound["volcano"] > 5 and kinds["volumes"] > 5 and kinds["resourceClaims"] > 5
