import asyncio

import pytest
from aiohttp import web
from fake_api import PODS, line, pod, status
from test_client import Pod

from tests.waiting import budget
from volcano_py.kube import Client
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.errors import Forbidden
from volcano_py.kube.informer import Informer


class Watched:
    """An informer that runs, and its events."""

    def __init__(self, client, **options):
        self.events = []
        self.rejected = []
        options.setdefault("backoff", Backoff(0.01, 0.05))
        self.informer = Informer(client, PODS, Pod, decode_error=self.rejected.append, **options).on(
            add=lambda new: self.events.append(("add", new.metadata.name)),
            update=lambda old, new: self.events.append(("update", new.metadata.name)),
            delete=lambda last: self.events.append(("delete", last.metadata.name)),
        )
        self.task = asyncio.create_task(self.informer.run())

    async def __aenter__(self):
        await asyncio.wait_for(self.informer.synced.wait(), budget())
        return self

    async def __aexit__(self, *exc):
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task

    async def until(self, test):
        async with asyncio.timeout(budget()):
            while not test():
                await asyncio.sleep(0.005)


async def test_list_then_changes(api, client):
    for i in range(5):
        api.put("pods", pod(f"p{i}"))
    async with Watched(client, page_size=2) as w:
        assert sorted(w.informer.store) == [f"default/p{i}" for i in range(5)]
        assert w.events == [("add", f"p{i}") for i in range(5)]
        w.events.clear()
        api.put("pods", pod("p9"))
        api.put("pods", pod("p9", spec={"nodeName": "n"}))
        api.remove("pods", "p0")
        await w.until(lambda: len(w.events) == 3)
        assert w.events == [("add", "p9"), ("update", "p9"), ("delete", "p0")]
        assert w.informer.store["default/p9"].spec.node_name == "n"


async def test_a_stream_that_is_cut_resumes_where_it_was(api, client):
    api.put("pods", pod("a"))

    async def cut(request):
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        whole = line("ADDED", api.put("pods", pod("b")))
        torn = line("ADDED", api.put("pods", pod("c")))
        await response.write(whole + torn[: len(torn) // 2])
        request.transport.abort()
        return response

    api.fault("GET watch=true", cut)
    async with Watched(client) as w:
        await w.until(lambda: "default/c" in w.informer.store)
        assert w.events == [("add", "a"), ("add", "b"), ("add", "c")]
        lists = [entry for entry in api.log if "watch=true" not in entry]
        assert len(lists) == 1, "it must resume, not list again"
        assert "resourceVersion=102" in api.log[-1]


async def test_410_lists_again_and_reports_the_difference(api, client):
    api.put("pods", pod("gone"))
    api.put("pods", pod("same"))
    api.put("pods", pod("changed"))
    reborn = api.put("pods", pod("reborn"))

    def meanwhile(request):
        api.put("pods", pod("new"))
        api.put("pods", pod("changed", spec={"nodeName": "n"}))
        api.remove("pods", "gone")
        api.remove("pods", "reborn")
        api.put("pods", {"metadata": {**reborn["metadata"], "uid": "another"}})
        api.forget_history()
        return status(410, "Expired", "too old")

    api.fault("GET watch=true", meanwhile)
    async with Watched(client) as w:
        await w.until(lambda: "default/gone" not in w.informer.store)
        assert sorted(w.events[4:]) == [
            ("add", "new"),
            ("add", "reborn"),
            ("delete", "gone"),
            ("delete", "reborn"),
            ("update", "changed"),
        ]


async def test_410_inside_the_stream_and_while_paging(api, client):
    for i in range(4):
        api.put("pods", pod(f"p{i}"))
    api.fault("GET continue=2", lambda r: status(410, "Expired", "the list is too old"))

    async def error_event(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "x"}))
        return response

    api.fault("GET watch=true", error_event)
    async with Watched(client, page_size=2) as w:
        api.put("pods", pod("after"))
        await w.until(lambda: "default/after" in w.informer.store)
        assert sorted(w.events) == [("add", "after")] + [("add", f"p{i}") for i in range(4)]


async def test_a_silent_stream_is_opened_again(api, client):
    async def hang(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(30)
        return response

    api.fault("GET watch=true", hang)
    async with Watched(client, inactivity=0.2) as w:
        api.put("pods", pod("a"))
        await w.until(lambda: "default/a" in w.informer.store)


async def test_an_outage_of_the_server(api):
    async with Client(Credentials(server=api.url)) as client:
        api.put("pods", pod("a"))
        async with Watched(client) as w:
            await w.until(lambda: w.informer.connected)
            await api.stop()
            await w.until(lambda: not w.informer.connected)
            await asyncio.sleep(0.2)
            api.put("pods", pod("b"))
            await api.start(api.port)
            await w.until(lambda: "default/b" in w.informer.store)
            assert w.events == [("add", "a"), ("add", "b")]


async def test_errors_of_the_server_are_waited_out(api, client):
    api.put("pods", pod("a"))
    api.fault("GET ", lambda r: status(500, "InternalError"), times=3)
    api.fault("GET ", lambda r: status(429, "TooManyRequests", headers={"Retry-After": "0.05"}), times=2)
    async with Watched(client) as w:
        assert list(w.informer.store) == ["default/a"]


async def test_one_undecodable_object_stops_nothing(api, client):
    api.put("pods", pod("good"))
    api.put("pods", pod("bad", spec={"nodeName": 7}))
    async with Watched(client) as w:
        assert list(w.informer.store) == ["default/good"]
        assert [(r.namespace, r.name) for r in w.rejected] == [("default", "bad")]
        assert b'"nodeName": 7' in w.rejected[0].raw and "nodeName" in w.rejected[0].error
        api.put("pods", pod("good", spec={"nodeName": []}))
        api.put("pods", pod("later"))
        await w.until(lambda: "default/later" in w.informer.store)
        assert len(w.rejected) == 2
        assert "default/good" in w.informer.store, "what was known before stays"
        api.put("pods", pod("bad", spec={"nodeName": "n"}))
        await w.until(lambda: "default/bad" in w.informer.store)
        api.remove("pods", "good")
        await w.until(lambda: "default/good" not in w.informer.store)


async def test_a_handler_that_raises_does_not_stop_the_others(api, client):
    seen = []
    informer = Informer(client, PODS, Pod)
    informer.on(add=lambda new: 1 / 0).on(add=lambda new: seen.append(new.metadata.name))
    api.put("pods", pod("a"))
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(informer.synced.wait(), budget())
    assert seen == ["a"]
    task.cancel()


async def test_bookmarks_move_the_version_on(api, client):
    api.put("pods", pod("a"))

    async def bookmark(request):
        response = web.StreamResponse()
        await response.prepare(request)
        mark = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "5000"}}
        await response.write(line("BOOKMARK", mark))
        return response

    api.fault("GET watch=true", bookmark)
    async with Watched(client) as w:
        await w.until(lambda: any("resourceVersion=5000" in entry for entry in api.log))
        assert list(w.informer.store) == ["default/a"]


async def test_a_huge_object_in_small_chunks(api, client):
    big = "x" * 300_000

    async def drip(request):
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        data = line("ADDED", api.put("pods", pod("big", spec={"nodeName": big})))
        for i in range(0, len(data), 1000):
            await response.write(data[i : i + 1000])
            await asyncio.sleep(0)
        await asyncio.sleep(5)
        return response

    api.fault("GET watch=true", drip)
    async with Watched(client) as w:
        await w.until(lambda: "default/big" in w.informer.store)
        assert w.informer.store["default/big"].spec.node_name == big


async def test_nonsense_in_the_stream_leads_to_a_new_one(api, client):
    async def nonsense(request):
        return web.Response(body=b"<html>\n")

    api.fault("GET watch=true", nonsense, times=4)
    async with Watched(client) as w:
        api.put("pods", pod("a"))
        await w.until(lambda: "default/a" in w.informer.store)
        assert not w.rejected


async def test_dicts_when_no_type_is_given(api, client):
    api.put("pods", pod("a", spec={"anything": [1]}))
    informer = Informer(client, PODS)
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(informer.synced.wait(), budget())
    assert informer.store["default/a"]["spec"] == {"anything": [1]}
    task.cancel()


def test_backoff_grows_to_its_limit_and_starts_again():
    backoff = Backoff(1.0, 8.0)
    waits = [backoff.next() for _ in range(8)]
    for wait, base in zip(waits, [1, 2, 4, 8, 8, 8, 8, 8], strict=True):
        assert 0.5 * base <= wait <= 1.5 * base
    backoff.reset()
    assert backoff.next() <= 1.5


def never_delivered(w):
    """The watch stays open and delivers nothing."""
    w.informer._apply = lambda event: None


async def test_catching_up_lists_again_when_the_watch_is_behind(api, client):
    api.put("pods", pod("a"))
    async with Watched(client) as w:
        never_delivered(w)
        api.put("pods", pod("b"))
        api.remove("pods", "a")
        assert list(w.informer.store) == ["default/a"]
        await w.informer.catch_up(0.02)
        assert list(w.informer.store) == ["default/b"]
        assert w.events == [("add", "a"), ("add", "b"), ("delete", "a")]
        del w.informer._apply
        api.put("pods", pod("c"))
        await w.until(lambda: "default/c" in w.informer.store)


async def test_catching_up_lists_nothing_when_the_watch_has_the_newest_version(api, client):
    async with Watched(client) as w:
        api.put("pods", pod("a"))
        await w.informer.catch_up(budget())
        assert list(w.informer.store) == ["default/a"]
        lists = [entry for entry in api.log if "watch=true" not in entry]
        assert len(lists) == 2 and "limit=1" in lists[1].split("&")[-1]


async def test_the_version_of_another_kind_does_not_reach_a_quiet_watch(api, client):
    api.put("pods", pod("a"))
    async with Watched(client) as w:
        api.put("queues", {"metadata": {"name": "q"}})
        await w.informer.catch_up(0.02)
        assert w.informer.resource_version == str(api.revision) and w.events == [("add", "a")]


async def test_a_list_that_is_wanted_during_a_list_is_made_after_it(api, client):
    api.put("pods", pod("a"))
    async with Watched(client) as w:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(request):
            answer = api.list(request, "pods", "")
            begun.set()
            await go_on.wait()
            return answer

        api.fault(lambda r: r.method == "GET" and "watch" not in r.query, slow)
        first = asyncio.create_task(w.informer.list_again())
        await begun.wait()
        api.put("pods", pod("b"))
        second = asyncio.create_task(w.informer.list_again())
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(first, second)
        assert sorted(w.informer.store) == ["default/a", "default/b"]


async def test_an_optional_kind_that_is_missing_is_current(api, client):
    api.fault("GET /pods", lambda r: status(404, "NotFound"), times=1000)
    async with Watched(client, optional=True) as w:
        await w.informer.catch_up(0.02)
        assert w.informer.missing


async def test_catching_up_fails_if_the_server_cannot_be_read(api, client):
    async with Watched(client) as w:
        api.fault("GET limit=1", status(403, "Forbidden", "not you"))
        with pytest.raises(Forbidden):
            await w.informer.catch_up(0.02)


async def test_a_kind_that_the_cluster_lacks_is_reported_once(api, client, caplog):
    api.fault("GET /api/v1/pods", lambda r: status(404, "NotFound", "no such resource"), times=15)
    with caplog.at_level("INFO"):
        async with Watched(client, optional=True, backoff=Backoff(0.001, 0.002)) as watched:
            await watched.until(lambda: not api.faults[0].times)
            api.put("pods", pod("late"))
            await watched.until(lambda: watched.events == [("add", "late")])
            assert not watched.informer.missing
    assert len([r for r in caplog.records if r.getMessage().startswith("pods: ")]) == 1
