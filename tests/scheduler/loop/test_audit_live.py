"""A whole scheduler finds drift, reports it, and binds nothing to a node that it doubts."""

import asyncio

from live_scheduler import Live, put_gang, put_node, put_pod

from volcano_py.scheduler.runtime.auditing import REASON


def fast(scheduler):
    """The audit without pauses between requests."""

    async def sleep(seconds):
        await asyncio.sleep(min(seconds, 0.01))

    scheduler.audit._sleep = sleep


def events(api):
    return [o for (plural, _, _), o in api.objects.items() if plural == "events" and o["reason"] == REASON]


async def decided(live):
    """Wait until some cycles have tried the pending gang."""
    cycles = live.scheduler.cycles
    await live.until(lambda: live.scheduler.cycles > cycles + 2)


async def test_a_gang_is_not_bound_to_capacity_that_a_lost_event_has_taken(tmp_path, api):
    put_node(api, "n1", cpu="2")
    live = Live(tmp_path, api)
    fast(live.scheduler)
    async with live:
        list_again = live.scheduler.cache.informers["Pod"].list_again
        held = asyncio.Event()
        may_list = asyncio.Event()

        async def late_list(doubted):
            held.set()
            await may_list.wait()
            await list_again(doubted)

        live.scheduler.cache.informers["Pod"].list_again = late_list
        put_pod(api, "foreign", "", cpu="2", node="n1")
        api.history.pop()  # no watch returns it
        await live.until(held.is_set)
        assert dict(live.scheduler.cache.model.held.why) == {"n1": "Pod default/foreign"}
        assert b"volcano_py_held_nodes 1.0" in live.scheduler._expose()
        put_gang(api, "g", 2)
        await live.until(lambda: "default/g" in live.scheduler.cache.model.jobs)
        await decided(live)
        assert not live.bound()
        may_list.set()
        await live.until(lambda: events(api))
        await decided(live)
        assert not live.bound()
        (event,) = events(api)
        assert event["involvedObject"]["name"] == "foreign" and "(missing)" in event["message"]
        text = live.scheduler._expose().decode()
        assert 'volcano_py_cache_drift_total{form="missing",kind="Pod"} 1.0' in text
        assert "volcano_py_held_nodes 0.0" in text
        assert not live.scheduler.cache.model.held


async def test_the_audit_can_be_turned_off(tmp_path, api):
    async with Live(tmp_path, api, cache_audit_period=0.0) as live:
        assert live.scheduler.audit is None
