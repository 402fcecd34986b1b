"""The frame around the controllers: flags, selection, leadership, endpoints, the picture of a kind, garbage."""

import asyncio
import contextlib
import socket
import ssl

import aiohttp
import pytest

from tests.controllers.small_api import SmallApi
from tests.controllers.world import World, job, queue
from tests.waiting import budget
from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.controllers import garbage, manager
from volcano_py.controllers.executor import Executor, NotLeading
from volcano_py.controllers.instructions import Again, Delete
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.options import Options, enabled, parse_flags
from volcano_py.controllers.runner import Cluster, mirrors_of
from volcano_py.kube import Client, certificates
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.informer import Informer


def test_the_arguments_of_a_deployment_of_volcano_can_be_kept():
    logs = "--logtostderr -v=4 --log-flush-frequency=5s"
    rest = "--enable-healthz=true --leader-elect=false --leader-elect-resource-lock=leases --tls-cert-file=/a"
    given = parse_flags([*logs.split(), *rest.split(), "--lock-object-namespace=here"])
    assert given == Options(
        enable_healthz=True, leader_elect=False, leader_elect_resource_namespace="here", tls_cert_file="/a"
    )


def test_flags():
    assert parse_flags([]) == Options()
    given = parse_flags(
        [
            "--leader-elect=false",
            "--enable-metrics",
            "--scheduler-name=a",
            "--scheduler-name",
            "b",
            "--controllers=*,-gc-controller",
            "--feature-gates=WorkLoadSupport=false",
            "--leader-elect-lease-duration=1m",
            "--max-requeue-num=-1",
        ]
    )
    assert (given.leader_elect, given.enable_metrics, given.scheduler_names) == (False, True, ["a", "b"])
    assert (given.leader_elect_lease_duration, given.max_requeue_num) == (60.0, -1)
    assert given.gate("WorkLoadSupport") is False
    assert given.gate("QueueCommandSync") is True


@pytest.mark.parametrize(
    "flags",
    [["--nonsense"], ["--leader-elect=maybe"], ["--controllers=a,-a"], ["--feature-gates=X"]],
)
def test_mistaken_flags(flags, capsys):
    with pytest.raises(SystemExit):
        parse_flags(flags)
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (["*"], ["a", "b", "c"]),
        ([], ["a", "b", "c"]),
        (["*", "-b"], ["a", "c"]),
        (["b"], ["b"]),
        (["+b", "-c"], ["b"]),
        (["-b"], []),
    ],
)
def test_selection(selection, expected):
    assert enabled(selection, ["a", "b", "c"]) == expected


async def test_controllers_wait_for_every_kind_that_they_watch():
    async with Client(Credentials(server="http://127.0.0.1:1")) as client:
        cluster = Cluster(client, Executor(client))
        controllers = manager.make_controllers(cluster, Options(controllers=["*"]))
    waited = {id(mirror.informer) for controller in controllers for mirror in mirrors_of(controller)}
    assert waited == {id(feed) for feed in cluster.feeds}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_endpoints(world):
    await world.kill()
    health, numbers = free_port(), free_port()
    world.options.enable_healthz = world.options.enable_metrics = True
    world.options.healthz_address, world.options.listen_address = f"127.0.0.1:{health}", f"127.0.0.1:{numbers}"
    await world.start()
    world.api.put(queue("team"))
    world.api.put(job())
    await world.until(lambda: world.phase() == "Pending")
    await world.until(lambda: (world.api.get(kinds.QUEUE, "default") or {}).get("status", {}).get("pending") == 1)
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{health}/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok")
        async with session.get(f"http://127.0.0.1:{numbers}/metrics") as answer:
            text = await answer.text()
    assert 'volcano_queue_pod_group_pending_count{queue_name="default"} 1.0' in text


async def test_endpoints_with_tls_and_named_checks(world, tmp_path):
    await world.kill()
    made = certificates.make(("127.0.0.1",))
    for name, text in (("ca", made.authority), ("crt", made.certificate), ("key", made.key)):
        (tmp_path / name).write_bytes(text)
    health, numbers = free_port(), free_port()
    world.options = Options(
        leader_elect=False,
        watch_with_kopf=False,
        enable_healthz=True,
        healthz_address=f"127.0.0.1:{health}",
        enable_metrics=True,
        listen_address=f"127.0.0.1:{numbers}",
        ca_cert_file=str(tmp_path / "ca"),
        tls_cert_file=str(tmp_path / "crt"),
        tls_private_key_file=str(tmp_path / "key"),
    )
    await world.start()
    world.api.put(job())
    await world.until(lambda: world.phase() == "Pending")
    trust = ssl.create_default_context(cadata=made.authority.decode())
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
        async with session.get(f"https://127.0.0.1:{health}/healthz?verbose") as answer:
            text = await answer.text()
        async with session.get(f"https://127.0.0.1:{numbers}/metrics") as answer:
            assert "volcano_" in await answer.text()
    for check in ("informer jobs", "workers of job-controller", "leader election", "events"):
        assert f"[+]{check} ok" in text


async def test_one_leads_and_the_other_takes_over():
    api = await SmallApi().start()
    for name in ("root", "default"):
        api.put(queue(name))
    fast = {
        "leader_elect": True,
        "leader_elect_lease_duration": 0.6,
        "leader_elect_renew_deadline": 0.4,
        "leader_elect_retry_period": 0.05,
    }
    first, second = World(api), World(api)
    first.options = second.options = Options(**fast)
    await first.start()
    api.put(job())
    await first.until(first.podgroups)
    await second.start()
    await asyncio.sleep(0.3)
    assert len(first.podgroups()) == 1
    holder = api.get(kinds.LEASE, "vc-controller-manager", "volcano-system")["spec"]["holderIdentity"]
    await first.kill()
    second.admit()
    await second.until(lambda: len(second.pods()) == 2)
    lease = api.get(kinds.LEASE, "vc-controller-manager", "volcano-system")["spec"]
    assert lease["holderIdentity"] not in ("", holder)
    await second.kill()
    await api.stop()


async def test_without_leadership_nothing_is_written():
    api = await SmallApi().start()
    for name in ("root", "default"):
        api.put(queue(name))
    options = Options(leader_elect_lease_duration=0.6, leader_elect_renew_deadline=0.3, leader_elect_retry_period=0.05)
    async with Client(Credentials(server=api.url)) as client:
        started = asyncio.Event()
        running = asyncio.create_task(manager.run(client, options, started=started))
        await asyncio.wait_for(started.wait(), budget())
        lease = api.get(kinds.LEASE, "vc-controller-manager", "volcano-system")
        thief = {"spec": {**lease["spec"], "holderIdentity": "thief", "leaseDurationSeconds": 100}}
        api.change(kinds.LEASE, "vc-controller-manager", thief, "volcano-system")
        with pytest.raises(NotLeading):
            await asyncio.wait_for(running, budget())
        api.put(job())
        await asyncio.sleep(0.1)
    assert not any("jobs" in write or "podgroups" in write for write in api.writes)
    await api.stop()


class Picture:
    """A mirror whose informer is fed by hand."""

    def __init__(self):
        self.informer = Informer(Client(Credentials(server="http://127.0.0.1:9")), kinds.POD, type=Pod)
        self.mirror = Mirror(self.informer, Pod, lambda pod: (pod.spec.node_name,))

    def pod(self, version, uid="u1", node="n"):
        metadata = {"name": "a", "namespace": "ns", "uid": uid, "resourceVersion": str(version)}
        return {"metadata": metadata, "spec": {"nodeName": node}}

    def seen(self, *args, **fields):
        self.informer._put(from_manifest(Pod, self.pod(*args, **fields)))

    def gone(self):
        self.informer._drop("ns/a", self.informer.store["ns/a"])

    @property
    def now(self):
        pod = self.mirror.get("ns/a")
        return pod and (pod.metadata.uid, int(pod.metadata.resource_version))


async def test_the_picture_holds_what_we_wrote_until_the_informer_is_newer():
    picture = Picture()
    picture.seen(5)
    picture.mirror.note(picture.pod(9, node="m"))
    picture.seen(7)
    assert picture.now == ("u1", 9)
    assert [pod.key for pod in picture.mirror.by_index("m")] == ["ns/a"]
    assert picture.mirror.by_index("n") == []
    picture.seen(12)
    assert picture.now == ("u1", 12)


async def test_the_picture_forgets_what_we_deleted_though_the_informer_lags():
    picture = Picture()
    picture.seen(5)
    picture.mirror.forget("ns/a", "u1")
    picture.seen(6)
    assert picture.now is None
    picture.mirror.note(picture.pod(8, uid="u2"))
    assert picture.now == ("u2", 8)
    picture.seen(8, uid="u2")  # the informer sees deletion and new pod as one
    assert picture.now == ("u2", 8)
    picture.gone()
    assert picture.now is None


async def test_the_picture_does_not_revive_what_is_gone():
    picture = Picture()
    picture.seen(5)
    picture.gone()
    assert picture.now is None
    with contextlib.suppress(KeyError):
        picture.gone()
    assert picture.mirror.by_index("n") == []


def finished(ttl, phase="Completed", at="1970-01-01T00:01:40Z"):
    one = from_manifest(kinds.STRUCTS[kinds.JOB], job(ttlSecondsAfterFinished=ttl))
    one.status.state.phase, one.status.state.last_transition_time = phase, at
    return one


def test_garbage():
    assert garbage.reconcile(finished(30), 110.0) == [Again(20.0)]
    assert isinstance(garbage.reconcile(finished(30), 130.0)[0], Delete)
    assert isinstance(garbage.reconcile(finished(0), 100.0)[0], Delete)
    assert garbage.reconcile(finished(None), 1e9) == []
    assert garbage.reconcile(finished(0, "Aborted"), 1e9) == []
    assert garbage.reconcile(finished(0, "Running"), 1e9) == []
    with pytest.raises(ValueError, match="unable to find the time"):
        garbage.reconcile(finished(0, at=None), 1e9)
