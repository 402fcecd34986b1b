"""Profiles in the scheduler's process, with its dispatcher process, against an API server that can fail."""

import asyncio

from fake_api import status
from live_scheduler import Live, put_gang, put_node

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: spread-out
- schedulerName: packed
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
"""


def live(tmp_path, api, config=CONFIG, **options):
    file = tmp_path / "profiles.yaml"
    file.write_text(config)
    return Live(tmp_path, api, config=str(file), **options)


def put_pod(api, name, scheduler="spread-out", cpu="1", **more):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    meta = {"name": name, "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    meta |= more.pop("metadata", {})
    spec = {"schedulerName": scheduler, "containers": [container], **more}
    return api.put("pods", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})


def condition(api, name):
    found = api.objects[("pods", "default", name)].get("status", {}).get("conditions") or ()
    return next((c["message"] for c in found if c["type"] == "PodScheduled" and c["status"] == "False"), "")


def events(api, reason):
    """Messages of the pods' Events with a reason."""
    found = [o for (plural, _, _), o in api.objects.items() if plural == "events"]
    return [o["message"] for o in found if o["reason"] == reason and o["involvedObject"]["kind"] == "Pod"]


async def test_two_profiles_and_the_session_share_the_nodes(tmp_path, api):
    for i in range(4):
        put_node(api, f"n{i}")
    put_gang(api, "gang", 4, "2")
    for i in range(4):
        put_pod(api, f"a{i}", "spread-out")
        put_pod(api, f"b{i}", "packed")
    async with live(tmp_path, api) as running:
        await running.until(lambda: len(running.bound()) == 12)
        assert len(set(running.bound("a").values())) == 4
        assert len(set(running.bound("b").values())) == 1
        await running.until(lambda: len(events(api, "Scheduled")) == 12)
        used = running.scheduler.cache.model.nodes.numbers.used[0, :4]
        assert used.sum() == 16_000 and used.max() <= 8_000


async def test_a_pod_that_does_not_fit_is_reported_once_and_bound_when_a_node_is_added(tmp_path, api):
    put_node(api, "n1", "2")
    put_pod(api, "large", cpu="4")
    async with live(tmp_path, api) as running:
        await running.until(lambda: "Insufficient cpu" in condition(api, "large"))
        assert condition(api, "large").startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await asyncio.sleep(1.5)
        assert sum("/pods/large/status" in entry for entry in api.log) == 1
        put_node(api, "n2", "8")
        await running.until(lambda: running.bound() == {"large": "n2"})


async def test_capacity_is_counted_before_the_watch_shows_a_bind_on_both_sides(tmp_path, api):
    put_node(api, "n1", "1")

    async def bound_but_not_shown(request):
        api.bindings[("default", "one")] = "n1"
        return status(201, "")

    api.fault("POST /pods/one/binding", bound_but_not_shown)
    async with live(tmp_path, api) as running:
        put_pod(api, "one")
        await running.until(lambda: running.bound("one"))
        put_gang(api, "gang", 1)
        put_pod(api, "two", "packed")
        await asyncio.sleep(1.0)
        assert not running.bound("gang") and not running.bound("two")
        assert running.scheduler.cache.model.nodes.numbers.idle[0, 0] == 0


async def test_a_rejected_binding_is_forgotten_and_retried(tmp_path, api):
    put_node(api, "n1")
    api.fault("POST /pods/one/binding", lambda r: status(403, "Forbidden", "not today"), times=1)
    async with live(tmp_path, api) as running:
        put_pod(api, "one")
        await running.until(lambda: running.bound("one"))
        assert running.scheduler.cache.model.nodes.numbers.idle[0, 0] == 7_000


async def test_a_more_important_pod_preempts_a_pod_of_the_session(tmp_path, api):
    put_node(api, "n1", "2")
    put_gang(api, "gang", 2)
    async with live(tmp_path, api) as running:
        await running.until(lambda: len(running.bound("gang")) == 2)
        put_pod(api, "vip", cpu="1", priority=100)
        await running.until(lambda: running.bound("vip"))
        assert len(events(api, "Preempted")) == 1
        assert events(api, "Preempted")[0].endswith("on node n1")
        written = [o for _, p, _, _, o in api.history if p == "pods" and o["metadata"]["name"].startswith("gang")]
        conditions = [c for o in written for c in o.get("status", {}).get("conditions") or ()]
        assert [c["reason"] for c in conditions if c["type"] == "DisruptionTarget"][:1] == ["PreemptionByScheduler"]
        seen = [o["status"] for _, p, _, _, o in api.history if p == "pods" and o["metadata"]["name"] == "vip"]
        assert any(s.get("nominatedNodeName") == "n1" for s in seen)

        def executed():
            found = running.scheduler.profiles.metrics.groups._execution.labels("pod", "success").collect()
            return next(s.value for s in found[0].samples if s.name.endswith("_count"))

        await running.until(lambda: executed() == 1)


async def test_a_gang_member_of_a_profile_is_placed_by_the_session(tmp_path, api):
    put_node(api, "n1", "2")
    group = {"annotations": {"scheduling.k8s.io/group-name": "gang"}}
    put_gang(api, "gang", 3, members=0)
    for i in range(3):
        put_pod(api, f"member-{i}", "packed", metadata=group)
    async with live(tmp_path, api) as running:
        await running.until(lambda: condition(api, "member-0"))
        assert not running.bound()
        put_node(api, "n2", "2")
        await running.until(lambda: len(running.bound("member")) == 3)


async def test_a_new_file_takes_effect_and_an_invalid_one_does_not(tmp_path, api, caplog):
    put_node(api, "n1")
    async with live(tmp_path, api) as running:
        put_pod(api, "later", "renamed")
        await asyncio.sleep(0.3)
        assert not running.bound()
        file = tmp_path / "profiles.yaml"
        file.write_text(CONFIG.replace("NodeResourcesFit", "NodeResourceFit"))
        await running.until(lambda: "did you mean NodeResourcesFit?" in caplog.text)
        assert running.scheduler.profiles.names == {"spread-out", "packed"}
        file.write_text(CONFIG.replace("packed", "renamed"))
        await running.until(lambda: running.bound("later"))


HOLDING = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: spread-out
  plugins: {multiPoint: {enabled: [{name: Hold}]}}
"""
HOLD = """\
from volcano_py.profile_plugin import Code, Permit, Status


class Hold(Permit):
    name = "Hold"

    def permit(self, state, pod, node):
        return Status(Code.WAIT), 1.0
"""


async def test_a_wait_at_permit_ends_although_no_other_pod_waits(tmp_path, api):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "hold.py").write_text(HOLD)
    put_node(api, "n1", "2")
    put_pod(api, "held")
    async with live(tmp_path, api, config=HOLDING, plugins_dir=str(tmp_path / "plugins")) as running:
        await running.until(lambda: "rejected due to timeout" in condition(api, "held"))
        assert running.bound() == {}
        assert running.scheduler.cache.model.nodes.numbers.used[0, 0] == 0


async def test_an_attempt_that_does_not_return_is_ended_and_every_pod_is_tried_again(tmp_path, api):
    put_node(api, "n1")
    put_pod(api, "before")
    async with live(tmp_path, api, plugin_deadline=0.3) as running:
        await running.until(lambda: running.bound() == {"before": "n1"})
        profiles = running.scheduler.profiles
        attempt, stuck = profiles.scheduler.attempt, []

        def endless(now):
            if len(profiles.scheduler):
                profiles.scheduler.queue.pop(now)  # what the attempt has begun is lost
                stuck.append(True)
                while True:
                    pass
            return attempt(now)

        profiles.scheduler.attempt = endless
        put_pod(api, "after")
        await running.until(lambda: len(running.bound()) == 2)
        assert stuck == [True]
        assert running.scheduler.rebuild.count == 1
        assert b'volcano_py_stuck_cycles_total{plugin=""} 1.0' in running.scheduler._expose()
