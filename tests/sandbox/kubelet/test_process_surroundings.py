"""What a process finds: variables, mounted files, addresses of the others."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.clients import CONFIGMAPS, MERGE, PODS, Http, pod
from tests.sandbox.kubelet.test_processes import PATH, ended, log, phase, said, script, state
from volcano_py.sandbox.kubelet.processes.addresses import Addresses
from volcano_py.sandbox.kubelet.processes.environment import expand
from volcano_py.sandbox.kubelet.processes.rewriting import host_names, inside, mount_paths

SECRETS = "/api/v1/namespaces/default/secrets"


async def configmap(api: Http, name: str, **data: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    await api.ok("POST", CONFIGMAPS, body)


async def test_variables_come_from_everywhere(real: Http) -> None:
    await configmap(real, "settings", colour="red", size="big")
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"key": base64.b64encode(b"hush").decode()}}
    await real.ok("POST", SECRETS, {"apiVersion": "v1", **secret})
    body = script("env | sort", serviceAccountName="default")
    body["metadata"]["labels"] = {"app": "demo"}

    def source(name: str, **what: Any) -> dict[str, Any]:
        return {"name": name, "valueFrom": what}

    body["spec"]["containers"][0] |= {
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "settings"}}],
        "resources": {"limits": {"cpu": "1500m", "memory": "256Mi"}},
        "env": [
            {"name": "A", "value": "one"},
            {"name": "B", "value": "$(A) $(P_colour) $$(A) $(NONE)"},
            source("C", configMapKeyRef={"name": "settings", "key": "size"}),
            source("D", secretKeyRef={"name": "s", "key": "key"}),
            source("E", secretKeyRef={"name": "none", "key": "key", "optional": True}),
            source("F", fieldRef={"fieldPath": "metadata.labels['app']"}),
            source("G", fieldRef={"fieldPath": "spec.nodeName"}),
            source("H", fieldRef={"fieldPath": "status.podIP"}),
            source("I", resourceFieldRef={"resource": "limits.cpu"}),
            source("J", resourceFieldRef={"resource": "limits.memory", "divisor": "1Mi"}),
            source("K", resourceFieldRef={"resource": "requests.cpu", "divisor": "1m"}),
        ],
    }
    await ended(real, body, "Succeeded")
    found = dict(line.partition("=")[::2] for line in (await log(real)).splitlines())
    address = (await real.ok("GET", PATH))["status"]["podIP"]
    assert address.startswith("127.") or not sys.platform.startswith("linux")
    wanted = {
        "A": "one",
        "B": "one red $(A) $(NONE)",
        "C": "big",
        "D": "hush",
        "F": "demo",
        "G": "node-0",
        "H": address,
        "I": "2",
        "J": "256",
        "K": "1500",
        "P_colour": "red",
        "HOSTNAME": "p",
    }
    assert {name: found.get(name) for name in wanted} == wanted and "E" not in found


async def test_the_sandbox_s_own_variables_stay_with_it(real: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somewhere")
    await ended(real, script("env"), "Succeeded")
    assert "KUBECONFIG" not in await log(real) and "PATH=" in await log(real)


async def test_a_reference_to_a_missing_object_waits_for_it(real: Http) -> None:
    body = script("echo $COLOUR")
    reference = {"configMapKeyRef": {"name": "late", "key": "colour"}}
    body["spec"]["containers"][0]["env"] = [{"name": "COLOUR", "valueFrom": reference}]
    await real.ok("POST", PODS, body)
    found = await real.until(
        PATH, lambda v: "waiting" in (v["status"].get("containerStatuses") or [{"state": {}}])[0]["state"]
    )
    assert state(found)["waiting"] == {"reason": "CreateContainerConfigError", "message": 'configmap "late" not found'}
    assert found["status"]["phase"] == "Pending"
    code, answer = await real.call("GET", PATH + "/log")
    assert code == 400 and "is waiting to start: CreateContainerConfigError" in answer["message"]
    await configmap(real, "late", colour="blue")
    done = await real.until(PATH, phase("Succeeded"))
    assert await log(real) == "blue\n" and done["status"]["containerStatuses"][0]["restartCount"] == 0


async def test_a_volume_that_is_not_there_is_waited_for(real: Http) -> None:
    body = script("cat /etc/app/colour", volumes=[{"name": "v", "configMap": {"name": "late"}}])
    body["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/etc/app"}]
    await real.ok("POST", PODS, body)
    message = await said(real, "FailedMount")
    assert message == 'MountVolume.SetUp failed for volume "v" : configmap "late" not found'
    await configmap(real, "late", colour="blue")
    await real.until(PATH, phase("Succeeded"))
    assert await log(real) == "blue"


async def test_new_content_of_a_configmap_reaches_running_pods(real: Http) -> None:
    await configmap(real, "job-svc", **{"w.host": "job-w-0.job"})
    body = script(
        "while [ $(wc -w < /etc/volcano/w.host) -lt 2 ]; do sleep 0.05; done; cat /etc/volcano/w.host",
        hostname="job-w-0",
        subdomain="job",
        volumes=[{"name": "v", "configMap": {"name": "job-svc"}}],
    )
    body["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/etc/volcano"}]
    await real.ok("POST", PODS, body)
    await real.until(PATH, phase("Running"))
    await real.ok("PATCH", CONFIGMAPS + "/job-svc", {"data": {"w.host": "job-w-0.job\njob-w-1.job"}}, MERGE)
    await real.until(PATH, phase("Succeeded"))
    own, other = (await log(real)).split()
    assert own == (await real.ok("GET", PATH))["status"]["podIP"] and other.startswith("127.")


async def test_volumes_are_folders_below_the_process_s_own(real: Http, tmp_path: Path) -> None:
    await configmap(real, "settings", colour="red", program="echo run")
    shared = tmp_path / "host"
    shared.mkdir()
    (shared / "file").write_text("mine")
    sources = [
        {"configMap": {"name": "settings", "items": [{"key": "colour", "path": "sub/hue"}]}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    ]
    body = script(
        'cat /all/sub/hue /all/labels /host/file; sh /one; echo; touch /data/made; echo "$DATA"; pwd',
        volumes=[
            {"name": "all", "projected": {"sources": sources}},
            {"name": "one", "configMap": {"name": "settings"}},
            {"name": "data", "emptyDir": {}},
            {"name": "host", "hostPath": {"path": str(shared)}},
        ],
    )
    body["metadata"]["labels"] = {"app": "demo"}
    body["spec"]["containers"][0] |= {
        "workingDir": "/data/deep",
        "env": [{"name": "DATA", "value": "in=/data/x,not=host/data"}],
        "volumeMounts": [
            {"name": "all", "mountPath": "/all"},
            {"name": "one", "mountPath": "/one", "subPath": "program"},
            {"name": "data", "mountPath": "/data"},
            {"name": "host", "mountPath": "/host"},
        ],
    }
    await ended(real, body, "Succeeded")
    uid = (await real.ok("GET", PATH))["metadata"]["uid"]
    root = tmp_path / "kubeconfig.pods" / f"default_p_{uid}" / "containers" / "c"
    where = f"in={root}/data/x,not=host/data\n"
    text = await log(real)
    assert text.startswith(f'redapp="demo"minerun\n\n{where}') and text.rstrip().endswith("/data/deep")
    assert (root / "data" / "made").exists()
    await real.ok("DELETE", PATH)
    await real.until(PATH, lambda found: found.get("code") == 404)
    assert (shared / "file").read_text() == "mine"


async def test_a_volume_that_a_machine_cannot_mount_is_rejected_by_name(real: Http) -> None:
    volume = {"name": "far", "nfs": {"server": "x", "path": "/"}}
    await real.ok("POST", PODS, script("true", volumes=[volume]))
    assert "volumes of type nfs" in await said(real, "FailedMount")


async def test_pods_of_a_service_find_each_other_by_name(real: Http) -> None:
    await configmap(real, "job-svc", **{"worker.host": "job-worker-0.job\njob-worker-1.job"})
    volumes = [{"name": "hosts", "configMap": {"name": "job-svc"}}]

    def worker(index: int, text: str) -> dict[str, Any]:
        name = f"job-worker-{index}"
        body = script(text, name, hostname=name, subdomain="job", volumes=volumes)
        body["spec"]["containers"][0] |= {
            "volumeMounts": [{"name": "hosts", "mountPath": "/etc/volcano"}],
            "env": [{"name": "PEERS", "value": "job-worker-0.job:1,job-worker-1.job.default.svc:2,run.job,job"}],
        }
        return body

    await ended(real, worker(0, "echo $PEERS; cat /etc/volcano/worker.host"), "Succeeded")
    await ended(real, worker(1, "true"), "Succeeded")
    first, second = [(await real.ok("GET", f"{PODS}/job-worker-{index}"))["status"]["podIP"] for index in range(2)]
    assert await log(real, name="job-worker-0") == f"{first}:1,{second}:2,run.job,job\n{first}\n{second}"
    if sys.platform.startswith("linux"):
        assert first != second


# --- the parts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("/data", "/r/data"),
        ("/data/x --to=/data:/data2", "/r/data/x --to=/r/data:/data2"),
        ("host/data ./data ~/data /databank /data.old", "host/data ./data ~/data /databank /data.old"),
        ("/data/inner/x", "/r/data/inner/x"),
        ("cd '/data'; ls \"/data\"", "cd '/r/data'; ls \"/r/data\""),
    ],
)
def test_mount_paths_are_replaced_where_a_path_begins(text: str, out: str) -> None:
    assert mount_paths(Path("/r"), ["/data", "/data/inner/", "/"])(text) == out


def test_no_path_leaves_a_container_s_folder() -> None:
    assert inside(Path("/r"), "../../etc") == Path("/r/etc")
    assert inside(Path("/r"), "/a/../../b") == Path("/r/b")


def test_only_names_of_pods_are_replaced() -> None:
    known = {"a-0": "127.1.0.1"}
    rewrite = host_names("ns", "a", known.get)
    assert rewrite("a-0.a:80 main.a xa-0.a a-0.a.b a-0.a.ns.svc.cluster.local") == (
        "127.1.0.1:80 main.a xa-0.a a-0.a.b 127.1.0.1"
    )


@pytest.mark.parametrize(
    ("text", "out"), [("$(A)", "1"), ("$$(A)", "$(A)"), ("$(B)", "$(B)"), ("$A ${A} $$", "$A ${A} $"), ("$(A", "$(A")]
)
def test_expansion_is_kubernetes_own(text: str, out: str) -> None:
    assert expand(text, {"A": "1"}) == out


def test_addresses_are_kept_by_name_and_never_shared() -> None:
    def named(uid: str, name: str, subdomain: str = "job") -> dict[str, Any]:
        made = pod(name, hostname=name, subdomain=subdomain)
        made["metadata"] |= {"uid": uid, "namespace": "ns"}
        return made

    addresses = Addresses(single=False)
    expected = addresses.reserve("ns", "job", "a")
    assert addresses.take(named("1", "a")) == expected
    twin = addresses.take(named("2", "a"))
    assert twin != expected
    addresses.release("1", "ns", "job", expected)
    assert addresses.take(named("3", "a")) == expected  # recreated, the pod has the address that its peers use
    addresses.release("2", "ns", "job", twin)
    addresses.release("3", "ns", "job", expected)
    assert not addresses.has("ns", "job", "a")
    addresses.skip(["127.9.0.7", "10.1.1.1", ""])
    assert addresses.take(named("4", "b")) == "127.9.0.8"
    assert Addresses(single=True).take(named("1", "a")) == "127.0.0.1"
