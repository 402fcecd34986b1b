"""The whole scheduler with an invalid configuration at its start."""

import asyncio

import aiohttp
import pytest
from fake_api import status
from live_scheduler import CONF, Live, put_gang, put_node

from tests.waiting import budget

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
