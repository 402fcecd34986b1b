"""The whole scheduler, with its dispatcher process, against an API server that can fail."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from fake_api import status
from live_scheduler import CONF, Live, kubeconfig, open_queues, put_gang, put_node, put_pod

from tests.waiting import budget
from volcano_py.scheduler.model.plan import PodCondition
from volcano_py.scheduler.runtime import loop, server


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


async def test_no_pod_waits_for_the_compiled_kernels(tmp_path, api, monkeypatch):
    loading, loaded = threading.Event(), threading.Event()

    def load():
        loading.set()
        loaded.wait(60)

    monkeypatch.setattr(server, "worth_compiling", lambda nodes: True)
    monkeypatch.setattr(server, "load_compiled", load)
    monkeypatch.setattr(server, "use_compiled", lambda: "numpy")
    put_node(api, "n1", "200")
    put_gang(api, "first", 1)
    async with Live(tmp_path, api) as live:
        try:
            await live.until(lambda: live.bound("first") and loading.is_set())
            put_gang(api, "second", 1)
            await live.until(lambda: live.bound("second"))
        finally:
            loaded.set()


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
        nodes, binds = {}, []
        for _, plural, _, _, o in api.history:
            name, node = o["metadata"]["name"], o["spec"].get("nodeName") if plural == "pods" else None
            if node and not nodes.get(name):
                binds.append(name)
            if plural == "pods":
                nodes[name] = node
        assert sorted(binds) == sorted(live.bound()), "each pod is bound once"


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
    import volcano_py.scheduler.runtime.server as server

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


async def test_series_of_a_pod_without_a_podgroup_end_with_the_pod(tmp_path, api):
    put_node(api, "n1")
    async with Live(tmp_path, api) as live:
        put_pod(api, "bare", "")
        await live.until(live.bound)
        uid = api.objects[("pods", "default", "bare")]["metadata"]["uid"]
        series = f'job_name="podgroup-{uid}"'.encode()
        assert series in live.scheduler.reporter.expose()
        api.remove("pods", "bare")
        await live.until(lambda: series not in live.scheduler.reporter.expose())
