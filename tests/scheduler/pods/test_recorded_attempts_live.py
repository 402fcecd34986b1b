"""What a scheduler with profiles has recorded decides the same when it is replayed."""

from live_scheduler import put_gang, put_node
from test_pods_live import condition, live, put_pod

from volcano_py.simulate.replay import Replayed, ReplayedAttempt, replay

GROUP = {"annotations": {"scheduling.k8s.io/group-name": "gang"}}


async def test_attempts_and_cycles_with_the_rules_of_profiles(tmp_path, api):
    folder = tmp_path / "recorded"
    for i in range(4):
        put_node(api, f"n{i}", "8")
    async with live(tmp_path, api, record=str(folder), record_limit=10) as running:
        await running.until(lambda: running.scheduler.cycles)
        put_pod(api, "a", "spread-out")
        await running.until(lambda: len(running.bound()) == 1)
        put_pod(api, "b", "packed")
        put_pod(api, "large", "packed", cpu="9")
        put_gang(api, "gang", 3, members=0)
        for i in range(3):
            put_pod(api, f"gang-{i}", "packed", metadata=GROUP)
        await running.until(lambda: len(running.bound()) == 5 and condition(api, "large"))
        before = running.scheduler.cycles
        put_gang(api, "later", 1)
        await running.until(lambda: running.scheduler.cycles > before and len(running.bound()) == 6)
        await running.quiet()
    found = [each for file in sorted(folder.iterdir()) for each in replay(file)]
    attempts = [each for each in found if isinstance(each, ReplayedAttempt)]
    cycles = [each for each in found if isinstance(each, Replayed)]
    assert {each.search.pod for each in attempts} == {"default/a", "default/b", "default/large"}
    assert all(each.identical for each in found) and sum(each.report.bound for each in cycles) == 4
