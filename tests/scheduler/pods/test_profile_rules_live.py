"""Gangs of profiles in the scheduler's process: subject to its filters, which are watched and reported."""

from unittest.mock import patch

from live_scheduler import put_gang, put_node
from msgspec import structs
from test_pods_live import condition, live, put_pod

from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model.plan import Bind

GROUP = {"annotations": {"scheduling.k8s.io/group-name": "gang"}}
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: platform
  plugins: {multiPoint: {enabled: [{name: MachineGroups}%s]}}
"""
NOTED = """\
from volcano_py.profile_plugin import SUCCESS, Filter, Permit, PostBind


class Noted(Filter, Permit, PostBind):
    name = "Noted"

    def __init__(self, arguments, handle):
        self.handle = handle

    def filter(self, state, pod, node):
        while pod.name.startswith("bad"):
            pass
        return SUCCESS

    def permit(self, state, pod, node):
        return SUCCESS, 0.0

    def post_bind(self, state, pod, node):
        self.handle.event(pod, "Noted", f"it is on {node}")
"""


def uid_of(api, name):
    return api.objects["pods", "default", name]["metadata"]["uid"]


def put_members(api, count, prefix="member"):
    for i in range(count):
        put_pod(api, f"{prefix}-{i}", "platform", metadata=GROUP)


def with_plugin(tmp_path, api, **options):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "noted.py").write_text(NOTED)
    return live(tmp_path, api, config=CONFIG % ", {name: Noted}", plugins_dir=str(tmp_path / "plugins"), **options)


async def test_a_gang_of_a_profile_keeps_off_reserved_machines_and_says_why(tmp_path, api):
    put_node(api, "red", "8", labels={"volcano.sh/machine-group": "red"})
    put_gang(api, "gang", 2, members=0)
    put_members(api, 2)
    async with live(tmp_path, api, config=CONFIG % "") as running:
        await running.until(lambda: "1 node(s) belonged to another machine group" in condition(api, "member-0"))
        assert not running.bound()
        put_node(api, "free", "2")
        await running.until(lambda: len(running.bound("member")) == 2)
        assert set(running.bound("member").values()) == {"free"}


async def test_points_that_do_not_hold_are_logged_once_and_post_bind_is_called(tmp_path, api, caplog):
    put_node(api, "n1", "8")
    put_gang(api, "gang", 2, members=0)
    put_members(api, 2)
    async with with_plugin(tmp_path, api) as running:
        await running.until(lambda: len(running.bound("member")) == 2)
        events = lambda: [  # noqa: E731
            o["message"] for (plural, _, _), o in api.objects.items() if plural == "events" and o["reason"] == "Noted"
        ]
        await running.until(lambda: len(events()) == 2)
        assert set(events()) == {"it is on n1"}
        running.scheduler.profiles.rebuilt()
    assert sum("not called for pods of gangs" in r.getMessage() for r in caplog.records) == 1
    assert "permit of Noted" in caplog.text


async def test_post_bind_is_called_once_when_the_watch_is_before_the_result(tmp_path, api):
    put_node(api, "n1", "8")
    put_pod(api, "alone", "platform")
    async with with_plugin(tmp_path, api) as running:
        await running.until(lambda: running.bound("alone"))
        profiles = running.scheduler.profiles
        await running.until(lambda: not profiles.assumes("default/alone", uid_of(api, "alone")))
        late = Bind("default", "alone", uid_of(api, "alone"), "n1", "")
        with patch.object(profiles.scheduler.session_rules, "bound") as called:
            profiles.handle_result(late, Result(0, "done"))
            assert not called.called
            profiles.handle_result(structs.replace(late, group="default/gang"), Result(0, "done"))
            assert called.called, "the session's binds have a job"


async def test_a_filter_that_does_not_return_is_closed_and_other_gangs_continue(tmp_path, api):
    put_node(api, "n1", "8")
    put_gang(api, "gang", 1, members=0)
    put_members(api, 1, "bad")
    async with with_plugin(tmp_path, api, plugin_deadline=0.3) as running:
        await running.until(lambda: "Noted" in running.scheduler.containment.not_called)
        assert b'volcano_py_stuck_cycles_total{plugin="Noted"}' in running.scheduler._expose()
        put_gang(api, "other", 2)
        await running.until(lambda: len(running.bound("other")) == 2)
        await running.until(lambda: "1 plugin Noted did not return" in condition(api, "bad-0"))
        assert not running.bound("bad")
