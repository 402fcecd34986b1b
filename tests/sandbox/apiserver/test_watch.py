"""Watches: order, selections, resumption, and their end."""

from __future__ import annotations

import asyncio

from tests import waiting
from tests.sandbox.clients import CONFIGMAPS, MERGE, PODS, Http, pod


def config_map(name: str, **labels: str) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


async def test_a_watch_begins_with_what_is_there(api: Http) -> None:
    await api.ok("POST", CONFIGMAPS, config_map("a"))
    async with api.stream(CONFIGMAPS + "?watch=1") as lines:
        assert (await anext(lines))["object"]["metadata"]["name"] == "a"
        await api.ok("POST", CONFIGMAPS, config_map("b"))
        event = await anext(lines)
        assert event["type"] == "ADDED" and event["object"]["metadata"]["name"] == "b"
        await api.ok("DELETE", CONFIGMAPS + "/a")
        assert (await anext(lines))["type"] == "DELETED"


async def test_a_watch_goes_on_where_a_list_ended(api: Http) -> None:
    listing = await api.ok("GET", CONFIGMAPS)
    for name in ("a", "b"):
        await api.ok("POST", CONFIGMAPS, config_map(name))
    await api.ok("PATCH", CONFIGMAPS + "/a", {"data": {"k": "v"}}, MERGE)
    revision = listing["metadata"]["resourceVersion"]
    events = await api.events(f"{CONFIGMAPS}?watch=1&resourceVersion={revision}", 3)
    assert [(row["type"], row["object"]["metadata"]["name"]) for row in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("MODIFIED", "a"),
    ]
    revisions = [int(row["object"]["metadata"]["resourceVersion"]) for row in events]
    assert revisions == sorted(set(revisions))


async def test_leaving_a_selection_is_a_deletion(api: Http) -> None:
    listing = await api.ok("GET", CONFIGMAPS)
    await api.ok("POST", CONFIGMAPS, config_map("a", x="1"))
    await api.ok("PATCH", CONFIGMAPS + "/a", {"metadata": {"labels": {"x": "2"}}}, MERGE)
    await api.ok("PATCH", CONFIGMAPS + "/a", {"metadata": {"labels": {"x": "1"}}}, MERGE)
    revision = listing["metadata"]["resourceVersion"]
    events = await api.events(f"{CONFIGMAPS}?watch=1&labelSelector=x%3D1&resourceVersion={revision}", 3)
    assert [row["type"] for row in events] == ["ADDED", "DELETED", "ADDED"]


async def test_an_old_revision_is_expired(api: Http) -> None:
    (event,) = await api.events(f"{CONFIGMAPS}?watch=1&resourceVersion=1", 1)
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 410 and event["object"]["reason"] == "Expired"


async def test_history_is_bounded(api: Http) -> None:
    from volcano_py.sandbox.apiserver.storage import store

    collection = api.sandbox.api.resource("", "configmaps").collection
    made = await api.ok("POST", CONFIGMAPS, config_map("a"))
    old, store.HISTORY_EVENTS = store.HISTORY_EVENTS, 10
    try:
        for index in range(30):
            await api.ok("PATCH", CONFIGMAPS + "/a", {"data": {"k": str(index)}}, MERGE)
    finally:
        store.HISTORY_EVENTS = old
    assert len(collection.history) == 10
    revision = made["metadata"]["resourceVersion"]
    (event,) = await api.events(f"{CONFIGMAPS}?watch=1&resourceVersion={revision}", 1)
    assert event["object"]["reason"] == "Expired"


async def test_a_time_limit_ends_the_stream(api: Http) -> None:
    path = CONFIGMAPS + "?watch=1&timeoutSeconds=1"
    async with waiting.limit("the stream has not ended"), api.stream(path) as lines:
        assert [line async for line in lines] == []


async def test_initial_events_end_with_a_bookmark(api: Http) -> None:
    await api.ok("POST", CONFIGMAPS, config_map("a"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    first, last = await api.events(f"{CONFIGMAPS}?{query}", 2)
    assert first["type"] == "ADDED" and last["type"] == "BOOKMARK"
    assert last["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_bookmarks_have_the_revision(api: Http) -> None:
    async with api.stream(CONFIGMAPS + "?watch=1&allowWatchBookmarks=true") as lines:
        await asyncio.sleep(0.05)
        await api.ok("POST", PODS, pod("elsewhere"))
        for watcher in api.sandbox.server.watchers:
            watcher.bookmark()
        event = await anext(lines)
    assert event["type"] == "BOOKMARK" and event["object"]["kind"] == "ConfigMap"
    assert event["object"]["metadata"]["resourceVersion"] == str(api.sandbox.api.store.revision)


async def test_an_event_is_encoded_once_for_all_watchers(api: Http) -> None:
    collection = api.sandbox.api.resource("", "configmaps").collection
    query = f"?watch=1&resourceVersion={api.sandbox.api.store.revision}"
    async with api.stream(CONFIGMAPS + query) as one, api.stream("/api/v1/configmaps" + query) as two:
        await api.ok("POST", CONFIGMAPS, config_map("a"))
        assert await anext(one) == await anext(two)
    assert len(collection.history[-1].encoded) == 1


async def test_tables_have_their_columns_once(api: Http) -> None:
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    await api.ok("POST", PODS, pod("a"))
    auth = {"Authorization": f"Bearer {api.sandbox.token}"}
    url = api.sandbox.url + PODS + "?watch=1"
    async with api.session.get(url, headers={**headers, **auth}) as answer:
        import json

        first = json.loads(await answer.content.readline())
        await api.ok("PATCH", PODS + "/a", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        second = json.loads(await answer.content.readline())
    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"][2] == "Pending"
