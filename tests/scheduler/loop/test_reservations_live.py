"""Reservations of the whole scheduler: watched and answered while the plugin is configured, and otherwise not."""

import asyncio
import contextlib
import logging
import time

from fake_api import Fault, status
from live_scheduler import Live, put_gang, put_node

from tests.waiting import budget
from volcano_py.api.meta import format_time
from volcano_py.api.reservation import ReservationStatus
from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.scheduler.cache.reservations import ReservationObjects
from volcano_py.scheduler.framework.advance.advance_book import KeptWindows
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.run_once import REGISTRY

CONF = (
    "actions: 'enqueue, allocate'\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: advance-reservation}]\n"
)
WITHOUT = CONF.replace(", {name: advance-reservation}", "")
KEY = ("reservations", "", "maintenance")


def reserve(api, duration, **metadata):
    spec = {"startTime": format_time(time.time() - 60), "duration": duration, "nodes": ["n1"]}
    api.put("reservations", {"metadata": {"name": "maintenance", "uid": "u1", **metadata}, "spec": spec})


async def test_the_status_is_written_and_the_nodes_are_kept_until_the_end(tmp_path, api):
    (tmp_path / "conf").write_text(CONF)
    put_node(api, "n1")
    reserve(api, "1h")
    async with Live(tmp_path, api, scheduler_conf=str(tmp_path / "conf")) as live:
        put_gang(api, "g", 2)
        await live.until(lambda: api.objects[KEY].get("status", {}).get("phase") == "Active")
        assert api.objects[KEY]["status"]["nodes"] == ["n1"]
        assert not api.bindings
        reserve(api, "10s")
        await live.until(lambda: len(api.bindings) == 2)
        await live.until(lambda: api.objects[KEY].get("status", {}).get("phase") == "Ended")


class Watched:
    """The part alone, with a configuration that changes."""

    def __init__(self, client):
        self.text, self.model, self.leads, self.changes = CONF, Cluster(), True, 0
        configurations = {text: load(text, REGISTRY.actions) for text in (CONF, WITHOUT)}
        self.part = ReservationObjects(
            client, lambda: self.model, lambda: configurations[self.text], self.changed, lambda: self.leads, pause=0.01
        )

    def changed(self):
        self.changes += 1

    @property
    def known(self):
        return self.model.others.get("Reservation", {})

    def state(self, status):
        self.model.keep(KeptWindows).statuses["maintenance"] = status


@contextlib.asynccontextmanager
async def watched(api):
    async with Client(Credentials(server=api.url)) as client:
        found = Watched(client)
        task = asyncio.create_task(found.part.run())
        try:
            yield found
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def until(test):
    async with asyncio.timeout(budget()):
        while not test():
            await asyncio.sleep(0.01)


async def test_a_configuration_that_changes_starts_and_ends_the_watch(api):
    reserve(api, "1h")
    async with watched(api) as found:
        found.text = WITHOUT
        await until(found.part.first_read.is_set)
        await asyncio.sleep(0.05)
        assert not any("reservations" in line for line in api.log), "nothing is watched without the plugin"
        found.text = CONF
        await until(lambda: found.known)
        found.text = WITHOUT
        await until(lambda: not found.known)
        found.text = CONF
        await until(lambda: found.known)


async def test_only_the_leader_writes_and_what_is_gone_is_removed(api):
    reserve(api, "1h")
    async with watched(api) as found:
        found.leads = False
        found.state(ReservationStatus(phase="Active", nodes=["n1"], message="wait"))
        await until(lambda: found.known)
        await asyncio.sleep(0.05)
        assert "status" not in api.objects[KEY]
        found.leads = True
        await until(lambda: "status" in api.objects[KEY])
        assert api.objects[KEY]["status"] == {"phase": "Active", "nodes": ["n1"], "message": "wait"}
        found.state(ReservationStatus(phase="Ended", nodes=["n1"]))
        await until(lambda: api.objects[KEY]["status"]["phase"] == "Ended")
        assert not api.objects[KEY]["status"].get("message")
        written = len(api.bodies)
        await asyncio.sleep(0.1)
        assert len(api.bodies) == written, "a status that is right is not written again"
        assert found.changes == 1, "a change of the status alone causes no cycle"
        await until(lambda: found.known["maintenance"].status.phase == "Ended")
        api.remove("reservations", "maintenance", "")
        await until(lambda: not found.known)


async def test_a_status_that_is_forbidden_is_reported_once_and_tried_again(api, caplog):
    async def forbid(_):
        return status(403, "Forbidden", "reservations.reservation.volcano.sh is forbidden")

    api.faults.append(Fault(lambda request: request.method == "PATCH", forbid, 3))
    reserve(api, "1h")
    with caplog.at_level(logging.WARNING):
        async with watched(api) as found:
            found.state(ReservationStatus(phase="Active"))
            await until(lambda: "status" in api.objects[KEY])
    [text] = [record.message for record in caplog.records if "cannot be written" in record.message]
    assert "the status of Reservation maintenance" in text and "grant it" in text


async def test_a_cluster_without_the_crd_has_no_reservations(api, caplog):
    async def missing(_):
        return status(404, "NotFound", "the server could not find the requested resource")

    api.faults.append(Fault(lambda request: "reservations" in request.path, missing, 10**6))
    with caplog.at_level(logging.WARNING):
        async with watched(api) as found:
            await until(found.part.first_read.is_set)
            await until(lambda: caplog.records)
            assert not found.known
    [text] = [record.message for record in caplog.records]
    assert text.startswith("plugin advance-reservation reserves nothing") and "install the CRD reservations" in text
