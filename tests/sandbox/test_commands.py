"""The commands of `volcano-py sandbox`, dump, load and the audit log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests import waiting
from tests.sandbox.clients import CONFIGMAPS, PODS, Http, http, pod
from tests.sandbox.test_durability import change
from volcano_py.api.yaml_documents import FAST_LOADER
from volcano_py.cli.main import main
from volcano_py.kube.client import Client
from volcano_py.kube.errors import ApiError
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.load import ordered

PROGRAM = (sys.executable, "-m", "volcano_py.cli.main", "sandbox")


async def command(*arguments: str | Path) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command that is called in this process."""
    call = ["sandbox", *map(str, arguments)]
    done = await waiting.within(
        asyncio.to_thread(CliRunner().invoke, main, call, prog_name="volcano-py"), f"{arguments} has not ended"
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


async def program(*arguments: str | Path) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command in a process of its own, which never shows a traceback."""
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, *map(str, arguments), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await waiting.within(process.communicate(), f"{arguments} has not ended")
    assert b"Traceback" not in err, err.decode()
    return process.returncode or 0, out.decode(), err.decode()


@pytest.fixture
async def here(sandbox: Sandbox) -> AsyncIterator[Any]:
    """Runs a command against the sandbox of this process."""

    async def run(*arguments: str | Path) -> tuple[int, str, str]:
        return await command(*arguments, "--kubeconfig", sandbox.kubeconfig)

    yield run


async def test_nodes_come_fail_and_go(here: Any, api: Http) -> None:
    code, out, _ = await here("node", "add", "--count", "2", "--node-shape", "cpu=4,memory=8Gi,nvidia.com/gpu=2")
    assert code == 0 and out == "node node-2 added\nnode node-3 added\n"
    assert (await here("node", "add", "big", "--node-shape", "cpu=128,memory=1Ti"))[0] == 0
    found = {item["metadata"]["name"]: item for item in (await api.ok("GET", "/api/v1/nodes"))["items"]}
    assert list(found) == ["big", "node-0", "node-1", "node-2", "node-3"]
    assert found["node-3"]["status"]["capacity"]["nvidia.com/gpu"] == "2"
    assert found["big"]["status"]["capacity"]["cpu"] == "128"
    code, out, _ = await here("node", "fail", "node-3")
    assert code == 0 and "has failed" in out
    await api.ok("POST", PODS, pod("p", nodeName="node-3"))
    await asyncio.sleep(0.2)
    assert (await api.ok("GET", PODS + "/p"))["status"]["phase"] == "Pending"
    assert (await here("node", "recover", "node-3"))[0] == 0
    await api.until(PODS + "/p", lambda found: found["status"]["phase"] == "Running")
    code, out, err = await here("node", "remove", "node-3", "nowhere", "big")
    assert code == 1 and "node-3 removed" in out and "big removed" in out
    assert "node nowhere does not exist" in err and err.count("\n") == 1
    await api.until("/api/v1/nodes", lambda found: len(found["items"]) == 3)
    code, _, err = await here("node", "add", "node-0")
    assert code == 1 and "already exists" in err and err.count("\n") == 1
    code, _, err = await here("node", "add", "--node-shape", "nonsense")
    assert code == 1 and "resource=amount" in err


async def test_the_clock(here: Any, api: Http) -> None:
    assert (await here("clock"))[1] == "a container's run time advances by 1 s in every second\n"
    assert (await here("clock", "--speed", "600"))[1] == "a container's run time advances by 600 s in every second\n"
    sleeper = pod("s", nodeName="node-0", restartPolicy="Never")
    sleeper["spec"]["containers"][0]["command"] = ["sleep", "300"]
    began = time.monotonic()
    await api.ok("POST", PODS, sleeper)
    await api.until(PODS + "/s", lambda found: found["status"]["phase"] == "Succeeded")
    assert 0.4 < time.monotonic() - began < waiting.budget()  # not 300 seconds
    assert (await here("clock", "--speed", "2"))[0] == 0
    code, _, err = await here("clock", "--speed", "fast")
    assert code == 1 and "'fast'" in err and err.count("\n") == 1


async def test_without_a_sandbox(tmp_path: Path) -> None:
    for arguments in (("clock",), ("node", "add"), ("dump",), ("status",), ("down",)):
        code, _, err = await command(*arguments, "--kubeconfig", tmp_path / "none")
        assert code == 1 and "volcano-py sandbox up" in err and err.count("\n") == 1, arguments
    code, _, err = await program("clock", "--kubeconfig", tmp_path / "none")
    assert code == 1 and "volcano-py sandbox up" in err and err.count("\n") == 1
    code, _, err = await command("dump", "--data", tmp_path)
    assert code == 1 and "no objects.db" in err and err.count("\n") == 1
    code, _, err = await program("up", "--fsync", "--kubeconfig", tmp_path / "none")
    assert code == 1 and "--data DIR" in err


async def test_a_full_disk_ends_the_sandbox(tmp_path: Path) -> None:
    """The files of this one may not grow beyond 2 MB."""
    data, kubeconfig = tmp_path / "data", tmp_path / "kubeconfig"
    arguments = ("up", "--nodes", "0", "--components", "none", "--data", data, "--kubeconfig", kubeconfig)
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000)),
    )
    assert process.stdout is not None
    await waiting.within(process.stdout.readline(), "the sandbox is not up")
    names: list[str] = []
    async with Client.from_kubeconfig(kubeconfig, retries=0) as client:
        with pytest.raises(ApiError, match=r"cannot write .*objects\.db .*free disk space"):
            for number in range(1000):
                body = {"metadata": {"name": f"c-{number}"}, "data": {"text": "x" * 10_000}}
                await client.raw("POST", CONFIGMAPS, body=json.dumps(body).encode())
                names.append(f"c-{number}")
    _, err = await waiting.within(process.communicate(), "the sandbox has not ended")
    assert process.returncode == 1 and b"free disk space" in err.splitlines()[-1]
    assert len(names) > 20
    async with Sandbox(nodes=0, data=data) as sandbox, http(sandbox) as api:
        found = (await api.ok("GET", CONFIGMAPS))["items"]
        assert {item["metadata"]["name"] for item in found if item["metadata"]["name"] in names} == set(names)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes by /proc, which this system has not")
async def test_components_end_with_a_killed_sandbox(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    up = await asyncio.create_subprocess_exec(
        *PROGRAM, "up", "--nodes", "0", "--kubeconfig", str(kubeconfig), stdout=asyncio.subprocess.PIPE
    )
    assert up.stdout is not None
    await waiting.within(up.stdout.readline(), "the sandbox is not up")
    mark = str(kubeconfig).encode()

    def components() -> list[str]:
        out = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if mark in (text := file.read_bytes()) and b"\0up\0" not in text:
                    out.append(file.parent.name)
        return out

    assert len(components()) == 2
    up.kill()
    await up.wait()
    async with waiting.limit("the components have not ended"):
        while components():
            await asyncio.sleep(0.05)


# --- dump and load ---------------------------------------------------------------------------------------------------

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
WIDGETS = "/apis/example.com/v1/namespaces/team/widgets"


async def fill(api: Http) -> None:
    """A namespace with a definition, an owner and what it owns, a status, a finished pod and one that runs."""
    await api.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    await api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    await asyncio.sleep(0.05)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "size": 3}
    made = await api.ok("POST", WIDGETS, widget)
    await api.ok("PATCH", WIDGETS + "/w/status", {"status": {"seen": 7}}, "application/merge-patch+json")
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": made["metadata"]["uid"]}
    owned = {"metadata": {"name": "a-owned", "ownerReferences": [owner]}, "data": {"k": "é\n- x: 1"}}
    await api.ok("POST", "/api/v1/namespaces/team/configmaps", owned)
    for name, run in (("over", ["exit", "3"]), ("on", ["sleep", "600"])):
        made = pod(name, nodeName="node-0", restartPolicy="Never")
        made["spec"]["containers"][0]["command"] = run
        await api.ok("POST", PODS, made)
    await api.until(PODS + "/over", lambda found: found["status"]["phase"] == "Failed")
    await api.until(PODS + "/on", lambda found: found["status"]["phase"] == "Running")


def named(objects: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in objects}


@pytest.mark.parametrize("suffix", ["yaml", "json"])
async def test_a_dump_fills_another_sandbox(suffix: str, tmp_path: Path, here: Any, api: Http) -> None:
    await fill(api)
    file = tmp_path / f"saved.{suffix}"
    code, _, err = await here("dump", "-o", file)
    assert code == 0 and f"objects in {file}" in err
    text = file.read_text()
    document = json.loads(text) if suffix == "json" else yaml.load(text, FAST_LOADER)
    saved = named(document["items"])
    assert saved["ConfigMap", "team", "a-owned"]["data"] == {"k": "é\n- x: 1"}
    async with Sandbox(nodes=1, crds=False) as other, http(other) as there:
        code, out, _ = await command("load", file, "--kubeconfig", other.kubeconfig)
        assert code == 0, out
        lines = out.splitlines()
        assert "created   Widget team/w" in lines and "kept      Namespace default: it already exists" in lines
        assert lines.index("created   Widget team/w") < lines.index("created   ConfigMap team/a-owned")
        widget = await there.ok("GET", WIDGETS + "/w")
        assert (widget["size"], widget["status"]) == (3, {"seen": 7})
        owned = await there.ok("GET", "/api/v1/namespaces/team/configmaps/a-owned")
        assert owned["metadata"]["ownerReferences"][0]["uid"] == widget["metadata"]["uid"]
        assert (await there.ok("GET", PODS + "/over"))["status"] == saved["Pod", "default", "over"]["status"]
        await there.until(PODS + "/on", lambda found: found["status"]["phase"] == "Running")
        # a second time there is nothing to do
        code, out, err = await command("load", file, "--kubeconfig", other.kubeconfig)
        assert code == 0 and "created" not in out and "kept" in err
        await there.ok("DELETE", WIDGETS + "/w")
        await there.until("/api/v1/namespaces/team/configmaps", lambda found: not found["items"])


async def test_a_damaged_folder_is_dumped_and_loaded_into_another(tmp_path: Path) -> None:
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "saved.json"
    async with Sandbox(nodes=1, data=old) as sandbox, http(sandbox) as api:
        await fill(api)
        code, _, err = await program("dump", "--data", old)
        assert code == 1 and "in use by a sandbox" in err and err.count("\n") == 1
        await api.ok("POST", CONFIGMAPS, {"metadata": {"name": "lost"}})
        before = {path: await api.ok("GET", path) for path in (PODS, WIDGETS, "/api/v1/nodes")}
    change(old, "UPDATE writes SET tail = replace(tail, 'lost', 'LOST') WHERE key = 'default/lost'")
    code, _, err = await program("up", "--data", old, "--kubeconfig", tmp_path / "k")
    assert code == 1 and "default/lost" in err and err.count("\n") == 1
    code, _, err = await program("dump", "--data", old, "-o", file)
    assert code == 1 and "configmaps default/lost at revision" in err and "1 errors" in err
    code, out, err = await program("load", file, "--data", new)
    assert code == 0, out + err
    async with Sandbox(nodes=5, data=new) as sandbox, http(sandbox) as api:
        for path, answer in before.items():
            found = {item["metadata"]["name"]: item for item in (await api.ok("GET", path))["items"]}
            assert found.keys() == {item["metadata"]["name"] for item in answer["items"]}
            for item in answer["items"]:
                again = found[item["metadata"]["name"]]
                assert again["metadata"]["uid"] == item["metadata"]["uid"]
                assert again.get("status") == item.get("status")
        assert (await api.call("GET", CONFIGMAPS + "/lost"))[0] == 404
        assert (await api.ok("GET", "/api/v1/namespaces/team/configmaps"))["items"]


async def test_load_reports_what_is_wrong(tmp_path: Path, here: Any) -> None:
    file = tmp_path / "objects.yaml"
    for text, message in (
        ("a: [", "neither JSON nor YAML"),
        ("{", "neither JSON nor YAML"),
        ("apiVersion: v1", "no apiVersion, kind or metadata"),
        ("{apiVersion: v1, kind: Pod, metadata: {}}", "a Pod, has no metadata.name"),
        ("- nonsense", "no apiVersion, kind or metadata"),
    ):
        file.write_text(text)
        code, _, err = await here("load", file)
        assert code == 1 and message in err and err.count("\n") == 1, (text, err)
    code, _, err = await here("load", tmp_path / "missing")
    assert code == 1 and "No such file" in err
    file.write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: Not_A_Name}}\n---\n"
        "{apiVersion: v1, kind: Nothing, metadata: {name: x}}\n---\n"
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}\n"
    )
    code, out, err = await here("load", file)
    assert code == 1 and "1 created, 2 rejected" in err
    assert "rejected  Nothing x: the server has no kind Nothing in v1" in out
    assert "rejected  ConfigMap Not_A_Name: " in out and "created   ConfigMap fine" in out


def test_parents_come_before_their_children() -> None:
    def made(kind: str, name: str, owner: str = "", **spec: str) -> dict[str, Any]:
        owners = [{"uid": owner}] if owner else []
        return {"kind": kind, "metadata": {"name": name, "uid": name, "ownerReferences": owners}, "spec": spec}

    rows = [
        made("ResourceQuota", "quota"),
        made("Pod", "pod", "set"),
        made("ReplicaSet", "set", "deployment"),
        made("Deployment", "deployment"),
        made("Queue", "leaf", parent="branch"),
        made("Queue", "branch", parent="root"),
        made("Queue", "root"),
        made("Pod", "circle-a", "circle-b"),
        made("Pod", "circle-b", "circle-a"),
        made("Namespace", "space"),
    ]
    names = [obj["metadata"]["name"] for obj in ordered(rows)]
    assert names[:4] == ["space", "root", "branch", "leaf"] and names[-1] == "quota"
    assert names.index("deployment") < names.index("set") < names.index("pod")
    assert {"circle-a", "circle-b"} <= set(names)


# --- the audit log ---------------------------------------------------------------------------------------------------


async def test_every_request_has_a_line_in_the_audit_log(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    async with Sandbox(nodes=0, crds=False, audit=path) as sandbox, http(sandbox) as api:
        await api.ok("POST", CONFIGMAPS, {"metadata": {"name": "c"}})
        await api.call("GET", CONFIGMAPS + "/missing?pretty=true")
        await api.call("GET", "/version")
        await api.call("GET", CONFIGMAPS, token="wrong")
        await api.call("GET", CONFIGMAPS, **{"Impersonate-User": "jane", "Impersonate-Group": "devs"})
        await api.events(CONFIGMAPS + "?watch=true&timeoutSeconds=1", 1)
        await asyncio.gather(*(api.call("GET", "/api/v1/nodes") for _ in range(200)))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(
        (line["kind"], line["apiVersion"], line["level"], line["stage"])
        == ("Event", "audit.k8s.io/v1", "Metadata", "ResponseComplete")
        and line["requestReceivedTimestamp"] <= line["stageTimestamp"]
        for line in lines
    )
    assert len({line["auditID"] for line in lines}) == len(lines)
    by_uri = {(line["requestURI"], line["responseStatus"]["code"]): line for line in lines}
    created = by_uri[CONFIGMAPS, 201]
    assert created["verb"] == "create" and created["user"]["username"] == "admin" and created["sourceIPs"]
    assert created["objectRef"] == {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"}
    missing = by_uri[CONFIGMAPS + "/missing?pretty=true", 404]
    assert missing["verb"] == "get" and missing["objectRef"]["name"] == "missing"
    assert by_uri["/version", 200]["verb"] == "get" and "objectRef" not in by_uri["/version", 200]
    assert by_uri[CONFIGMAPS, 401]["user"] == {}
    forbidden = by_uri[CONFIGMAPS, 403]
    assert forbidden["user"]["username"] == "admin" and forbidden["impersonatedUser"]["username"] == "jane"
    assert forbidden["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert any(line["verb"] == "watch" for line in lines)
    assert sum(line["requestURI"] == "/api/v1/nodes" for line in lines) == 200


async def test_a_log_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    code, _, err = await program("up", "--audit-log", tmp_path / "no" / "such", "--kubeconfig", tmp_path / "k")
    assert code == 1 and "--audit-log" in err and err.count("\n") == 1


@pytest.mark.parametrize(("rbac", "code"), [(True, 403), (False, 200)])
async def test_roles_count_unless_switched_off(tmp_path: Path, rbac: bool, code: int) -> None:
    users = {"bob-token": User("bob", ("system:authenticated",))}
    async with Sandbox(1, path=tmp_path / "kubeconfig", users=users, rbac=rbac) as sandbox, http(sandbox) as api:
        for token, wanted in (("bob-token", code), ("", 403), ("made-up", 401)):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with api.session.get(sandbox.url + PODS, headers=headers) as answer:
                assert answer.status == wanted, token
