"""The stored history of the whole scheduler: written, read by the next process, and repaired."""

import asyncio
import json
import logging

import pytest
from live_scheduler import Live, put_gang, put_node

from volcano_py.kube import KubeError, NotFound
from volcano_py.scheduler.configuration.history import HistoryMap, parts_of
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.reservations.history import History
from volcano_py.scheduler.plugins.fairshare.usage import DecayedUsage, Owner
from volcano_py.scheduler.run_once import REGISTRY

CONF = "actions: 'enqueue, allocate'\ntiers:\n- plugins: [{name: gang}, {name: fairshare}, {name: predicates}]\n"
STORED = ("configmaps", "volcano-system", "volcano-scheduler-history")


def usage(live):
    return live.scheduler.cache.model.keep(DecayedUsage)


def stored(api):
    return json.loads(api.objects[STORED]["data"]["history.json"])


@pytest.fixture
def conf(tmp_path):
    path = tmp_path / "conf"
    path.write_text(CONF)
    return str(path)


async def test_the_next_process_continues_with_the_usage(tmp_path, api, conf):
    put_node(api, "n1")
    async with Live(tmp_path, api, scheduler_conf=conf) as live:
        put_gang(api, "g", 2)
        await live.until(lambda: usage(live).held)
        owner = next(iter(usage(live).held))
        usage(live).used[owner] = 5_000.0
        assert STORED not in api.objects, "at most once a minute"
    [found] = stored(api)["parts"]["fairshare"]["owners"]
    assert found["owner"] == owner.name and 4_999 < found["used"] < 5_100
    api.objects[STORED]["data"]["history.json"] = json.dumps(stored(api)).replace(str(found["used"]), "7000")
    async with Live(tmp_path, api, scheduler_conf=conf) as live:
        await live.until(lambda: usage(live).used)
        assert 6_999 < usage(live).used[owner] < 7_100, "an edit by hand counts"


async def test_a_corrupted_document_is_reported_once_and_written_again(tmp_path, api, conf, caplog):
    put_node(api, "n1")
    metadata = {"namespace": "volcano-system", "name": "volcano-scheduler-history"}
    api.put("configmaps", {"metadata": metadata, "data": {"history.json": "{..."}})
    with caplog.at_level(logging.WARNING):
        async with Live(tmp_path, api, scheduler_conf=conf) as live:
            put_gang(api, "g", 2)
            await live.until(lambda: usage(live).held)
    found = [record.message for record in caplog.records if "history" in record.message]
    assert len(found) == 1 and "volcano-scheduler-history, key history.json: it is not JSON" in found[0]
    assert stored(api)["parts"]["fairshare"]["owners"]


async def test_without_such_plugins_nothing_is_read_or_written(tmp_path, api):
    path = tmp_path / "plain"
    path.write_text(CONF.replace("{name: fairshare}, ", ""))
    put_node(api, "n1")
    async with Live(tmp_path, api, scheduler_conf=str(path)) as live:
        put_gang(api, "g", 2)
        await live.until(lambda: len(api.bindings) == 2)
        assert not live.scheduler.cache.model.keep(History).states
    assert STORED not in api.objects


class FakeClient:
    """Counts writes, and fails the first ones."""

    def __init__(self, failures=0):
        self.failures, self.writes, self.reads = failures, 0, 0

    async def get(self, *_, **__):
        self.reads += 1
        raise NotFound(404, "NotFound", "not found")

    async def patch(self, *_):
        self.writes += 1
        if self.writes <= self.failures:
            raise KubeError("not permitted")


async def test_a_failed_write_is_reported_once_and_a_new_leader_reads_again(caplog):
    history, leads = History(), [True]
    history.take("fairshare", state := DecayedUsage(at=1.0))
    conf = load(CONF, REGISTRY.actions)
    own = HistoryMap("ns", "name", lambda: history, lambda: conf, lambda: leads[0])
    client = FakeClient(failures=2)
    task = asyncio.create_task(own.run(client, pause=0.001, interval=0.05))
    while client.writes < 3:
        state.used[Owner("q", str(client.writes))] = 1.0
        await asyncio.sleep(0.001)
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert client.reads == 1 and "cannot be written" in warning
    leads[0] = False
    await asyncio.sleep(0.02)
    leads[0] = True
    while client.reads < 2:
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "must be an object"),
        ('{"version": 1, "parts": []}', "must be an object"),
        ('{"version": 2, "parts": {}}', "its version is 2"),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_documents_that_are_not_valid(text, problem):
    with pytest.raises(ValueError, match=problem):
        parts_of(text)
