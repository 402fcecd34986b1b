"""The whole scheduler, with its dispatcher process, against an API server that can fail."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import aiohttp
import pytest
import yaml
from fake_api import status

from tests.waiting import budget
from volcano_py.scheduler import loop
from volcano_py.scheduler.model.plan import PodCondition
from volcano_py.scheduler.options import Options
from volcano_py.scheduler.server import Scheduler

CONF = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'


def kubeconfig(tmp_path, api):
    file = tmp_path / "kubeconfig"
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": api.url}}],
    }
    file.write_text(yaml.safe_dump(document))
    return str(file)


def put_node(api, name, cpu="8"):
    capacity = {"cpu": cpu, "memory": "256Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    api.put(
        "nodes",
        {"metadata": {"name": name}, "status": {"allocatable": capacity, "capacity": capacity, "conditions": ready}},
    )


def put_gang(api, name, size, cpu="1", members=None):
    api.put(
        "podgroups",
        {
            "metadata": {"name": name, "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"minMember": size, "queue": "default"},
            "status": {"phase": "Pending"},
        },
    )
    for i in range(size if members is None else members):
        put_pod(api, f"{name}-{i}", name, cpu)


def put_pod(api, name, group, cpu="1", node=""):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    spec = {"schedulerName": "volcano", "containers": [container]}
    if node:
        spec["nodeName"] = node
    api.put(
        "pods",
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "annotations": {"scheduling.k8s.io/group-name": group} if group else {},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": spec,
            "status": {"phase": "Pending"},
        },
    )


def open_queues(api):
    """Set the state of every queue, as the queue controller does."""
    for name in ("root", "default"):
        api.put("queues", {"metadata": {"name": name}, "spec": {"weight": 1}, "status": {"state": "Open"}})


class Live:
    def __init__(self, tmp_path, api, **options):
        options = {"leader_elect": False, "schedule_period": 0.2, "kubeconfig": kubeconfig(tmp_path, api), **options}
        self.api = api
        open_queues(api)
        self.scheduler = Scheduler(Options(**options))

    async def __aenter__(self):
        self.task = asyncio.create_task(self.scheduler.run())
        await self.until(lambda: self.scheduler.handle.leading and self.scheduler.cache.ready.is_set())
        return self

    async def __aexit__(self, *exc):
        self.task.cancel()
        await asyncio.wait([self.task])

    async def until(self, test):
        async with asyncio.timeout(budget()):
            while not test():
                if self.task.done():
                    self.task.result()
                await asyncio.sleep(0.01)

    async def quiet(self, seconds=0.5):
        """Wait until no cycle has run for a while."""
        while True:
            before = self.scheduler.cycles
            await asyncio.sleep(seconds)
            if self.scheduler.cycles == before:
                return

    def bound(self, prefix=""):
        return {name: node for (_, name), node in self.api.bindings.items() if name.startswith(prefix)}

    def phase(self, name):
        return self.api.objects[("podgroups", "default", name)]["status"].get("phase")


async def test_a_gang_is_bound_whole_and_explained_when_it_does_not_fit(tmp_path, api):
    put_node(api, "n1")
    put_node(api, "n2")
    put_gang(api, "fits", 4)
    put_gang(api, "large", 20)
    async with Live(tmp_path, api) as live:
        await live.until(lambda: len(live.bound("fits")) == 4)
        await live.until(lambda: live.phase("fits") == "Running" or live.phase("fits") == "Inqueue")
        pod = ("pods", "default", "large-0")
        await live.until(lambda: api.objects[pod]["status"].get("conditions"))
        (condition,) = api.objects[pod]["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
        assert not live.bound("large")
        put_node(api, "n3", "32")
        await live.until(lambda: len(live.bound("large")) == 20)
        events = [o for (plural, _, _), o in api.objects.items() if plural == "events"]
        assert any(e["reason"] == "Scheduled" and e["type"] == "Normal" for e in events)


async def test_no_session_opens_without_work(tmp_path, api):
    put_node(api, "n1")
    put_gang(api, "g", 2)
    async with Live(tmp_path, api) as live:
        await live.until(lambda: len(live.bound()) == 2)
        for i in range(2):
            stored = api.objects[("pods", "default", f"g-{i}")]
            api.put("pods", {**stored, "status": {"phase": "Running"}})
        await live.until(lambda: live.phase("g") == "Running")
        await live.quiet()
        before = live.scheduler.cycles
        await asyncio.sleep(1.0)
        assert live.scheduler.cycles == before
        put_gang(api, "later", 1)
        await live.until(lambda: live.bound("later"))


async def test_statuses_alone_wait_for_the_next_pending_pod(tmp_path, api, monkeypatch):
    monkeypatch.setattr(loop, "STATUS_DELAY", 3600.0)
    put_node(api, "n1")
    put_gang(api, "g", 2)
    async with Live(tmp_path, api) as live:
        await live.until(lambda: len(live.bound()) == 2)
        await live.quiet()
        before = live.scheduler.cycles
        for i in range(2):
            stored = api.objects[("pods", "default", f"g-{i}")]
            api.put("pods", {**stored, "status": {"phase": "Running"}})
        queue = api.objects[("queues", "", "default")]
        api.put("queues", {**queue, "status": {**queue["status"], "running": 1}})
        await live.quiet()
        assert live.scheduler.cycles == before and live.phase("g") != "Running"
        put_gang(api, "later", 1)
        await live.until(lambda: live.bound("later") and live.phase("g") == "Running")


async def test_pending_work_gets_a_cycle_once_a_period(tmp_path, api):
    put_node(api, "n1", "1")
    put_gang(api, "g", 5)
    async with Live(tmp_path, api) as live:
        await live.until(lambda: live.scheduler.cycles > 2)
        await asyncio.sleep(0.6)
        before, begun = live.scheduler.cycles, time.monotonic()
        await asyncio.sleep(1.0)
        await live.until(lambda: live.scheduler.cycles > before)
        cycles, spent = live.scheduler.cycles - before, time.monotonic() - begun
        assert cycles <= spent / 0.2 + 2


async def test_a_burst_is_few_cycles(tmp_path, api):
    put_node(api, "n1", "200")
    async with Live(tmp_path, api) as live:
        await live.quiet(0.3)
        before = live.scheduler.cycles
        for i in range(100):
            put_gang(api, f"g{i}", 1)
        await live.until(lambda: len(live.bound()) == 100)
        assert live.scheduler.cycles - before < 40


async def test_an_outage_of_the_server(tmp_path, api):
    put_node(api, "n1")
    put_gang(api, "before", 2)
    async with Live(tmp_path, api) as live:
        await live.until(lambda: len(live.bound()) == 2)
        await api.stop()
        put_gang(api, "meanwhile", 3)
        await asyncio.sleep(2.0)
        await api.start(api.port)
        await live.until(lambda: len(live.bound("meanwhile")) == 3)
        puts = [o for _, p, _, kind, o in api.history if p == "pods" and o["spec"].get("nodeName")]
        firsts = [o["metadata"]["name"] for o in puts if "conditions" not in o.get("status", {})]
        assert sorted(set(firsts)) == sorted(live.bound())


async def test_a_rejected_bind_is_retried_with_back_off(tmp_path, api):
    put_node(api, "n1")
    put_gang(api, "g", 1)
    api.fault("POST /binding", lambda r: status(403, "Forbidden", "not today"), times=1000)
    async with Live(tmp_path, api) as live:
        await live.until(lambda: any("/binding" in entry for entry in api.log))
        await asyncio.sleep(2.5)
        assert sum("/binding" in entry for entry in api.log) <= 4
        api.faults.clear()
        await live.until(lambda: live.bound("g"))


async def test_capacity_stays_used_until_the_watch_shows_the_bind(tmp_path, api):
    put_node(api, "n1", "1")
    put_gang(api, "one", 1)

    async def bound_but_not_shown(request):
        api.bindings[("default", "one-0")] = "n1"
        return status(201, "")

    api.fault("POST /pods/one-0/binding", bound_but_not_shown)
    async with Live(tmp_path, api) as live:
        await live.until(lambda: live.bound("one"))
        put_gang(api, "two", 1)
        await asyncio.sleep(1.0)
        assert not live.bound("two")
        numbers = live.scheduler.cache.model.nodes.numbers
        assert numbers.idle[0, 0] == 0


async def test_an_invalid_object_gets_an_event(tmp_path, api):
    put_node(api, "n1")
    put_node(api, "odd", "lots")
    put_gang(api, "g", 1)
    async with Live(tmp_path, api) as live:
        await live.until(lambda: live.bound("g"))

        def quarantined():
            return [o for (p, _, _), o in api.objects.items() if p == "events" and o["reason"] == "Quarantined"]

        await live.until(quarantined)
        (event,) = quarantined()
        assert event["involvedObject"]["name"] == "odd" and event["type"] == "Warning" and "cpu" in event["message"]
        assert b'volcano_py_quarantined_objects{kind="Node"} 1.0' in live.scheduler.reporter.expose()


async def test_the_configuration_is_reloaded_while_it_runs(tmp_path, api):
    conf = tmp_path / "conf"
    conf.write_text(CONF.replace("enqueue, allocate, backfill", "enqueue"))
    put_node(api, "n1")
    put_gang(api, "g", 1)
    async with Live(tmp_path, api, scheduler_conf=str(conf)) as live:
        await live.until(lambda: live.scheduler.cycles > 1)
        conf.write_text("actions: [")
        await asyncio.sleep(1.3)
        assert not live.bound()
        conf.write_text(CONF)
        await live.until(lambda: live.bound("g"))


async def test_a_plugin_that_cannot_be_opened_places_no_pod_and_is_reported_once(tmp_path, api, caplog):
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "bad.py").write_text(
        "from volcano_py.plugin import Plugin\n"
        "class Bad(Plugin):\n"
        "    name = 'bad'\n"
        "    def on_session_open(self, session): raise RuntimeError('broken')\n"
    )
    conf = tmp_path / "conf"
    conf.write_text(CONF + "  - name: bad\n")
    put_node(api, "n1")
    put_gang(api, "g", 1)
    async with Live(tmp_path, api, scheduler_conf=str(conf), plugins_dir=str(plugins)) as live:
        await live.until(lambda: "plugin bad failed in on_session_open" in caplog.text)
        await live.until(lambda: live.scheduler.cycles > 3)
        assert caplog.text.count("plugin bad failed") == 1
        assert not live.bound(), "without its callbacks no pod is placed"
        assert (
            b'volcano_py_plugin_faults_total{plugin="bad",point="on_session_open"}' in live.scheduler.reporter.expose()
        )
        conf.write_text(CONF)
        await live.until(lambda: live.bound("g"))


async def test_a_cycle_that_fails_has_assumed_its_plan(tmp_path, api, monkeypatch):
    import volcano_py.scheduler.server as server

    real, failed = server.run_once, []

    def failing(*arguments, **options):
        report = real(*arguments, **options)
        if report.bound and not failed:
            failed.append(report)
            raise RuntimeError("after the plan went out")
        return report

    monkeypatch.setattr(server, "run_once", failing)
    put_node(api, "n1")
    put_gang(api, "g", 2)
    async with Live(tmp_path, api) as live:
        await live.until(lambda: failed and len(live.bound("g")) == 2)
        put_gang(api, "later", 1)
        await live.until(lambda: live.bound("later"))
        assert sum("/binding" in entry for entry in api.log) == 3


def run_command(tmp_path, api, *arguments):
    open_queues(api)
    command = [sys.executable, "-m", "volcano_py.cli.main", "scheduler", "--kubeconfig", kubeconfig(tmp_path, api)]
    return subprocess.Popen(
        [*command, *arguments],
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_the_command_leads_dumps_and_ends_on_sigterm(tmp_path, api):
    put_node(api, "n1")
    put_gang(api, "g", 1)
    lease = ("leases", "volcano-system", "volcano")
    process = run_command(tmp_path, api, f"--cache-dump-dir={tmp_path}")
    try:
        async with asyncio.timeout(budget()):
            while not api.bindings:
                assert process.poll() is None, process.stderr.read()
                await asyncio.sleep(0.05)
            assert api.objects[lease]["spec"]["holderIdentity"]
            os.kill(process.pid, signal.SIGUSR1)
            while not list(tmp_path.glob("snapshot-*.json")):
                await asyncio.sleep(0.05)
            os.kill(process.pid, signal.SIGUSR2)
            while "node n1: idle cpu 7000" not in await asyncio.to_thread(process.stderr.readline):
                pass
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait) == 0
        assert api.objects[lease]["spec"]["holderIdentity"] == ""
    finally:
        process.kill()
        process.communicate()


async def test_a_bad_configuration_is_one_line_and_no_exit(tmp_path, api):
    conf = tmp_path / "conf"
    conf.write_text('actions: "alocate"')
    process = run_command(tmp_path, api, f"--scheduler-conf={conf}")
    try:
        async with asyncio.timeout(budget()):
            line = ""
            while "ERROR" not in line:
                line = await asyncio.to_thread(process.stderr.readline)
            assert str(conf) in line and "did you mean allocate" in line
            process.send_signal(signal.SIGTERM)
            _, text = await asyncio.to_thread(process.communicate)
        assert process.returncode == 0 and "ERROR" not in text
    finally:
        process.kill()


async def test_flags_without_any_configuration_are_exit_code_2(tmp_path, api):
    process = run_command(tmp_path, api, "--disable-default-scheduler-config")
    try:
        async with asyncio.timeout(budget()):
            _, text = await asyncio.to_thread(process.communicate)
        assert process.returncode == 2 and "neither --scheduler-conf nor --scheduler-configmap is set" in text
    finally:
        process.kill()


async def test_without_credentials_it_ends_with_an_error(tmp_path, api):
    process = subprocess.Popen(
        [sys.executable, "-m", "volcano_py.cli.main", "scheduler", "--kubeconfig", str(tmp_path / "none")],
        stderr=subprocess.PIPE,
        text=True,
    )
    async with asyncio.timeout(budget()):
        _, text = await asyncio.to_thread(process.communicate)
    assert process.returncode == 1 and "does not exist" in text


@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_dispatcher_is_killed(tmp_path, api, when):
    put_node(api, "n1")
    put_gang(api, "g", 3)
    if when == "before":

        async def hold(request):
            await asyncio.sleep(30)

        api.fault("POST /binding", hold, times=3)
    async with Live(tmp_path, api) as live:
        await live.until(lambda: sum("/binding" in entry for entry in api.log) >= 3)
        if when == "after":
            await live.until(lambda: len(live.bound()) == 3)
        api.faults.clear()
        os.kill(live.scheduler.handle.pid, signal.SIGKILL)
        await live.until(lambda: live.scheduler.handle.restarts == 1)
        put_gang(api, "later", 1)
        await live.until(lambda: len(live.bound()) == 4)


async def test_a_conflict_without_a_newer_version_does_not_stop_a_gang(tmp_path, api):
    put_node(api, "n1")
    put_gang(api, "g", 2)
    api.fault("PATCH /apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/g", status(409, "Conflict", "x"))
    async with Live(tmp_path, api) as live:
        await live.until(lambda: len(api.bindings) == 2)


async def test_a_rejected_status_is_one_request_and_one_warning_in_its_pause(tmp_path, api, caplog):
    put_node(api, "n1", cpu="1")
    put_gang(api, "g", 2)
    for _ in range(200):
        api.fault("PATCH /api/v1/namespaces/default/pods/g-0/status", status(403, "Forbidden", "not you"))
    async with Live(tmp_path, api) as live:
        backoff = live.scheduler.cache.status_backoff
        key = (PodCondition, "Pod", "default/g-0")
        await live.until(lambda: key in backoff._entries and backoff._entries[key].failures == 2)
        calls = [call for call in api.log if call.startswith("PATCH /api/v1/namespaces/default/pods/g-0/status")]
        assert len(calls) == 2
        warnings = [r for r in caplog.records if "PodCondition of default/g-0" in r.getMessage()]
        assert len(warnings) == 1


ELECTION = {"leader_elect": True, "lease_duration": 1.5, "renew_deadline": 1.0, "retry_period": 0.1}


META = {"name": "volcano", "namespace": "volcano-system"}


def hold_lease(api, holder):
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 1000, "renewTime": "2099-01-01T00:00:00.000000Z"}
    api.put("leases", {"metadata": META, "spec": spec})


class Standby(Live):
    """A scheduler that waits for the Lease, with its first lists."""

    async def __aenter__(self):
        hold_lease(self.api, "another")
        self.task = asyncio.create_task(self.scheduler.run())
        await self.until(lambda: self.scheduler.cache.ready.is_set())
        return self


async def test_a_new_leader_with_a_stale_watch_does_not_bind_to_capacity_that_was_given_away(tmp_path, api):
    """The leader before it has filled the node of 4 cpus; the watch of pods has not returned that yet."""
    put_node(api, "n1", cpu="4")
    async with Standby(tmp_path, api, **ELECTION) as live:
        live.scheduler.cache.informers["Pod"]._apply = lambda event: None
        for i in range(4):
            put_pod(api, f"old-{i}", "", node="n1")
        put_gang(api, "g", 4)
        hold_lease(api, "")
        await live.until(lambda: live.scheduler.cycles > 1 and not live.scheduler.handle.unanswered)
        assert api.bindings == {}
        assert len(live.scheduler.cache.model.tasks) == 8


@pytest.mark.parametrize("kind", ["nodes", "queues", "podgroups", "pods"])
async def test_a_new_leader_that_cannot_list_a_kind_does_not_decide(tmp_path, api, caplog, kind):
    put_node(api, "n1")
    put_gang(api, "g", 2)
    fails = True

    def list_of_kind(request):
        return (
            fails
            and request.method == "GET"
            and request.path.endswith(f"/{kind}")
            and request.query.get("limit") == "1"
        )

    async with Standby(tmp_path, api, **ELECTION) as live:
        api.fault(list_of_kind, lambda r: status(403, "Forbidden", "not you"), times=10_000)
        hold_lease(api, "")
        reported = f"{kind} cannot be listed, so no cycle runs yet: not you; retrying"
        await live.until(lambda: live.scheduler.handle.leading and reported in caplog.messages)
        await live.until(lambda: live.scheduler.takeover.missing == (kind,))
        assert live.scheduler.cycles == 0 and api.bindings == {}
        assert b"volcano_py_takeover_lists_missing 1.0" in live.scheduler.reporter.expose()
        fails = False
        await live.until(lambda: len(api.bindings) == 2)
        assert caplog.messages.count(reported) == 1


async def test_leadership_that_ends_during_the_lists_begins_with_new_ones(tmp_path, api):
    put_node(api, "n1")
    put_gang(api, "g", 2)
    async with Standby(tmp_path, api, **ELECTION) as live:
        api.fault(lambda r: r.query.get("limit") == "1", lambda r: status(403, "Forbidden", "x"), times=1)
        takeover = live.scheduler.takeover
        takeover.begin()
        takeover.end()
        takeover.begin()
        await live.until(lambda: takeover.ready)
        takeover.end()
        assert not takeover.ready and not live.scheduler.handle.deciding


TYPO = CONF.replace("allocate", "alocate")
KEPT = ("configmaps", "volcano-system", "volcano-scheduler-conf-last-valid")
SERVED = {"enable_healthz": True, "healthz_address": "127.0.0.1:0"}


async def readyz(live, code, text):
    """Wait until /readyz is as expected."""
    await live.until(lambda: "healthz" in live.scheduler.ports)
    url = f"http://127.0.0.1:{live.scheduler.ports['healthz']}/readyz"
    async with asyncio.timeout(budget()), aiohttp.ClientSession() as session:
        while True:
            async with session.get(url) as answer:
                found = answer.status, await answer.text()
            if found[0] == code and text in found[1]:
                return
            await asyncio.sleep(0.02)


class Starting(Live):
    """A scheduler that may have no configuration yet."""

    async def __aenter__(self):
        self.task = asyncio.create_task(self.scheduler.run())
        return self


async def test_an_invalid_configuration_at_the_start_waits_for_a_valid_one(tmp_path, api):
    conf = tmp_path / "conf"
    conf.write_text(TYPO)
    put_node(api, "n1")
    put_gang(api, "g", 2)
    async with Starting(tmp_path, api, scheduler_conf=str(conf), **SERVED) as live:
        await readyz(live, 500, "did you mean allocate?; nothing is scheduled until it is valid")
        assert live.scheduler.health.answer() == (True, "ok"), "a restart would not help"
        assert b"volcano_py_configuration_invalid 1.0" in live.scheduler.reporter.expose()
        conf.write_text(CONF)
        await live.until(lambda: len(api.bindings) == 2)
        await readyz(live, 200, "ok")
        assert b"volcano_py_configuration_invalid 0.0" in live.scheduler.reporter.expose()


async def test_a_restart_with_an_invalid_configuration_uses_the_last_valid_one(tmp_path, api):
    conf = tmp_path / "conf"
    conf.write_text(CONF)
    put_node(api, "n1")
    async with Live(tmp_path, api, scheduler_conf=str(conf)) as live:
        await live.until(lambda: KEPT in api.objects)
        assert api.objects[KEPT]["data"] == {"volcano-scheduler.conf": CONF}
        better = CONF.replace(", backfill", "")
        conf.write_text(better)
        await live.until(lambda: api.objects[KEPT]["data"]["volcano-scheduler.conf"] == better)
        conf.write_text(TYPO)
        await live.until(lambda: live.scheduler.source.problem)
    assert api.objects[KEPT]["data"]["volcano-scheduler.conf"] == better, "only valid ones are kept"
    put_gang(api, "g", 2)
    async with Live(tmp_path, api, scheduler_conf=str(conf), **SERVED) as live:
        await live.until(lambda: len(api.bindings) == 2)
        assert live.scheduler.source.configuration.actions == ("enqueue", "allocate")
        await readyz(live, 200, "ok; the last valid configuration is in force, from ConfigMap volcano-system/volcano-")
        assert b"volcano_py_configuration_invalid 1.0" in live.scheduler.reporter.expose()


@pytest.mark.parametrize("change", ["document", "source"])
async def test_a_kept_configuration_that_was_changed_or_is_of_another_source_is_not_used(tmp_path, api, change):
    conf = tmp_path / "conf"
    conf.write_text(CONF)
    async with Live(tmp_path, api, scheduler_conf=str(conf)) as live:
        await live.until(lambda: KEPT in api.objects)
    kept = api.objects[KEPT]
    if change == "document":
        kept = {**kept, "data": {"volcano-scheduler.conf": CONF.replace("enqueue, ", "")}}
    else:
        conf = tmp_path / "other"
    api.put("configmaps", kept)
    conf.write_text(TYPO)
    async with Starting(tmp_path, api, scheduler_conf=str(conf), **SERVED) as live:
        await readyz(live, 500, "nothing is scheduled until it is valid")


async def test_a_configmap_that_is_invalid_at_the_start(tmp_path, api):
    named = {"name": "conf", "namespace": "system"}
    api.put("configmaps", {"metadata": named, "data": {"volcano-scheduler.conf": TYPO}})
    put_node(api, "n1")
    put_gang(api, "g", 2)
    options = {"scheduler_configmap": ("system", "conf", "volcano-scheduler.conf"), **SERVED}

    def reported():
        return [o["message"] for (plural, _, _), o in api.objects.items() if plural == "events"]

    async with Starting(tmp_path, api, **options) as live:
        await readyz(live, 500, "nothing is scheduled")
        assert any("did you mean allocate?; nothing is scheduled until it is valid" in text for text in reported())
        api.put("configmaps", {"metadata": named, "data": {"volcano-scheduler.conf": CONF}})
        await live.until(lambda: len(api.bindings) == 2)
        await live.until(lambda: ("configmaps", "system", "conf-last-valid") in api.objects)
    api.put("configmaps", {"metadata": named, "data": {"volcano-scheduler.conf": TYPO}})
    async with Live(tmp_path, api, **options) as live:
        kept = "the last valid configuration is in force, from ConfigMap system/conf-last-valid"
        await live.until(lambda: any(kept in text for text in reported()))


async def test_a_scheduler_that_may_not_keep_its_configuration_schedules(tmp_path, api, caplog):
    conf = tmp_path / "conf"
    conf.write_text(CONF)
    put_node(api, "n1")
    put_gang(api, "g", 2)
    forbidden = status(403, "Forbidden", "you cannot create configmaps")
    api.fault("POST /api/v1/namespaces/volcano-system/configmaps", forbidden)
    async with Live(tmp_path, api, scheduler_conf=str(conf)) as live:
        await live.until(lambda: len(api.bindings) == 2 and KEPT in api.objects)
        assert "a restart would not find the configuration" in caplog.text


async def test_a_quiet_cluster_has_cycles(tmp_path, api):
    put_node(api, "n1")
    async with Live(tmp_path, api, schedule_period=0.01, idle_period=0.05) as live:
        await live.until(lambda: live.scheduler.cycles > 5)


TIMED = """
from volcano_py.plugin import Plugin

class Timed(Plugin):
    name = "timed"
    def on_session_open(self, session):
        session.wake_at(session.now + 0.1)
"""


async def test_a_declared_time_is_a_cycle_on_a_quiet_cluster(tmp_path, api):
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "timed.py").write_text(TIMED)
    conf = tmp_path / "conf"
    conf.write_text(CONF.replace("  - name: gang\n", "  - name: timed\n"))
    put_node(api, "n1")
    options = {"scheduler_conf": str(conf), "plugins_dir": str(plugins), "schedule_period": 0.01, "idle_period": 10_000}
    async with Live(tmp_path, api, **options) as live:
        await live.until(lambda: live.scheduler.cycles > 5)


async def test_a_quiet_cluster_without_declared_times_has_no_cycle_before_its_period(tmp_path, api):
    put_node(api, "n1")
    async with Live(tmp_path, api, schedule_period=0.01, idle_period=10_000) as live:
        await live.quiet()
