"""HyperNodes: how many nodes they have, and how they are discovered from labels and from UFM."""

from __future__ import annotations

import asyncio
import base64
import socket
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web

from tests.controllers.small_api import SmallApi
from tests.controllers.world import World
from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.topology import HyperNode
from volcano_py.controllers import manager
from volcano_py.controllers.admission import problems_of_hypernode
from volcano_py.controllers.hypernode import adopt, count, labels, ufm
from volcano_py.controllers.hypernode.config import KEY, Source, parse
from volcano_py.controllers.hypernode.controller import HyperNodeController
from volcano_py.controllers.instructions import Create, Delete, Together, Update, UpdateStatus
from volcano_py.controllers.options import Options
from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials

Manifest = dict[str, Any]
RACK, ROW, HOST = "example.com/rack", "example.com/row", "kubernetes.io/hostname"
TYPES = {"Net": [RACK, ROW]}
SOURCE = "volcano.sh/network-topology-source"


def node(name: str, **given: str) -> Manifest:
    keys = {"rack": RACK, "row": ROW}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {keys[key]: value for key, value in given.items()}},
    }


def hypernode(name: str, *members: Manifest, **metadata: Any) -> Manifest:
    return {
        "apiVersion": kinds.HYPERNODE.api_version,
        "kind": "HyperNode",
        "metadata": {"name": name, **metadata},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": selector} for selector in members]},
    }


def conf(*sources: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-controller-configmap", "namespace": "volcano-system"},
        "data": {KEY: yaml.safe_dump({"networkTopologyDiscovery": list(sources)})},
    }


BY_LABEL = {
    "source": "label",
    "enabled": True,
    "config": {"networkTopologyTypes": {"Net": [{"nodeLabel": ROW}, {"nodeLabel": RACK}, {"nodeLabel": HOST}]}},
}


# ---- counting


def test_what_selectors_count() -> None:
    nodes: dict[str, dict[str, str]] = {"a1": {"z": "1"}, "a2": {}, "b1": {"z": "1"}}

    def counted(*selectors: Manifest) -> int:
        return len(count.node_names(from_manifest(HyperNode, hypernode("h", *selectors)), nodes))

    assert counted({"exactMatch": {"name": "ghost"}}) == 1  # as in Volcano, there or not
    assert counted({"regexMatch": {"pattern": "a"}}, {"exactMatch": {"name": "a1"}}) == 2
    assert counted({"regexMatch": {"pattern": "("}}) == 0
    assert counted({"labelMatch": {"matchLabels": {"z": "1"}}}) == 2
    assert counted({"labelMatch": {}}) == 0
    assert counted({"labelMatch": {"matchExpressions": [{"key": "z", "operator": "Like"}]}}) == 0


# ---- configuration


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("networkTopologyDiscovery: label", "networkTopologyDiscovery must be a list"),
        ("networkTopologyDiscovery: [{enabled: true}]", "[0].source must be a string"),
        ("networkTopologyDiscovery: [{source: ufm, interval: soon}]", "[0].interval: invalid duration 'soon'"),
        ("networkTopologyDiscovery: [{source: ufm, enabled: 'yes'}]", "[0].enabled must be a boolean"),
        ("a: b: c", "is not YAML"),
    ],
)
def test_mistakes_in_the_configuration_are_named(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as error:
        parse({KEY: text})
    assert problem in str(error.value)


def test_types_that_cannot_be_used_are_left_out() -> None:
    level = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
    given = {"good": level, "a-name-that-is-much-too-long": level, "twice": [*level, *level], "odd": "text"}
    types, problems = labels.parse_types({"networkTopologyTypes": given})
    assert types == {"good": [RACK]}
    assert [problem.split(": ")[0].rpartition(".")[2] for problem in problems] == [
        "a-name-that-is-much-too-long",
        "odd",
        "twice",
    ]
    with pytest.raises(ValueError, match="networkTopologyTypes is missing"):
        labels.parse_types({})


# ---- labels


def found(nodes: dict[str, dict[str, str]], existing: list[HyperNode] | None = None) -> list[Manifest]:
    return labels.discover(TYPES, nodes, existing or [])


def test_a_walk_ends_at_the_first_label_that_is_missing() -> None:
    made = found({"n1": {RACK: "a", ROW: "1"}, "n2": {RACK: "a"}, "n3": {ROW: "1"}})
    assert [(one["spec"]["tier"], one["spec"]["tierName"]) for one in made] == [(1, RACK), (2, ROW)]
    assert [m["selector"]["exactMatch"]["name"] for m in made[0]["spec"]["members"]] == ["n1", "n2"]
    assert made[1]["spec"]["members"][0]["selector"]["exactMatch"]["name"] == made[0]["metadata"]["name"]
    assert made[0]["metadata"]["labels"] == {RACK: "a", SOURCE: "label"}


def test_names_stay_the_same() -> None:
    nodes = {"n1": {RACK: "a"}, "n2": {RACK: "b"}}
    first = found(nodes)
    assert found(nodes) == first
    renamed = from_manifest(HyperNode, first[0])
    renamed.metadata.name = "hypernode-net-tier1-mine"
    assert found(nodes, [renamed])[0]["metadata"]["name"] == "hypernode-net-tier1-mine"
    other = from_manifest(HyperNode, first[0])
    other.metadata.name = "hypernode-net-tier10-mine"
    assert found(nodes, [other])[0]["metadata"]["name"] == first[0]["metadata"]["name"]


def test_a_taken_name_is_avoided() -> None:
    nodes = {"n1": {RACK: "a"}}
    name = found(nodes)[0]["metadata"]["name"]
    taken = from_manifest(HyperNode, hypernode(name, labels={SOURCE: "label", RACK: "other"}))
    assert found(nodes, [taken])[0]["metadata"]["name"] not in (name, "")


# ---- bringing in line


def test_what_is_found_is_made_changed_and_deleted_and_the_rest_left_alone() -> None:
    there = [from_manifest(HyperNode, one) for one in found({"n1": {RACK: "a"}, "n2": {RACK: "b"}})]
    for one in there:
        one.status.node_count = 1
    there[0].metadata.labels = {**(there[0].metadata.labels or {}), "mine": "stays"}
    mine = from_manifest(HyperNode, hypernode("mine", {"exactMatch": {"name": "n1"}}))
    now = found({"n1": {RACK: "a"}, "n3": {RACK: "a"}, "n4": {RACK: "c"}}, there)
    (together,) = adopt.reconcile("label", now, [*there, mine])
    assert isinstance(together, Together)
    kinds_of = {type(one): one for one in together.instructions}
    assert set(kinds_of) == {Create, Update, Delete}
    update = kinds_of[Update]
    assert isinstance(update, Update) and update.obj["metadata"]["name"] == there[0].metadata.name
    assert update.obj["status"] == {"nodeCount": 1}
    assert update.obj["metadata"]["labels"] == {RACK: "a", SOURCE: "label", "mine": "stays"}
    assert adopt.reconcile("label", found({"n2": {RACK: "b"}}, there[1:]), [there[1], mine]) == []


def test_a_taken_name_is_reported() -> None:
    spine = from_manifest(HyperNode, hypernode(ufm.SPINE))
    ports = [{"description": "Computer", "peer_node_name": "l", "system_name": "n"}]
    assert adopt.in_the_way("ufm", ufm.discover(ports), [spine]) == [ufm.SPINE]
    assert all(one.name != ufm.SPINE for step in adopt.reconcile("ufm", [], [spine]) for one in step.instructions)  # type: ignore[union-attr]


# ---- UFM


def port(leaf: str, name: str, description: str = "Computer IB Port") -> Manifest:
    return {"description": description, "peer_node_name": leaf, "system_name": name}


def test_leafs_that_share_nodes_by_way_of_others_are_one_group() -> None:
    wired = [("l1", "n1"), ("l2", "n1"), ("l2", "n2"), ("l3", "n2"), ("l9", "n9")]
    made = ufm.discover([*(port(leaf, name) for leaf, name in wired), port("l1", "s", "Switch")])
    members = [[m["selector"]["exactMatch"]["name"] for m in one["spec"]["members"]] for one in made]
    assert members == [["n1", "n2"], ["n9"], ["leaf-hn-0", "leaf-hn-1"]]
    assert ufm.discover([]) == []


@pytest.fixture
async def server():
    """A UFM; what it answers is in its `answers` (status, body)."""
    answers: list[tuple[int, bytes]] = []

    async def ports(request: web.Request) -> web.Response:
        wanted = f"Basic {base64.b64encode(b'user:pass').decode()}"
        status, body = answers[0] if request.headers.get("Authorization") == wanted else (401, b"")
        return web.Response(status=status, body=body)

    app = web.Application()
    app.router.add_get(ufm.PATH, ports)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", answers
    await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [(500, b"", "HTTP 500"), (302, b"", "HTTP 302"), (200, b"<html>", "is not JSON"), (200, b"{}", "is not a list")],
)
async def test_bad_answers_of_ufm_are_named(server: Any, status: int, body: bytes, problem: str) -> None:
    url, answers = server
    answers.append((status, body))
    with pytest.raises(ufm.UfmError, match=problem):
        await ufm.fetch(Source("ufm", config={"endpoint": url}), "user", "pass")
    with pytest.raises(ufm.UfmError, match="HTTP 401"):
        await ufm.fetch(Source("ufm", config={"endpoint": url}), "user", "wrong")


async def test_ufm_that_is_away_is_named() -> None:
    with pytest.raises(ufm.UfmError, match=r"GET http://127.0.0.1:1/ufmRest"):
        await ufm.fetch(Source("ufm", config={"endpoint": "http://127.0.0.1:1"}), "user", "pass")


# ---- with a server


def members_of(world: World) -> dict[str, list[str]]:
    """The value of its label → the members, of every HyperNode that was discovered."""
    return {
        next((value for key, value in one["metadata"]["labels"].items() if key != SOURCE), one["metadata"]["name"]): [
            member["selector"]["exactMatch"]["name"] for member in one["spec"]["members"]
        ]
        for one in world.api.all(kinds.HYPERNODE)
        if one["metadata"].get("labels")
    }


def counts(world: World) -> list[int]:
    return [(one.get("status") or {}).get("nodeCount", 0) for one in world.api.all(kinds.HYPERNODE)]


async def test_labels_are_followed(world: World) -> None:
    world.api.put(node("n1", rack="a"))
    world.api.put(node("n2", rack="a"))
    world.api.put(conf(BY_LABEL))
    await world.until(lambda: members_of(world) == {"a": ["n1", "n2"]} and counts(world) == [2])
    world.api.change(kinds.NODE, "n2", {"metadata": {"labels": {RACK: "b"}}})
    await world.until(lambda: members_of(world) == {"a": ["n1"], "b": ["n2"]} and counts(world) == [1, 1])
    name = world.api.all(kinds.HYPERNODE)[0]["metadata"]["name"]
    world.api.delete(kinds.HYPERNODE, name)
    await world.until(lambda: len(members_of(world)) == 2)
    for name in ("n1", "n2"):
        world.api.change(kinds.NODE, name, {"metadata": {"labels": {RACK: None}}})
    await world.until(lambda: not members_of(world))


async def test_disabling_a_source_leaves_its_hypernodes(world: World) -> None:
    world.api.put(node("n1", rack="a"))
    world.api.put(conf(BY_LABEL))
    await world.until(lambda: members_of(world))
    disabled = conf({**BY_LABEL, "enabled": False})
    world.api.change(kinds.CONFIGMAP, "volcano-controller-configmap", disabled, "volcano-system")
    await world.quiet()
    world.api.delete(kinds.NODE, "n1")
    await world.quiet()
    assert members_of(world) == {"a": ["n1"]}


async def test_a_mistake_leaves_the_old_sources_at_work(world: World) -> None:
    world.api.put(conf(BY_LABEL))
    world.api.put(node("n1", rack="a"))
    await world.until(lambda: members_of(world))
    world.api.change(kinds.CONFIGMAP, "volcano-controller-configmap", {"data": {KEY: "a: b: c"}}, "volcano-system")
    await world.until(lambda: world.events("TopologyDiscovery"))
    world.api.put(node("n2", rack="a"))
    await world.until(lambda: members_of(world) == {"a": ["n1", "n2"]})


async def test_ufm_is_queried(world: World, server: Any) -> None:
    url, answers = server
    answers.append((200, b'[{"description": "Computer", "peer_node_name": "l1", "system_name": "n1"}]'))
    secret = {"username": base64.b64encode(b"user").decode(), "password": base64.b64encode(b"pass").decode()}
    reference = {"secretRef": {"name": "login", "namespace": "lab"}}
    source = {"source": "ufm", "enabled": True, "interval": "200ms", "credentials": reference}
    source["config"] = {"endpoint": url}
    world.api.put(conf(source, {"source": "carrier-pigeon", "enabled": True}))
    await world.until(lambda: len(world.events("TopologyDiscovery")) == 2)
    assert any("'carrier-pigeon' is unknown" in message for message in world.events("TopologyDiscovery"))
    assert any("credentials are not configured" in message for message in world.events("TopologyDiscovery"))
    world.api.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": secret})
    await world.until(lambda: members_of(world) == {"leaf-hn-0": ["n1"], "spine-hn": ["leaf-hn-0"]})
    answers[0] = (500, b"")
    await world.quiet(0.5)
    assert len(members_of(world)) == 2


async def test_counts_follow_the_nodes(world: World) -> None:
    world.api.put(hypernode("some", {"labelMatch": {"matchLabels": {RACK: "a"}}}))
    await world.quiet()
    world.api.put(node("n1", rack="a"))
    await world.until(lambda: counts(world) == [1])


# ---- in a process of its own


async def test_one_of_two_leads_and_both_are_ready() -> None:
    api = await SmallApi().start()
    tasks, ports = [], []
    for _ in range(2):
        options = Options(
            enable_healthz=True,
            healthz_address=f"127.0.0.1:{free_port()}",
            leader_elect_lease_duration=1.5,
            leader_elect_renew_deadline=1.0,
            leader_elect_retry_period=0.2,
        )
        client = Client(Credentials(server=api.url))
        work = manager.run(client, options, make=lambda cluster, _: [HyperNodeController(cluster)], component="c")
        tasks.append((asyncio.create_task(work), client))
        ports.append(options.healthz_address)
        await asyncio.sleep(0.3)
    world = World(api)
    world.api.put(hypernode("some", {"exactMatch": {"name": "n1"}}))
    await world.until(lambda: counts(world) == [1])
    async with aiohttp.ClientSession() as session:
        for address in ports:
            for path in ("healthz", "readyz"):
                async with session.get(f"http://{address}/{path}") as answer:
                    assert (path, answer.status) == (path, 200), await answer.text()
    leader, client = tasks[0]
    leader.cancel()
    await asyncio.gather(leader, return_exceptions=True)
    await client.close()
    world.api.put(hypernode("other", {"exactMatch": {"name": "n1"}}))
    await world.until(lambda: counts(world) == [1, 1])
    tasks[1][0].cancel()
    await asyncio.gather(tasks[1][0], return_exceptions=True)
    await tasks[1][1].close()
    await api.stop()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_hypernode_that_admission_would_reject_has_a_condition():
    other = {
        "type": "Other",
        "status": "True",
        "reason": "R",
        "message": "m",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
    manifest = {**hypernode("bad", {"regexMatch": {"pattern": "a(b"}}), "status": {"conditions": [other]}}
    bad = from_manifest(HyperNode, manifest)
    problems = problems_of_hypernode(bad)
    first, *more = count.reconcile(bad, {}, problems, "1970-01-01T00:01:00Z")
    assert isinstance(first, UpdateStatus) and not more
    assert first.status["conditions"][0] == other
    (mine,) = first.status["conditions"][1:]
    assert (mine["type"], mine["status"], mine["reason"]) == ("Valid", "False", "InvalidHyperNode")
    assert mine["message"].startswith("spec.members[0].selector.regexMatch.pattern: Invalid value: 'a(b': ")

    written = from_manifest(HyperNode, {**manifest, "status": first.status})
    assert count.reconcile(written, {}, problems, "1970-01-01T00:02:00Z") == [], "it is written once"
    (corrected,) = count.reconcile(written, {}, [], "1970-01-01T00:03:00Z")
    assert isinstance(corrected, UpdateStatus) and corrected.status["conditions"] == [other]


async def test_members_that_do_not_exist_are_reported(world: World) -> None:
    """A job waits for a HyperNode with a mistyped node, and nothing said why."""

    def conditions(name: str) -> list[tuple[str, str, str]]:
        found = (world.api.get(kinds.HYPERNODE, name) or {}).get("status", {}).get("conditions") or []
        return [(one["type"], one["reason"], one["message"].partition(";")[0]) for one in found]

    world.api.put(node("n1"))
    world.api.put(hypernode("leaf", *({"exactMatch": {"name": name}} for name in ("n1", "n2", "n3"))))
    spine = hypernode("spine", {"exactMatch": {"name": "leaf"}}, {"exactMatch": {"name": "leav"}})
    for member in spine["spec"]["members"]:
        member["type"] = "HyperNode"
    world.api.put(spine)
    unknown = "members do not exist: Node n2, Node n3"
    await world.until(lambda: conditions("leaf") == [("MembersExist", "UnknownMembers", unknown)])
    await world.until(lambda: [one[2] for one in conditions("spine")] == ["members do not exist: HyperNode leav"])
    world.api.put(node("n2"))
    await world.until(lambda: [one[2] for one in conditions("leaf")] == ["members do not exist: Node n3"])
    world.api.put(node("n3"))
    world.api.put(hypernode("leav", {"exactMatch": {"name": "n3"}}))
    await world.until(lambda: conditions("leaf") == conditions("spine") == [])
    world.api.delete(kinds.NODE, "n3")
    await world.until(lambda: [one[2] for one in conditions("leaf")] == ["members do not exist: Node n3"])


def test_many_unknown_members_are_counted() -> None:
    many = hypernode("h", *({"exactMatch": {"name": f"n{number}"}} for number in range(12)))
    text = count.unknown_members(from_manifest(HyperNode, many), (), ())
    assert "Node n9 and 2 more;" in text and "n10" not in text
