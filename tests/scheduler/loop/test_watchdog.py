"""A call of a plugin that does not return: the cycle is ended, and the scheduler goes on."""

import re
import threading
import time
from types import SimpleNamespace

import pytest
from live_scheduler import Live, put_gang, put_node

from volcano_py.scheduler.model import verification
from volcano_py.scheduler.protection.watchdog import CycleStuck, Watchdog

PLUGIN = """
import time
from volcano_py.plugin import Plugin

class Endless(Plugin):
    name = "endless"

    def on_session_open(self, session):
        session.{add}(self.call)

    def call(self, *subjects):
        if subjects[0].name.startswith("bad"):
            while True:
                try:
                    time.sleep(0.001)
                except Exception:
                    pass
        return {answer}
"""
CONF = "actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: endless}]\n"


def endless():
    while True:
        pass


def sleeps():
    time.sleep(600)


def pattern():
    re.match(r"(a+)+$", "a" * 40 + "b")


def swallows():
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            continue


def watchdog(cycle=0.3, call=0.0):
    return Watchdog(cycle, call, lambda: {__name__: "mine"})


@pytest.mark.parametrize("stuck", [endless, sleeps, pattern, swallows])
def test_whatever_does_not_return_is_ended_with_its_stack(stuck):
    with pytest.raises(CycleStuck) as raised, watchdog().watching():
        stuck()
    assert "a cycle has lasted" in str(raised.value)
    assert f"in {stuck.__name__}\n" in raised.value.stack


def test_a_call_of_a_plugin_has_a_limit_of_its_own():
    with pytest.raises(CycleStuck) as raised, watchdog(cycle=60, call=0.3).watching():
        endless()
    assert raised.value.plugin == "mine"
    assert "a call of plugin mine has lasted" in str(raised.value)


def test_a_cycle_within_its_limits_is_not_disturbed():
    dog = watchdog(60, 60)
    with dog.watching():
        deadline = time.monotonic() + 0.25
        while time.monotonic() < deadline:
            pass
    assert dog.seconds["mine"] > 0


def test_time_in_which_the_process_is_suspended_does_not_count():
    now = [0.0]
    dog = Watchdog(10.0, 5.0, dict, clock=lambda: now[0])
    dog._begin()
    for _ in range(15):
        now[0] += 3600
        dog._tick(0, None)
    assert dog._spent < 10


def test_many_short_calls_are_no_long_one():
    now = [0.0]
    dog = Watchdog(1000.0, 1.0, lambda: {"m": "mine"}, clock=lambda: now[0])
    dog._begin()
    for _ in range(50):
        now[0] += 0.1
        frame = SimpleNamespace(f_globals={"__name__": "m"}, f_back=None)
        dog._tick(0, frame)
    assert dog.seconds["mine"] == pytest.approx(5.0)


def test_a_plugin_that_contains_the_end_of_its_cycle_gets_it_again(monkeypatch):
    monkeypatch.setattr("volcano_py.scheduler.protection.watchdog.UNWIND", 0.1)
    contained = []
    with pytest.raises(CycleStuck), watchdog().watching():
        while len(contained) < 2:
            try:
                endless()
            except BaseException as error:
                contained.append(error)
        endless()
    assert [type(error) for error in contained] == [CycleStuck] * 2


def test_what_is_shielded_is_completed():
    dog = watchdog()
    done = []
    with pytest.raises(CycleStuck), dog.watching():
        with dog.shielded():
            deadline = time.monotonic() + 0.6
            while time.monotonic() < deadline:
                pass
            done.append(True)
        endless()
    assert done


def test_outside_of_the_main_thread_nothing_is_ended():
    done = []

    def run():
        with watchdog(0.01).watching():
            time.sleep(0.3)
            done.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done


def live_with(tmp_path, api, add, answer):
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "endless.py").write_text(PLUGIN.format(add=add, answer=answer))
    conf = tmp_path / "conf.yaml"
    conf.write_text(CONF)
    options = {"plugins_dir": str(folder), "scheduler_conf": str(conf), "plugin_deadline": 0.3}
    put_node(api, "n1", cpu="64")
    put_node(api, "n2", cpu="64")
    return Live(tmp_path, api, **options)


async def test_a_plugin_that_only_scores_is_switched_off_and_everything_is_scheduled(tmp_path, api):
    async with live_with(tmp_path, api, "add_node_order", "0.0") as live:
        scheduler = live.scheduler
        put_gang(api, "good", 2)
        await live.until(lambda: len(live.bound("good")) == 2)
        put_gang(api, "bad", 2)
        await live.until(lambda: len(live.bound("bad")) == 2)
        condition = scheduler.containment.conduct.conditions["endless"]
        assert condition.state == "off"
        assert scheduler.rebuild.count == 2
        note = scheduler.containment.note()
        assert "plugin endless did not return in 2 cycles in a row" in note and "switched off" in note
        text = scheduler._expose().decode()
        assert 'volcano_py_stuck_cycles_total{plugin="endless"} 2.0' in text
        assert 'volcano_py_plugin_condition{plugin="endless",state="off"} 1.0' in text
        assert not list(verification.differences(scheduler.cache.model))
        assert len(scheduler.cache.model.tasks) == 4


async def test_any_other_plugin_fails_closed_until_the_configuration_changes(tmp_path, api):
    async with live_with(tmp_path, api, "add_job_valid", "None") as live:
        scheduler = live.scheduler
        put_gang(api, "good", 2)
        await live.until(lambda: len(live.bound("good")) == 2)
        put_gang(api, "bad", 1)
        await live.until(lambda: "endless" in scheduler.containment.conduct.conditions)
        assert scheduler.containment.conduct.conditions["endless"].state == "closed"
        put_gang(api, "later", 1)
        await live.until(lambda: "default/later" in scheduler.cache.model.jobs and not scheduler.rebuild.in_progress)
        cycles = scheduler.cycles
        await live.until(lambda: scheduler.cycles > cycles + 2)
        assert not live.bound("later")
        group = api.objects[("podgroups", "default", "later")]
        assert "endless" in str(group["status"]["conditions"])
        (tmp_path / "conf.yaml").write_text(CONF.replace(", {name: endless}", ""))
        await live.until(lambda: live.bound("later") and live.bound("bad"))
        assert not scheduler.containment.note()
