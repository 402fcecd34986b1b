"""What the job plugins add to pods, and make beside them."""

import base64
import json
from importlib.metadata import EntryPoint

import pytest

from tests.controllers.world import job, task
from volcano_py.api import kinds
from volcano_py.api.batch import Job
from volcano_py.api.codec import from_manifest
from volcano_py.controllers.job import plugins
from volcano_py.controllers.job.observed import Unready
from volcano_py.controllers.job.plugins.base import PodOnly
from volcano_py.controllers.job.plugins.flags import Flags
from volcano_py.controllers.job.plugins.svc import Svc
from volcano_py.controllers.job.pods import build_pod


def make(plugin_arguments, *tasks):
    return from_manifest(Job, job(*tasks, plugins=plugin_arguments))


def pod_of(one, name, index=0):
    chosen = next(known for known in one.spec.tasks if known.name == name)
    pod = build_pod(one, chosen, index)
    plugins.on_pod_create(pod, one, chosen, index)
    return pod


def env_of(pod):
    return {entry["name"]: entry.get("value") for entry in pod["spec"]["containers"][0].get("env") or ()}


def test_flags():
    defaults = {"text": "a", "number": 1, "switch": False}

    def read(*arguments):
        flags = Flags(arguments, defaults)
        return flags.text("text"), flags.number("number"), flags.switch("switch")

    assert read() == ("a", 1, False)
    assert read("--text=b", "-number", "2", "--switch") == ("b", 2, True)
    assert read("--switch=false", "--number=0x10") == ("a", 16, False)
    assert read("stop", "--text=b") == ("a", 1, False)
    assert read("--unknown", "--text=b") == ("a", 1, False)
    assert read("--number=many", "--text=b") == ("a", 1, False)
    assert read("--text") == ("a", 1, False)


def test_tensorflow():
    one = make({"tensorflow": ["--port=5000"]}, task("ps", 1), task("worker", 2), task("other", 1))
    config = json.loads(env_of(pod_of(one, "worker", 1))["TF_CONFIG"])
    assert config["cluster"]["worker"] == ["train-worker-0.train:5000", "train-worker-1.train:5000"]
    assert config["task"] == {"type": "worker", "index": 1}
    assert "chief" not in config["cluster"]
    assert json.loads(env_of(pod_of(one, "other"))["TF_CONFIG"])["task"]["type"] == "other"
    assert env_of(pod_of(make({"tensorflow": []}, task("worker", 1)), "worker")) == {}


def test_pytorch():
    one = make({"pytorch": ["--wait-master-enabled"]}, task("master", 1), task("worker", 2), task("log", 1))
    worker = pod_of(one, "worker", 1)
    assert env_of(worker) == {
        "MASTER_ADDR": "train-master-0.train",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "3",
        "RANK": "2",
    }
    assert worker["spec"]["containers"][0]["ports"] == [{"name": "pytorchjob-port", "containerPort": 23456}]
    assert [init["name"] for init in worker["spec"]["initContainers"]] == ["wait-for-master"]
    assert "train-master-0.train 23456" in worker["spec"]["initContainers"][0]["command"][2]
    assert env_of(pod_of(one, "master"))["RANK"] == "0"
    assert "initContainers" not in pod_of(one, "master")["spec"]
    assert "RANK" not in env_of(pod_of(one, "log"))


def test_mpi():
    one = make({"mpi": ["--master=boss"]}, task("boss", 1), task("worker", 2))
    assert env_of(pod_of(one, "boss"))["MPI_HOST"] == "train-worker-0.train,train-worker-1.train"
    worker = pod_of(one, "worker")
    assert env_of(worker) == {}
    assert worker["spec"]["containers"][0]["ports"] == [{"name": "mpijob-port", "containerPort": 22}]


def test_hcclrank():
    one = make({"hcclrank": []}, task("master", 1), task("worker", 2), task("log", 1))

    def rank(name, index=0):
        return pod_of(one, name, index)["metadata"]["annotations"].get("hccl/rankIndex")

    assert [rank("master"), rank("worker"), rank("worker", 1), rank("log")] == ["0", "1", "2", None]
    both = make({"hcclrank": [], "pytorch": []}, task("master", 1), task("worker", 2))
    assert pod_of(both, "worker", 1)["metadata"]["annotations"]["hccl/rankIndex"] == "2"


def test_ray():
    def named(name):
        return {"spec": {"containers": [{"name": name, "image": "ray:2"}]}}

    one = make({"ray": []}, task("head", 1, template=named("head")), task("worker", 2, template=named("worker")))
    head = pod_of(one, "head")["spec"]["containers"][0]
    assert "ray start --head --block" in head["command"][2]
    assert [port["containerPort"] for port in head["ports"]] == [6379, 8265, 10001]
    worker = pod_of(one, "worker")["spec"]["containers"][0]
    assert worker["command"][2] == "ray start --block --address=train-head-0.train:6379"
    service = plugins.on_job_add(one, one.status)[0].obj
    assert service["metadata"]["name"] == "train-head-svc"
    assert service["spec"]["selector"]["volcano.sh/task-spec"] == "head"
    with pytest.raises(Unready, match="head task 'head' does not exist"):
        plugins.on_job_add(make({"ray": []}, task("worker", 1)), one.status)


def test_an_unknown_plugin_is_reported():
    with pytest.raises(Unready, match="'magic' is not available"):
        plugins.on_job_update(make({"magic": []}))


async def test_ssh_keys_are_made_once_and_taken_away(world):
    pytest.importorskip("cryptography")
    await world.start_running(job(plugins={"ssh": ["--ssh-port=2222"]}))
    secret = world.api.get(kinds.SECRET, "train-ssh")
    texts = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    assert texts["id_rsa"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert texts["id_rsa.pub"] == texts["authorized_keys"]
    assert "Host train-work-1\n  HostName train-work-1.train\n  Port 2222" in texts["config"]
    mount = world.pods()["train-work-0"]["spec"]["containers"][0]["volumeMounts"][0]
    assert (mount["mountPath"], mount["subPath"]) == ("/root/.ssh", ".ssh")

    await world.kill()
    await world.start()
    world.api.change(kinds.JOB, "train", {"spec": {"minAvailable": 1}})
    await world.until(lambda: world.podgroups()[0]["spec"]["minMember"] == 1)
    assert world.api.get(kinds.SECRET, "train-ssh")["data"] == secret["data"]
    world.run_pods("Succeeded")
    await world.until(lambda: world.phase() == "Completed")
    await world.until(lambda: world.api.get(kinds.SECRET, "train-ssh") is None)


async def test_given_keys_are_used(world):
    keys = ["--ssh-private-key=private", "--ssh-public-key=public", "--ssh-key-file-path=/home/u/.ssh"]
    await world.start_running(job(plugins={"ssh": keys}))
    data = world.api.get(kinds.SECRET, "train-ssh")["data"]
    assert base64.b64decode(data["id_rsa"]) == b"private"
    volume = world.pods()["train-work-0"]["spec"]["volumes"][0]
    assert volume["secret"]["defaultMode"] == 0o644


class Shout(PodOnly):
    """A user's plugin: an annotation in capitals."""

    name = "shout"

    def __init__(self, arguments):
        self._text = arguments[0]

    def on_pod_create(self, pod, job, task, index):
        pod["metadata"].setdefault("annotations", {})["shout"] = self._text.upper()


@pytest.fixture
def installed(monkeypatch):
    """Packages that announce job plugins: a good one, one that cannot be loaded, one with a taken name."""
    points = [
        EntryPoint(name, value, "volcano_py.job_plugins")
        for name, value in (("shout", f"{__name__}:Shout"), ("broken", "no.such:module"), ("svc", f"{__name__}:Shout"))
    ]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    plugins.registry.cache_clear()
    yield
    plugins.registry.cache_clear()


def test_plugins_from_outside(installed, caplog):
    made = from_manifest(Job, job(plugins={"shout": ["hey"]}))
    pod = {"metadata": {"name": "train-work-0"}, "spec": {"containers": []}}
    plugins.on_pod_create(pod, made, made.spec.tasks[0], 0)
    assert pod["metadata"]["annotations"] == {"shout": "HEY"}
    assert "broken (no.such:module) cannot be loaded" in caplog.text
    assert "svc" in caplog.text
    assert plugins.registry()["svc"] is Svc


def test_a_plugin_that_raises_holds_up_its_own_job(installed):
    made = from_manifest(Job, job(plugins={"shout": []}))
    pod = {"metadata": {"name": "train-work-0"}, "spec": {"containers": []}}
    with pytest.raises(Unready, match="job plugin"):
        plugins.on_pod_create(pod, made, made.spec.tasks[0], 0)


@pytest.mark.parametrize(
    "argument",
    [
        "--ssh-private-keyy=SECRET",
        "--ssh-port=SECRET",
        "-----BEGIN RSA PRIVATE KEY-----\nSECRET\n-----END RSA PRIVATE KEY-----",
        "-SECRET0123456789abcdefghijklmnopqrstuvwxyz0123456789",
    ],
)
def test_a_mistaken_argument_is_reported_without_its_value(argument):
    problem = plugins.registry()["ssh"]([argument]).problem
    assert "--ssh-port" in problem and "SECRET" not in problem


async def test_a_mistaken_argument_is_one_event_of_the_job(world):
    await world.start_running(job(plugins={"ssh": ["--no-root"]}))
    [message] = world.events("PluginArguments")
    assert message.startswith("job plugin ssh: unknown argument --no-root;") and "--ssh-key-file-path" in message
