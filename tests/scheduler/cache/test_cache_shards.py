"""The nodes of a scheduler when NodeShards divide them."""

import asyncio

from tests.waiting import budget
from volcano_py.api.meta import ObjectMeta
from volcano_py.api.shard import NodeShard, NodeShardSpec, NodeShardStatus
from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.scheduler.cache.shards import Shards, in_use, status_of


def shard(name, desired=(), used=()):
    return NodeShard(
        metadata=ObjectMeta(name=name),
        spec=NodeShardSpec(nodes_desired=list(desired)),
        status=NodeShardStatus(nodes_in_use=list(used)),
    )


def test_a_node_that_another_shard_uses_is_not_used_yet():
    own = shard("volcano", "abc")
    assert in_use(own, []) == frozenset("abc")
    assert in_use(own, [shard("x", "", "c"), shard("y", "", "d")]) == frozenset("ab")


def test_the_status_shows_nodes_in_use_and_pending_changes():
    assert status_of(shard("volcano", "bcd"), frozenset("ab")) == {
        "nodesInUse": ["a", "b"],
        "nodesToRemove": ["a"],
        "nodesToAdd": ["c", "d"],
    }


async def test_shards_are_watched_and_the_status_is_written_once(api):
    api.put("nodeshards", {"metadata": {"name": "other"}, "status": {"nodesInUse": ["b"]}})
    changes, may_write = [], False
    async with Client(Credentials(server=api.url)) as client:
        shards = Shards(client, "volcano", True, lambda: changes.append(1), lambda: may_write)
        assert shards.shard.nodes == frozenset() and shards.shard.hard
        task = asyncio.create_task(shards.run())

        async def until(test):
            async with asyncio.timeout(budget()):
                while not test():
                    await asyncio.sleep(0.01)

        await until(shards.informer.synced.is_set)
        api.put("nodeshards", {"metadata": {"name": "volcano"}, "spec": {"nodesDesired": ["a", "b"]}})
        await until(lambda: shards.shard.nodes == frozenset("a"))
        await asyncio.sleep(0.1)
        assert "status" not in api.objects[("nodeshards", "", "volcano")], "only the leader writes"
        may_write = True
        await until(lambda: "status" in api.objects[("nodeshards", "", "volcano")])
        wanted = {"nodesInUse": ["a"], "nodesToRemove": [], "nodesToAdd": ["b"]}
        assert api.objects[("nodeshards", "", "volcano")]["status"] == wanted
        api.remove("nodeshards", "other", "")
        await until(lambda: shards.shard.nodes == frozenset("ab"))
        await until(lambda: api.objects[("nodeshards", "", "volcano")]["status"]["nodesInUse"] == ["a", "b"])
        await asyncio.sleep(0.1)
        assert sum(entry.startswith("PATCH") for entry in api.log) == 2 and len(changes) == 2
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
