"""What goes when its owner goes."""

from __future__ import annotations

from tests.sandbox.clients import CONFIGMAPS, MERGE, Http


async def owner_and_child(api: Http, block: bool = False) -> str:
    owner = await api.ok("POST", CONFIGMAPS, {"metadata": {"name": "owner"}})
    uid: str = owner["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    if block:
        reference["blockOwnerDeletion"] = True  # type: ignore[assignment]
    await api.ok("POST", CONFIGMAPS, {"metadata": {"name": "child", "ownerReferences": [reference]}})
    return uid


def gone(value: dict) -> bool:
    return value.get("code") == 404


async def test_background_takes_the_owner_first(api: Http) -> None:
    await owner_and_child(api)
    await api.ok("DELETE", CONFIGMAPS + "/owner")
    assert (await api.call("GET", CONFIGMAPS + "/owner"))[0] == 404
    await api.until(CONFIGMAPS + "/child", gone)


async def test_foreground_takes_the_owner_last(api: Http) -> None:
    await owner_and_child(api, block=True)
    await api.ok("PATCH", CONFIGMAPS + "/child", {"metadata": {"finalizers": ["example.com/hold"]}}, MERGE)
    answer = await api.ok("DELETE", CONFIGMAPS + "/owner?propagationPolicy=Foreground")
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.until(CONFIGMAPS + "/child", lambda value: value["metadata"].get("deletionTimestamp"))
    assert (await api.call("GET", CONFIGMAPS + "/owner"))[0] == 200
    await api.ok("PATCH", CONFIGMAPS + "/child", {"metadata": {"finalizers": None}}, MERGE)
    await api.until(CONFIGMAPS + "/owner", gone)


async def test_orphans_stay(api: Http) -> None:
    await owner_and_child(api)
    await api.ok("DELETE", CONFIGMAPS + "/owner?propagationPolicy=Orphan")
    await api.until(CONFIGMAPS + "/owner", gone)
    child = await api.ok("GET", CONFIGMAPS + "/child")
    assert "ownerReferences" not in child["metadata"]


async def test_a_child_without_owners_is_deleted(api: Http) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "11111111-0000-0000-0000-000000000000"}
    await api.ok("POST", CONFIGMAPS, {"metadata": {"name": "child", "ownerReferences": [reference]}})
    await api.until(CONFIGMAPS + "/child", gone)


async def test_a_second_owner_keeps_the_child(api: Http) -> None:
    uid = await owner_and_child(api)
    other = await api.ok("POST", CONFIGMAPS, {"metadata": {"name": "other"}})
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]},
    ]
    await api.ok("PATCH", CONFIGMAPS + "/child", {"metadata": {"ownerReferences": references}}, MERGE)
    await api.ok("DELETE", CONFIGMAPS + "/owner")
    child = await api.until(CONFIGMAPS + "/child", lambda v: len(v["metadata"]["ownerReferences"]) == 1)
    assert child["metadata"]["ownerReferences"][0]["name"] == "other"


async def test_a_chain_goes_link_by_link(api: Http) -> None:
    await owner_and_child(api)
    child = await api.ok("GET", CONFIGMAPS + "/child")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "child", "uid": child["metadata"]["uid"]}
    await api.ok("POST", CONFIGMAPS, {"metadata": {"name": "grandchild", "ownerReferences": [reference]}})
    await api.ok("DELETE", CONFIGMAPS + "/owner")
    await api.until(CONFIGMAPS + "/grandchild", gone)


async def ring(api: Http, *names: str) -> None:
    """ConfigMaps of which each owns the next, and the last the first."""
    uids = [(await api.ok("POST", CONFIGMAPS, {"metadata": {"name": name}}))["metadata"]["uid"] for name in names]
    for index, name in enumerate(names):
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": names[index - 1], "uid": uids[index - 1]}
        change = {"metadata": {"ownerReferences": [{**owner, "blockOwnerDeletion": True}]}}
        await api.ok("PATCH", f"{CONFIGMAPS}/{name}", change, MERGE)


async def test_a_cycle_goes_in_the_background(api: Http) -> None:
    await ring(api, "one", "two", "three")
    await api.ok("DELETE", CONFIGMAPS + "/one")
    for name in ("two", "three"):
        await api.until(f"{CONFIGMAPS}/{name}", gone)


async def test_a_cycle_that_waits_for_itself_is_cut(api: Http) -> None:
    await ring(api, "one", "two", "three")
    await api.ok("DELETE", CONFIGMAPS + "/one?propagationPolicy=Foreground")
    for name in ("one", "two", "three"):
        await api.until(f"{CONFIGMAPS}/{name}", gone)


async def test_dependents_that_do_not_block_are_not_waited_for(api: Http) -> None:
    await owner_and_child(api)
    await api.ok("PATCH", CONFIGMAPS + "/child", {"metadata": {"finalizers": ["example.com/hold"]}}, MERGE)
    await api.ok("DELETE", CONFIGMAPS + "/owner?propagationPolicy=Foreground")
    await api.until(CONFIGMAPS + "/owner", gone)
    child = await api.ok("GET", CONFIGMAPS + "/child")
    assert child["metadata"]["deletionTimestamp"]
