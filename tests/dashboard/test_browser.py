"""The dashboard in Chromium: what it shows, live updates, the keyboard, rights, and 10,000 jobs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.browser import CHROMIUM, DRIVER, MISSING, Browser, browser
from tests.dashboard.serving import kubeconfig_of, serving
from tests.dashboard.story import job, story
from volcano_py.api.kinds import CLUSTERROLE, CLUSTERROLEBINDING, JOB, PODGROUP
from volcano_py.kube.client import Client
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=MISSING)]
Manifest = dict[str, Any]
ALICE = User("alice", ("system:authenticated",))


@pytest.fixture
def chromium() -> Iterator[Browser]:
    with browser() as one:
        yield one
        assert not one.problems()


async def test_queues_reasons_and_the_heat_map_are_shown_live(tmp_path: Path, chromium: Browser) -> None:
    async with story(tmp_path) as (_, client, served):

        def queues() -> None:
            chromium.open(served.at())
            chromium.shows("research", "vision", "deserved by weight", "128Gi guarantee", "400Gi limit", "live")
            assert chromium.count(".queue .bar .held") >= 18

        def jobs() -> None:
            chromium.open(served.at("/jobs"))
            chromium.shows("pretrain-large", "segment", "train-resnet")
            chromium.element("input[type=search]").send_keys("segment")
            chromium.until(lambda: chromium.count("tbody tr") == 1, "the filter does not hold")
            assert "text=segment" in chromium.driver.current_url
            chromium.open(served.at("/jobs?state=waiting"))
            chromium.until(lambda: chromium.count("tbody tr") == 2, "not two jobs wait")

        def reasons() -> None:
            chromium.click("segment")
            chromium.shows("Why it waits", "Queue vision does not admit the job", "Suspend Job")
            below = "What would unblock it?"
            at = chromium.top(below)
            chromium.run("document.querySelector('.actions button').style.display = 'none'")
            assert chromium.top(below) == at, "a button that appears late moves the next one under the pointer"
            chromium.run("document.querySelector('.actions button').style.display = ''")
            chromium.click(below)
            chromium.shows("Each of these would let it start")

        def heat() -> None:
            chromium.open(served.at("/nodes"))
            chromium.shows("hall / rack-0", "node-00", "12 of 12 nodes are ready")
            assert chromium.count(".cell") == 12
            before = chromium.text()
            chromium.click("gpu")
            chromium.until(lambda: chromium.text() != before, "the resource does not change")
            chromium.click("node-00")
            chromium.shows("Node node-00", "HyperNodes: hall / rack-0", "Pods")

        def cycles() -> None:
            chromium.open(served.at("/cycles"))
            chromium.shows("cycles", "allocate", "Mean time")

        for step in (queues, jobs, reasons, heat, cycles):
            await asyncio.to_thread(step)
        await asyncio.to_thread(chromium.open, served.at("/jobs"))
        await client.create(JOB, job("just-now", "reports", 1, 600, cpu="1"))
        await asyncio.to_thread(chromium.shows, "just-now")
        await asyncio.to_thread(chromium.leave)


async def test_keyboard_phone_and_themes(tmp_path: Path, chromium: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    def focused() -> str:
        return str(chromium.run("return document.activeElement.innerText"))

    def steps(at: Callable[[str], str]) -> None:
        chromium.prefer("dark")
        chromium.open(at("/"))
        chromium.shows("default")
        assert chromium.run("return document.body.classList.contains('body--dark')")
        body = chromium.element("body")
        seen = []
        for _ in range(4):
            body.send_keys(Keys.TAB)
            seen.append(focused())
        assert seen == ["Skip to the content", "Queues", "Jobs", "Nodes"]
        chromium.driver.switch_to.active_element.send_keys(Keys.ENTER)
        chromium.until(lambda: chromium.driver.current_url.endswith("/nodes"), "Enter does not follow the link")
        chromium.shows("node-0")
        chromium.click("Auto")
        chromium.until(lambda: not chromium.run("return document.body.classList.contains('body--dark')"), "not light")
        chromium.open(at("/"))
        chromium.shows("Light")
        assert not chromium.run("return document.body.classList.contains('body--dark')"), "the choice is not kept"
        chromium.size(390, 800)
        for path in ("/", "/jobs", "/nodes", "/reservations", "/shares", "/evictions", "/cycles"):
            chromium.open(at(path))
            chromium.shows("live")
            assert chromium.run("return document.documentElement.scrollWidth") <= 390, path

    async with (
        Sandbox(3, path=tmp_path / "kubeconfig", controllers=None, hollow=False) as sandbox,
        serving(sandbox.kubeconfig) as served,
    ):
        await asyncio.to_thread(steps, served.at)
        await asyncio.to_thread(chromium.leave)


def rule(groups: list[str], resources: list[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


READ = [
    rule(["batch.volcano.sh", "scheduling.volcano.sh", "topology.volcano.sh"], ["*"], ["get", "list", "watch"]),
    rule([""], ["pods"], ["get", "list", "watch"]),
]


async def grant(client: Client, name: str, rules: list[Manifest]) -> None:
    await client.create(CLUSTERROLE, {"metadata": {"name": name}, "rules": rules})
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    await client.create(CLUSTERROLEBINDING, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})


async def test_actions_end_where_the_rights_of_the_user_end(tmp_path: Path, chromium: Browser) -> None:
    async with story(tmp_path, users={"alices": ALICE}) as (sandbox, client, served):
        await grant(client, "alice-reads", READ)
        await grant(client, "alice-commands", [rule(["bus.volcano.sh"], ["commands"], ["create"])])
        async with serving(kubeconfig_of(Path(sandbox.kubeconfig), "alices")) as of_alice:

            def look() -> None:
                chromium.open(of_alice.at("/nodes"))
                chromium.shows("2 kinds are not or only partly shown", "You may not list nodes.")
                chromium.open(of_alice.at("/reservations"))
                chromium.shows("You may not list reservations")
                chromium.open(of_alice.at("/jobs/default/tokenize"))
                chromium.shows("Suspend Job")

            await asyncio.to_thread(look)
            await client.delete(CLUSTERROLEBINDING, "alice-commands")

            def reject() -> None:
                chromium.click("Suspend Job")
                chromium.shows("Its pods are deleted")
                chromium.click("Yes, suspend")
                chromium.shows("The API server rejected it", "cannot create resource", "kubectl create")
                chromium.until(lambda: not chromium.element(".actions button").is_displayed(), "the button stays")

            await asyncio.to_thread(reject)
            await asyncio.to_thread(chromium.leave)

        def act() -> None:
            chromium.open(served.at("/jobs/default/tokenize"))
            chromium.shows("Suspend Job")
            chromium.click("Suspend Job")
            chromium.click("Cancel")
            chromium.until(lambda: chromium.count(".question") == 0, "the question stays")
            assert "Running" in chromium.text()
            chromium.click("Suspend Job")
            chromium.click("Yes, suspend")
            chromium.shows("is being suspended", "Aborted", "Resume Job")
            chromium.open(served.at("/queues/reports"))
            chromium.shows("Close Queue")
            chromium.click("Close Queue")
            chromium.click("Yes, close")
            chromium.shows("is being closed", "Clos")

        await asyncio.to_thread(act)
        await asyncio.to_thread(chromium.leave)


def processor_seconds(pid: int) -> float:
    """What a process has used of the processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


IDLE = 20
"""Seconds for which a viewer looks at a page where nothing changes."""


async def test_10000_jobs(tmp_path: Path, chromium: Browser) -> None:
    async with (
        Sandbox(3, path=tmp_path / "kubeconfig", controllers=None, hollow=False, volcano_admission=False) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        await _many(client, 10_000)
        async with serving(sandbox.kubeconfig) as served:

            def paint() -> list[float]:
                times = []
                for _ in range(5):
                    chromium.open(served.at("/jobs"))
                    chromium.shows("Page 1 of 200, 10,000 jobs")
                    times.append(chromium.first_paint())
                return times

            times = await asyncio.to_thread(paint)
            before, began = processor_seconds(served.pid), time.monotonic()
            await asyncio.sleep(IDLE)
            part = (processor_seconds(served.pid) - before) / (time.monotonic() - began)
            memory = next(
                int(line.split()[1]) // 1024
                for line in Path(f"/proc/{served.pid}/status").read_text().splitlines()
                if line.startswith("VmRSS")
            )
            paints = ", ".join(f"{t:.0f}" for t in times)
            print(f"\n10,000 jobs: first paint {paints} ms; one idle viewer {part:.2%} of a core; {memory} MB")
            # a busy machine is no reason to fail: ten times what the dashboard may need
            assert min(times) < 10_000 and part < 0.1

            def further() -> None:
                chromium.click("Next")
                chromium.shows("Page 2 of 200")
                assert chromium.count("tbody tr") == 50
                chromium.element("input[type=search]").send_keys("job-09999")
                chromium.shows("1 job")

            await asyncio.to_thread(further)
            await asyncio.to_thread(chromium.leave)


async def _many(client: Client, count: int) -> None:
    """PodGroups, half of which wait with a reason."""
    why = "NodeResources: 3 of 3 nodes have too little cpu free; the nearest, node-0, lacks 2"
    waiting = {"type": "Waiting", "status": "True", "reason": "NodeResources", "message": why}
    numbers = iter(range(count))

    async def some() -> None:
        for n in numbers:
            status = {"phase": "Inqueue", "conditions": [waiting]} if n % 2 else {"phase": "Running", "running": 4}
            metadata = {"name": f"job-{n:05}", "namespace": "default"}
            spec = {"queue": "default", "minMember": 4, "minResources": {"cpu": "4"}}
            await client.create(PODGROUP, {"metadata": metadata, "spec": spec, "status": status})

    await asyncio.gather(*(some() for _ in range(16)))
