"""All verbs of the client on a sandbox; the guide, the notebook and the operator for Airflow run as they stand."""

from __future__ import annotations

import ast
import base64
import inspect
import json
import linecache
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from volcano_py import client as package
from volcano_py.api.kinds import ResourceType
from volcano_py.client import (
    AlreadyExists,
    AsyncClient,
    Client,
    ClientError,
    ConfigurationError,
    Forbidden,
    Invalid,
    Job,
    JobFailed,
    NotFound,
    SandboxCluster,
    Task,
    Unauthorized,
    Unreachable,
    WaitTimeout,
    job,
    sandbox,
)
from volcano_py.kube import credentials

ROOT = Path(__file__).parents[2]
SLEEP = Task(name="main", image="busybox", command=["sleep", "600"])
ECHO = Task(name="main", image="busybox", command=["sh", "-c", "echo one; echo two"], replicas=2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SandboxCluster]:
    with sandbox(nodes=4, cpus=8, gpus=2, run_commands=True) as made:
        yield made


def verbs(of: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(value)
        for name, value in vars(of).items()
        if not name.startswith("_") and inspect.isfunction(value)
    }


def test_both_clients_have_the_same_verbs() -> None:
    one, other = verbs(AsyncClient), verbs(Client)
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].parameters == other[name].parameters, name
        returned = str(one[name].return_annotation).replace("AsyncIterator", "Iterator")
        assert returned == str(other[name].return_annotation), name
    constructors = inspect.signature(AsyncClient).parameters, inspect.signature(Client).parameters
    assert constructors[0] == constructors[1]


def test_every_verb(cluster: SandboxCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    used: set[str] = set()

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            used.add(name)
            return getattr(client, name)

    client = Client(cluster.kubeconfig)
    c: Any = Recorder()
    assert c.submit(job("v-dry", ECHO), dry_run=True).name == "v-dry"
    with pytest.raises(NotFound):
        c.status("v-dry")

    submitted = c.submit(job("v-echo", ECHO))
    assert submitted.phase == "Pending" and submitted.total == 2
    states: list[Job] = []
    done = c.wait(submitted, timeout=60, progress=states.append)
    assert done.ok and done.finished and states[-1] == done and str(done).endswith("Completed, 2 of 2 succeeded")
    assert [line.text for line in c.logs("v-echo")] == ["one", "two"] * 2
    assert [line.text for line in c.logs(done, index=1, tail=1)] == ["two"]
    assert sorted(str(line) for line in c.logs("v-echo", follow=True)) == [
        f"[v-echo-main-{index}] {text}" for index in (0, 1) for text in ("one", "two")
    ]
    assert [(p.task, p.index, p.phase) for p in c.pods("v-echo")] == [
        ("main", 0, "Succeeded"),
        ("main", 1, "Succeeded"),
    ]
    assert [one.phase for one in c.watch("v-echo")] == ["Completed"]

    c.create_queue("v-queue", weight=2, capability={"cpu": 8}, deserved={"cpu": 4}, guarantee={"cpu": 2})
    assert c.queue("v-queue").capability == {"cpu": "8"} and c.update_queue("v-queue", weight=5).weight == 5
    c.submit(job("v-sleep", SLEEP, queue="v-queue"))
    assert c.wait("v-sleep", phase="Running", timeout=60).running == 1
    assert [one.name for one in c.jobs(queue="v-queue")] == ["v-sleep"]
    assert {"v-echo", "v-sleep"} <= {one.name for one in c.jobs(all_namespaces=True)} and not c.jobs(namespace="other")
    c.suspend("v-sleep", wait=True, timeout=60)
    assert c.status("v-sleep") == "Aborted"
    c.resume("v-sleep", wait=True, timeout=60)
    assert c.close_queue("v-queue").state == "Closing"
    with pytest.raises(Invalid) as raised:
        c.submit(job("v-late", SLEEP, queue="v-queue"))
    assert (raised.value.object, raised.value.field) == ("job default/v-late", "spec.queue")
    assert "operate -a open" in raised.value.remedy
    assert c.open_queue("v-queue").state == "Open"
    c.delete("v-sleep", wait=True, timeout=60)
    c.close_queue("v-queue")
    c.delete_queue("v-queue")
    assert "v-queue" not in [one.name for one in c.queues()]

    c.submit(job("v-wide", SLEEP.options(cpus=5, replicas=6)))
    why = c.explain("v-wide")
    assert why.state == "pending" and why.reasons and any("node" in text for text in why.suggestions), why
    assert c.explain("default", kind="queue").subject == "queue default"
    assert c.what_if(add_nodes="2xcpu=8,memory=32Gi").changes[0].job == "default/v-wide"
    assert "default/v-fits" in c.what_if(job("v-fits", SLEEP), configuration=PLAIN).starts
    with pytest.raises(WaitTimeout) as late:
        c.wait("v-wide", timeout=0.1)
    assert isinstance(late.value, TimeoutError) and "still Pending" in str(late.value)
    for shown in (
        done,
        why,
        c.jobs(),
        c.queues(),
        c.pods("v-echo"),
        c.queue("default"),
        c.what_if(add_nodes="1xcpu=1"),
    ):
        assert "<" in shown._repr_html_()
    assert c.get("v-wide").reason
    c.delete("v-wide", wait=True)
    c.delete("v-echo")
    c.close()
    assert used == verbs(AsyncClient).keys()


PLAIN = '{actions: "enqueue, allocate", tiers: [{plugins: [{name: gang}, {name: predicates}]}]}'


def test_a_job_that_fails(cluster: SandboxCluster) -> None:
    client = cluster.client
    client.submit(job("f-exit", SLEEP.options(command=["sh", "-c", "exit 3"])))
    with pytest.raises(JobFailed) as raised:
        client.wait("f-exit", timeout=60)
    assert raised.value.job is not None and raised.value.job.phase == "Failed" and "client.logs" in raised.value.remedy
    client.delete("f-exit", wait=True)
    client.submit(job("f-aborted", SLEEP))
    client.suspend("f-aborted", wait=True)
    with pytest.raises(JobFailed, match="resume"):
        client.wait("f-aborted", timeout=60)
    seen = []
    for state in client.watch("f-aborted"):
        seen.append(state)
        if len(seen) == 1:
            client.delete("f-aborted")
    assert seen[-1].deleted


def bad_token(cluster: SandboxCluster, folder: Path) -> str:
    text = Path(cluster.kubeconfig).read_text()
    path = folder / "kubeconfig"
    path.write_text(re.sub(r"token: .*", "token: wrong", text))
    return str(path)


def test_every_error_is_typed(cluster: SandboxCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = cluster.client
    for call, kind, about in (
        (lambda: client.get("nosuch"), NotFound, "job default/nosuch"),
        (lambda: client.delete("nosuch"), NotFound, "job default/nosuch"),
        (lambda: client.wait("nosuch"), NotFound, "job default/nosuch"),
        (lambda: list(client.logs("nosuch", follow=True)), NotFound, "job default/nosuch"),
        (lambda: list(client.logs("nosuch")), NotFound, "job default/nosuch"),
        (lambda: list(client.watch("nosuch")), NotFound, "job default/nosuch"),
        (lambda: client.explain("nosuch"), NotFound, "job default/nosuch"),
        (lambda: client.explain("x", kind="thing"), Invalid, "x"),
        (lambda: client.queue("nosuch"), NotFound, "queue nosuch"),
        (lambda: client.create_queue("default"), AlreadyExists, "queue default"),
        (lambda: client.wait("x", phase="Done"), Invalid, "wait"),
        (lambda: client.get(""), Invalid, "job"),
        (lambda: client.what_if(add_nodes="many"), Invalid, "what_if"),
        (lambda: client.what_if(configuration="actions: x"), Invalid, "what_if"),
        (lambda: client.submit({"kind": "Pod"}), Invalid, "the manifest"),
        (lambda: client.submit(job("Bad_Name", SLEEP)), Invalid, "job default/Bad_Name"),
        (lambda: Client(tmp_path / "nosuch"), ConfigurationError, "client"),
        (lambda: Client(bad_token(cluster, tmp_path)).get("x"), Unauthorized, "job default/x"),
        (lambda: sandbox(shape="cpu=?").start(), Invalid, "sandbox"),
    ):
        with pytest.raises(ClientError) as raised:
            call()
        assert type(raised.value) is kind and raised.value.object == about and raised.value.remedy, raised.value
        assert (raised.value.__cause__ is None and raised.value.__suppress_context__) or kind in (Invalid, NotFound)
    closed = re.sub(r"server: .*", "server: https://127.0.0.1:1", Path(cluster.kubeconfig).read_text())
    (tmp_path / "closed").write_text(closed)
    with pytest.raises(Unreachable) as lost:
        Client(tmp_path / "closed").jobs()
    assert "aiohttp" not in str(lost.value) and "kubeconfig" in lost.value.remedy


async def test_a_missing_permission_names_the_command(cluster: SandboxCluster, tmp_path: Path) -> None:
    async with AsyncClient(cluster.kubeconfig) as admin:
        account = ResourceType("", "v1", "serviceaccounts", "ServiceAccount")
        await admin.api.create(account, {"metadata": {"name": "guest"}}, "default")
        answer = await admin.api.create_subresource(account, "guest", "token", {"spec": {}}, "default")
    path = tmp_path / "guest"
    path.write_text(re.sub(r"token: .*", f"token: {answer['status']['token']}", Path(cluster.kubeconfig).read_text()))
    async with AsyncClient(path) as guest:
        with pytest.raises(Forbidden) as raised:
            await guest.submit(job("x", SLEEP))
    assert "--verb=create --resource=jobs.batch.volcano.sh" in raised.value.remedy
    assert "--serviceaccount=default:guest" in raised.value.remedy


def test_a_client_in_a_pod_uses_its_service_account(
    cluster: SandboxCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a kubeconfig, but with the files and variables that Kubernetes gives to a pod."""
    [context] = yaml.safe_load(Path(cluster.kubeconfig).read_text())["clusters"]
    [user] = yaml.safe_load(Path(cluster.kubeconfig).read_text())["users"]
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(context["cluster"]["certificate-authority-data"]))
    (tmp_path / "token").write_text(user["user"]["token"])
    (tmp_path / "namespace").write_text("default")
    host, _, port = context["cluster"]["server"].removeprefix("https://").rpartition(":")
    monkeypatch.setattr(credentials, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    with Client() as client:
        assert client.namespace == "default" and "default" in [one.name for one in client.queues()]


def test_a_notebook_shows_one_bar_that_moves(cluster: SandboxCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, job: Job) -> None:
            shown.append(job._repr_html_())

    def display(job: Job, display_id: bool) -> Handle:
        assert display_id and not shown
        shown.append(job._repr_html_())
        return Handle()

    module = ModuleType("IPython.display")
    module.display = display  # type: ignore[attr-defined]
    for name, value in (("ipykernel", ModuleType("ipykernel")), ("IPython", ModuleType("IPython"))):
        monkeypatch.setitem(sys.modules, name, value)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    cluster.client.submit(job("n-bar", ECHO))
    cluster.client.wait("n-bar", timeout=60)
    assert "Completed" in shown[-1] and "2/2" in shown[-1]
    cluster.client.delete("n-bar")


@pytest.fixture
def shared(cluster: SandboxCluster, monkeypatch: pytest.MonkeyPatch) -> SandboxCluster:
    """`sandbox` returns the cluster of this module."""
    monkeypatch.setattr(sandbox, "start", lambda self: cluster)
    monkeypatch.setattr(sandbox, "stop", lambda self: None)
    return cluster


def execute(cells: list[str], name: str) -> list[Any]:
    """Run cells as a notebook does: their sources are available, and the value of a last expression is the result."""
    module = ModuleType("__main__")
    values = []
    for number, text in enumerate(cells):
        file = f"<{name} cell {number}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        tree = ast.parse(text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, file, "exec"), vars(module))
        if last is not None:
            assert isinstance(last, ast.Expr)
            values.append(eval(compile(ast.Expression(last.value), file, "eval"), vars(module)))
    return values


def test_the_guide(shared: SandboxCluster, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "client.md").read_text()
    execute(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL), "guide")
    printed = capsys.readouterr().out
    for line in (
        "job default/train: Completed, 2 of 2 succeeded",
        "[train-train-1] worker 1 trains with 0.1",
        "Completed 0 4",
        "GangTooLarge",
        "suggestion: add 2 nodes",
        "default/wide ",
        "research Open 3",
        "job default/train-2 spec.queue create it, or use another queue",
        "[async-main-0] hello",
    ):
        assert line in printed, printed


def test_the_first_page(shared: SandboxCluster, capsys: pytest.CaptureFixture[str]) -> None:
    [block] = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/index.md").read_text(), re.MULTILINE | re.DOTALL)
    if "train" in [one.name for one in shared.client.jobs()]:
        shared.client.delete("train", wait=True)
    execute([block], "first page")
    assert "job default/train: Completed, 4 of 4 succeeded" in capsys.readouterr().out
    shared.client.delete("train", wait=True)


def test_the_notebook(shared: SandboxCluster) -> None:
    notebook = json.loads((ROOT / "examples" / "notebook" / "first-job.ipynb").read_text())
    assert not any(cell.get("outputs") for cell in notebook["cells"])
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = execute(cells, "notebook")
    done, value, pods, why, what_if, jobs, queues = (one for one in shown if not (isinstance(one, str)))
    assert done.ok and abs(value - 3.14) < 0.02 and len(pods) == 4 and why.suggestions and what_if.changes
    for one in (done, pods, why, what_if, jobs, queues):
        assert "<" in one._repr_html_()


def test_the_operator_for_airflow(
    cluster: SandboxCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class BaseOperator:  # the stand-in for Airflow's, which is not installed here
        def __init__(self, task_id: str) -> None:
            self.task_id, self.log = task_id, logging.getLogger(task_id)

    models = ModuleType("airflow.models")
    models.BaseOperator = BaseOperator  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.models", models)
    path = ROOT / "examples" / "airflow" / "volcano_operator.py"
    assert len(path.read_text().splitlines()) <= 45
    spec = util.spec_from_file_location("volcano_operator", path)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    caplog.set_level(logging.INFO)
    options = {"task_id": "t", "kubeconfig": cluster.kubeconfig, "timeout": 60}
    operator = module.VolcanoJobOperator(manifest=job("air", ECHO), **options)
    assert operator.execute({}) == "air" and "[air-main-0] one" in caplog.text
    operator.on_kill()
    operator.on_kill()
    with pytest.raises(NotFound):
        cluster.client.get("air")
    failing = module.VolcanoJobOperator(manifest=job("air-2", SLEEP.options(command=["false"])), **options)
    with pytest.raises(JobFailed):
        failing.execute({})


def test_a_client_that_is_not_closed_prints_nothing(cluster: SandboxCluster) -> None:
    code = f"from volcano_py.client import Client; c = Client({cluster.kubeconfig!r}); c.jobs(); list(c.watch('x'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "NotFound" in done.stderr and "nclosed" not in done.stderr and "aiohttp" not in done.stderr, done.stderr


@pytest.mark.slow
def test_a_sandbox_that_is_not_stopped_ends_with_the_program(tmp_path: Path) -> None:
    code = "from volcano_py.client import sandbox; c = sandbox(nodes=1).start(); print(c.kubeconfig)"
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert done.stdout.startswith(str(tmp_path)) and not list(tmp_path.glob("volcano-client-*"))


def test_all_names_are_exported() -> None:
    assert sorted(package.__all__) == list(package.__all__)
    assert all(getattr(package, name) for name in package.__all__)
