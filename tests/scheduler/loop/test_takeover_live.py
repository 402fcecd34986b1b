"""A standby that becomes the leader decides only with current lists."""

import asyncio

import pytest
from fake_api import status
from live_scheduler import Live, put_gang, put_node, put_pod

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
