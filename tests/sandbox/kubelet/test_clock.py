"""Simulated time: its order, its changes of speed, and the ConfigMap that sets it."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests import waiting
from tests.sandbox.clients import MERGE, PODS, Http, pod
from volcano_py.sandbox.kubelet.clock import Clock, parse_speed

CLOCKS = "/api/v1/namespaces/kube-system/configmaps"


async def test_timers_run_in_order_and_can_be_cancelled() -> None:
    clock = Clock()
    clock.set_speed(100)
    rung: list[str] = []
    clock.call_later(6, rung.append, "c")
    clock.call_later(2, rung.append, "a")
    clock.call_later(4, rung.append, "b")
    clock.call_later(3, rung.append, "never").cancel()
    last = asyncio.Event()
    clock.call_later(7, last.set)
    await waiting.within(last.wait(), "the last timer has not fired")
    assert rung == ["a", "b", "c"] and clock.now() >= 7


async def test_a_change_of_speed_moves_what_is_under_way() -> None:
    clock = Clock()
    rung = asyncio.Event()
    clock.call_later(3600, rung.set)
    before = clock.now()
    assert clock.now() - before < 1
    clock.set_speed(36_000)
    await waiting.within(rung.wait(), "the timer has not fired")
    clock.set_speed(0.001)
    at = clock.now()
    await asyncio.sleep(0.02)
    assert clock.now() - at < 0.01


async def test_a_timer_may_set_another() -> None:
    clock = Clock()
    clock.set_speed(1000)
    done = asyncio.Event()
    clock.call_later(1, lambda: clock.call_later(1, done.set))
    await waiting.within(done.wait(), "the second timer has not fired")


@pytest.mark.parametrize("text", ["0", "-1", "fast", "nan", "inf", ""])
def test_a_wrong_speed_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="1 is the wall clock"):
        parse_speed(text)


async def test_the_configmap_speeds_pods_up(api: Http) -> None:
    sleeper = pod("sleeper", nodeName="node-0", restartPolicy="Never")
    sleeper["spec"]["containers"][0]["command"] = ["sleep", "300"]
    await api.ok("POST", PODS, sleeper)
    await api.until(PODS + "/sleeper", lambda found: found["status"]["phase"] == "Running")
    began = time.monotonic()
    clock = {"metadata": {"name": "sandbox-clock"}, "data": {"speed": "1000"}}
    await api.ok("POST", CLOCKS, clock)
    await api.until(PODS + "/sleeper", lambda found: found["status"]["phase"] == "Succeeded")
    assert time.monotonic() - began < waiting.budget()  # not 300 seconds
    # nonsense changes nothing, and without the ConfigMap the wall clock is back
    await api.ok("PATCH", CLOCKS + "/sandbox-clock", {"data": {"speed": "nonsense"}}, MERGE)
    kubelets = api.sandbox.kubelets
    assert kubelets is not None and kubelets.clock.speed == 1000
    await api.ok("DELETE", CLOCKS + "/sandbox-clock")
    assert kubelets.clock.speed == 1
