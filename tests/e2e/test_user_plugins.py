"""Plugins of one's own, from --plugins-dir, that raise: closed, named in log and metric, and the cycle goes on."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.e2e.cluster import SERVE_METRICS, bound, cluster, job, log_of, metrics_of, nodes_of, until
from volcano_py.api.kinds import EVENT, JOB

PLUGIN = """
import msgspec
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments


class Moody(Plugin):
    name = "moody"

    class Arguments(PluginArguments):
        bad: str = msgspec.field(default="", name="moody.node")

    def on_session_open(self, session):
        session.add_predicate(self.predicate)
        session.add_node_order(self.score)
        session.add_job_ready(self.ready)

    def predicate(self, task, node):
        if node.name == self.arguments.bad:
            raise ValueError("not that one")

    def score(self, task, node):
        raise KeyError("no score")

    def ready(self, job):
        if "unlucky" in job.name:
            raise RuntimeError("no opinion")
        return True
"""
CONF = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - {name: binpack}
  - {name: moody, arguments: {moody.node: node-0}}
"""


TUTORIAL = Path(__file__).parents[2] / "docs" / "plugin-authors.md"
BLOCK = re.compile(r"^<!-- (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


async def test_the_tutorial_runs_in_a_live_scheduler(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    files = dict(BLOCK.findall(TUTORIAL.read_text()))
    for name in ("fewest_pods.py", "teams.py", "tally.py"):
        (plugins / name).write_text(files[name])
    conf = tmp_path / "my.conf"
    conf.write_text(files["my.conf"])
    flags = (f"--plugins-dir={plugins}", f"--scheduler-conf={conf}")
    async with cluster(tmp_path, nodes=3, scheduler=flags) as (_, client):
        await client.create(JOB, job("spread", 3, "100m", seconds=600), "default")

        async def placed() -> bool:
            return await bound(client, "spread") == 3

        await until(placed, "the job is not bound")
        assert len(set(await nodes_of(client, "spread"))) == 3

        async def reported() -> bool:
            events = await client.list(EVENT, "default")
            return any(e["reason"] == "Placement" and "node-0: 1" in e["message"] for e in events)

        await until(reported, "the action reports nothing")


async def test_a_plugin_that_raises_is_closed_named_and_counted_and_the_cycle_goes_on(tmp_path: Path) -> None:
    plugins, conf = tmp_path / "plugins", tmp_path / "conf"
    plugins.mkdir()
    (plugins / "moody.py").write_text(PLUGIN)
    conf.write_text(CONF)
    flags = (f"--plugins-dir={plugins}", f"--scheduler-conf={conf}", *SERVE_METRICS)
    async with cluster(tmp_path, nodes=3, scheduler=flags) as (sandbox, client):
        await client.create(JOB, job("unlucky", 1, "1", seconds=600), "default")
        await client.create(JOB, job("good", 2, "500m", seconds=600), "default")

        async def good() -> bool:
            return await bound(client, "good") == 2

        await until(good, "the good job is not bound")
        assert "node-0" not in await nodes_of(client, "good"), "where the predicate raises, the node is rejected"

        async def logged() -> bool:
            log = log_of(sandbox, "scheduler")
            return all(
                f"plugin moody failed in {point}" in log and error in log
                for point, error in (
                    ("predicate", "ValueError: not that one"),
                    ("node_order", "KeyError: 'no score'"),
                    ("job_ready", "RuntimeError: no opinion"),
                )
            )

        await until(logged, "the faults are not logged")
        await asyncio.sleep(1.0)
        assert await bound(client, "unlucky") == 0, "a job that the plugin cannot judge is not ready"
        lines = [line for line in log_of(sandbox, "scheduler").splitlines() if "plugin moody failed" in line]
        assert len(lines) == 3, "one line a fault, however many pods and nodes and cycles it hits"
        counted = await metrics_of(sandbox)
        for point in ("predicate", "node_order", "job_ready"):
            assert counted[f'volcano_py_plugin_faults_total{{plugin="moody",point="{point}"}}'] >= 1
        before = counted["volcano_py_cycles_total"]

        async def goes_on() -> bool:
            return (await metrics_of(sandbox))["volcano_py_cycles_total"] > before

        await until(goes_on, "there are no more cycles")
