import asyncio

import pytest
from aiohttp import web
from fake_api import status

from tests.waiting import budget
from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.leader import LeaderElection

KEY = ("leases", "volcano-system", "volcano")
QUICK = {"lease_duration": 1.0, "renew_deadline": 0.5, "retry_period": 0.1}


def candidate(client, who, **options):
    return LeaderElection(client, "volcano-system", "volcano", who, **{**QUICK, **options})


async def until(test):
    async with asyncio.timeout(budget()):
        while not test():
            await asyncio.sleep(0.005)


async def stop(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_first_becomes_leader_renews_and_releases(api, client):
    started = []
    one = candidate(client, "one", on_started=lambda: started.append(1))
    task = asyncio.create_task(one.run())
    await until(lambda: one.holds())
    spec = api.objects[KEY]["spec"]
    assert spec["holderIdentity"] == "one" and spec["leaseTransitions"] == 0
    assert len(spec["renewTime"]) == len("2026-01-01T00:00:00.000000Z")
    await until(lambda: api.objects[KEY]["spec"]["renewTime"] != spec["renewTime"])
    assert api.objects[KEY]["spec"]["acquireTime"] == spec["acquireTime"]
    assert started == [1]
    await stop(task)
    assert api.objects[KEY]["spec"]["holderIdentity"] == ""
    assert not one.holds()


async def test_a_follower_acquires_a_released_lease_at_once(api, client):
    long = {"lease_duration": 10 * budget(), "renew_deadline": 5 * budget()}
    one, two = candidate(client, "one", **long), candidate(client, "two", **long)
    first = asyncio.create_task(one.run())
    await until(one.holds)
    second = asyncio.create_task(two.run())
    await until(lambda: two.observed_holder == "one")
    assert not two.leader
    await stop(first)
    await until(two.holds)  # long before the lease would expire
    assert api.objects[KEY]["spec"]["leaseTransitions"] == 1
    await stop(second)


async def test_a_leader_that_is_stopped_while_it_renews_gives_the_lease_back(api, client):
    one = candidate(client, "one", retry_period=0.3)
    task = asyncio.create_task(one.run())
    await until(one.holds)
    written = asyncio.Event()

    async def carried_out_but_not_answered(request):
        api.put("leases", await request.json())
        written.set()
        await asyncio.sleep(30)

    api.fault("PUT /leases", carried_out_but_not_answered)
    await asyncio.wait_for(written.wait(), budget())
    await stop(task)
    assert api.objects[KEY]["spec"]["holderIdentity"] == ""


async def test_a_dead_leader_is_replaced_after_the_lease_as_seen_by_us(api, client):
    # Its clock is a year ahead: only what we see change counts.
    api.put(
        "leases",
        {
            "metadata": {"namespace": "volcano-system", "name": "volcano"},
            "spec": {
                "holderIdentity": "dead",
                "leaseDurationSeconds": 1,
                "renewTime": "2099-01-01T00:00:00.000000Z",
                "leaseTransitions": 4,
            },
        },
    )
    two = candidate(client, "two")
    begun = asyncio.get_running_loop().time()
    task = asyncio.create_task(two.run())
    await until(two.holds)
    assert asyncio.get_running_loop().time() - begun >= 1.0
    assert api.objects[KEY]["spec"]["leaseTransitions"] == 5
    await stop(task)


async def test_a_standby_looks_twice_in_a_retry_period_and_when_the_lease_expires(api, client):
    held = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    api.put("leases", {"metadata": {"namespace": "volcano-system", "name": "volcano"}, "spec": held})
    now = 100.0
    slow = {"lease_duration": 15.0, "renew_deadline": 10.0, "retry_period": 2.0}
    two = candidate(client, "two", **slow, clock=lambda: now)
    assert not await two._try()
    assert two.until_next_look() == 1.0
    now = 114.6
    assert not await two._try()
    assert two.until_next_look() == pytest.approx(0.4)
    now = 115.0
    api.fault("GET /leases", lambda _: status(403, "Forbidden"))
    assert not await two._try()
    assert 2.0 <= two.until_next_look() <= 4.4
    assert await two._try() and two.holds()


async def test_never_two_at_a_time(api, client):
    candidates = [candidate(client, f"c{i}") for i in range(4)]
    tasks = [asyncio.create_task(c.run()) for c in candidates]
    for _ in range(100):
        await asyncio.sleep(0.01)
        assert sum(c.holds() for c in candidates) <= 1
    await until(lambda: sum(c.holds() for c in candidates) == 1)
    for task in tasks:
        await stop(task)


async def test_a_leader_that_cannot_renew_stops_before_another_may_start(api):
    lost = []
    async with Client(Credentials(server=api.url), timeout=0.2) as client:
        one = candidate(client, "one", on_lost=lambda: lost.append(1), lease_duration=budget())
        task = asyncio.create_task(one.run())
        await until(one.holds)
        await api.stop()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await asyncio.wait_for(task, budget())
        assert loop.time() - begun < budget()
        assert lost == [1] and not one.holds()


async def test_holds_turns_false_by_itself(api, client):
    now = [100.0]
    one = candidate(client, "one", clock=lambda: now[0])
    assert await one._try() and one.holds()
    now[0] += 0.49
    assert one.holds()
    now[0] += 0.02
    assert not one.holds(), "it ends with time alone, without a call"


async def test_a_lease_taken_by_another_ends_leadership(api, client):
    one = candidate(client, "one")
    task = asyncio.create_task(one.run())
    await until(one.holds)
    stolen = {**api.objects[KEY]["spec"], "holderIdentity": "thief"}
    api.put("leases", {"metadata": {"namespace": "volcano-system", "name": "volcano"}, "spec": stolen})
    await asyncio.wait_for(task, budget())
    assert api.objects[KEY]["spec"]["holderIdentity"] == "thief"


async def test_after_a_conflict_the_lease_is_read_and_renewed(api, client):
    one = candidate(client, "one")
    task = asyncio.create_task(one.run())
    await until(one.holds)
    api.fault("PUT ", lambda r: status(409, "Conflict"), times=1)
    await asyncio.sleep(0.4)
    assert one.holds()
    await stop(task)


def test_times_that_cannot_work_are_rejected():
    with pytest.raises(ValueError, match="lease duration"):
        LeaderElection(None, "n", "n", lease_duration=5, renew_deadline=10, retry_period=2)


@pytest.mark.parametrize(
    "body", [b"<html></html>", b"", b"[]", b"{}", b'{"spec": []}', b'{"spec": {"holderIdentity": 7}}']
)
async def test_leadership_follows_the_lease_through_invalid_responses(api, client, body):
    one = candidate(client, "one", lease_duration=2.0, renew_deadline=1.5)
    task = asyncio.create_task(one.run())
    await until(one.holds)
    api.fault("PUT leases", lambda r: web.Response(body=body, content_type="application/json"), times=3)
    before = api.objects[KEY]["spec"]["renewTime"]
    await until(lambda: api.objects[KEY]["spec"]["renewTime"] != before)
    assert one.holds() and not task.done()
    api.fault("PUT leases", lambda r: web.Response(body=body, content_type="application/json"), times=1000)
    await until(task.done)
    assert task.exception() is None and not one.leader and not one.holds()
