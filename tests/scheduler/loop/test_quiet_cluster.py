"""Cycles without a change: at the times that plugins declare, and once in a period."""

from live_scheduler import CONF, Live, put_node


async def test_a_quiet_cluster_has_cycles(tmp_path, api):
    put_node(api, "n1")
    async with Live(tmp_path, api, schedule_period=0.01, idle_period=0.05) as live:
        await live.until(lambda: live.scheduler.cycles > 5)


TIMED = """
from volcano_py.plugin import Plugin

class Timed(Plugin):
    name = "timed"
    def on_session_open(self, session):
        session.wake_at(session.now + 0.1)
"""


async def test_a_declared_time_is_a_cycle_on_a_quiet_cluster(tmp_path, api):
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "timed.py").write_text(TIMED)
    conf = tmp_path / "conf"
    conf.write_text(CONF.replace("  - name: gang\n", "  - name: timed\n"))
    put_node(api, "n1")
    options = {"scheduler_conf": str(conf), "plugins_dir": str(plugins), "schedule_period": 0.01, "idle_period": 10_000}
    async with Live(tmp_path, api, **options) as live:
        await live.until(lambda: live.scheduler.cycles > 5)


async def test_a_quiet_cluster_without_declared_times_has_no_cycle_before_its_period(tmp_path, api):
    put_node(api, "n1")
    async with Live(tmp_path, api, schedule_period=0.01, idle_period=10_000) as live:
        await live.quiet()
