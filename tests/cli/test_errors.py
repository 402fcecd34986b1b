"""Errors at the command line: one line with the remedy, an exit code other than 0, no traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from volcano_py.cli.main import main as volcano_py
from volcano_py.cli.vcctl import main as vcctl

HERE = Path(__file__).parents[2]


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-tool", "interactiveMode": "Never"}


def kubeconfig(server: str, cluster: dict[str, str] | None = None, user: dict[str, Any] | None = None) -> str:
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    }
    return yaml.safe_dump(document)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files to name: a kubeconfig broken in each way, and others that cannot be used."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = taken.getsockname()[1]
    texts = {
        "broken": "a: [\n  b",
        "text": "no kubeconfig",
        "odd": "current-context: x\ncontexts: [3]\n",
        "other": "current-context: x\ncontexts: []\n",
        "dead": kubeconfig(f"http://127.0.0.1:{closed}"),
        "ca": kubeconfig("https://127.0.0.1:1", {"certificate-authority-data": "bm8="}),
        "certificate": kubeconfig("https://127.0.0.1:1", user={"client-certificate": "no.crt", "client-key": "no.key"}),
        "exec": kubeconfig("https://127.0.0.1:1", user={"exec": EXEC}),
        "shares": "actions: allocate\ntiers:\n- plugins: [{name: drf, enableHierarchy: true}, {name: proportion}]\n",
        "job.yaml": "kind: Job\nspec: [",
        "pod.yaml": "kind: Pod\n",
        "job.txt": "kind: Job\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    named = {name.replace(".", "_"): str(tmp_path / name) for name in texts}
    return {**named, "none": str(tmp_path / "none"), "folder": str(tmp_path)}


def one_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    assert len(lines) == 1, output
    assert "Traceback" not in output
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("schedule", 2, "unknown command 'schedule'; did you mean scheduler? (see `volcano-py --help`)"),
        ("bogus", 2, "commands are demo, sandbox"),
        ("sandbox upp", 2, "Did you mean 'up'? (see `volcano-py sandbox --help`)"),
        ("sandbox up --nodes x", 2, "'x' is not a valid integer (see `volcano-py sandbox up --help`)"),
        ("sandbox up --nodes -3", 1, "-3 is negative; use 0 or more"),
        ("sandbox up --node-shape cpu", 1, "write e.g. cpu=32,memory=256Gi"),
        ("sandbox up --components foo --kubeconfig {folder}/x/kc", 1, "'foo' is unknown; valid values are scheduler"),
        ("sandbox up --components none --kubeconfig /proc/nope/kc", 1, "choose another with --kubeconfig"),
        ("sandbox down --kubeconfig {none}", 1, "start one with `volcano-py sandbox up`"),
        ("sandbox status --kubeconfig {none}", 1, "start one with `volcano-py sandbox up`"),
        ("sandbox kubeconfig --kubeconfig {none}", 1, "start one with `volcano-py sandbox up`"),
        ("simulate run", 2, "specify manifest files, or - for standard input"),
        ("simulate run {none}", 2, "No such file or directory; give files that exist"),
        ("simulate run {broken}", 2, "not valid YAML"),
        ("simulate run {text}", 2, "not a Kubernetes object"),
        ("simulate run --jsonl {none}", 2, "No such file or directory; use existing files, or -"),
        ("simulate run --conf {none} {pod_yaml}", 2, "No such file or directory"),
        ("simulate run --conf {broken} {pod_yaml}", 2, "broken: line 2, column 4: not valid YAML"),
        ("controller-manager --kubeconfig {none}", 1, "none does not exist; name one with --kubeconfig or KUBECONFIG"),
        ("controller-manager", 1, ".kube/config does not exist; name one with --kubeconfig or KUBECONFIG"),
        ("controller-manager --kubeconfig {broken}", 1, "broken is not valid YAML: "),
        ("controller-manager --kubeconfig {text}", 1, "is not a mapping; is it a kubeconfig?"),
        ("controller-manager --kubeconfig {odd}", 1, "odd: contexts must be a list of maps"),
        ("controller-manager --kubeconfig {other}", 1, "has no context 'x'; contexts there: none"),
        ("controller-manager --kubeconfig {ca}", 1, "the certificates of cluster 'c'"),
        ("controller-manager --kubeconfig {certificate}", 1, "no.crt"),
        (
            "controller-manager --bogus",
            2,
            "unrecognized arguments: --bogus (see `volcano-py controller-manager --help`)",
        ),
        ("controller-manager --leader-elect=maybe", 2, "'maybe' is neither true nor false"),
        (
            "controller-manager --kubeconfig {dead} --controllers=foo",
            2,
            "unknown controller foo; valid names are job-controller",
        ),
        (
            "controller-manager --kubeconfig {dead} --enable-metrics --listen-address=foo",
            2,
            "address 'foo' must be host:port or :port",
        ),
        ("scheduler --bogus", 2, "No such option '--bogus' (see `volcano-py scheduler --help`)"),
        ("scheduler --schedule-period=soon", 2, "schedule-period"),
        ("scheduler extra", 2, "unexpected extra argument (extra)"),
        ("completion", 2, "Choose from: bash, zsh, fish"),
        ("version -o x", 2, "is not one of 'text', 'json'"),
        ("demo --kubeconfig /proc/nope/kc", 1, "/proc/nope: No such file or directory; set another path"),
    ],
)
def test_volcano_py(files: dict[str, str], arguments: str, code: int, message: str) -> None:
    result = CliRunner().invoke(volcano_py, arguments.format(**files).split(), prog_name="volcano-py")
    text = result.output.removeprefix("Starting a cluster of 4 nodes with 8 cpu each …\n")
    assert message in one_line(text)
    assert result.exit_code == code, result.exception


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            "bogus",
            2,
            "error: unknown command 'bogus'; commands are explain, job, queue, jobflow, jobtemplate, cronjob, ",
        ),
        ("job view", 2, "Missing option '-N' / '--name' (see `vcctl job view --help`)"),
        ("job run", 255, "Failed to run job: job name cannot be left blank"),
        ("job run -N x -R cpu -k {dead}", 255, "resource 'cpu' must be name=quantity, such as cpu=1000m"),
        ("job run -f {none}.yaml -k {dead}", 255, "none.yaml: No such file or directory"),
        ("job run -f {job_txt} -k {dead}", 255, "only support yaml file"),
        ("job run -f {job_yaml} -k {dead}", 255, "job.yaml: not valid YAML"),
        ("job run -f {pod_yaml} -k {dead}", 255, "must contain one Job (batch.volcano.sh/v1alpha1)"),
        ("job list -k {none}", 255, "does not exist; name one with --kubeconfig or KUBECONFIG"),
        ("job list", 255, ".kube/config does not exist; name one with --kubeconfig or KUBECONFIG"),
        ("queue list -k {broken}", 255, "Failed to list queue: kubeconfig"),
        ("queue list -k {odd}", 255, "contexts must be a list of maps"),
        ("queue list -k {ca}", 255, "the certificates of cluster 'c'"),
        ("queue list -k {certificate}", 255, "no.crt"),
        ("pod list -k {dead}", 255, "check that the API server runs, and its address in --kubeconfig or --master"),
        ("pod list -s 127.0.0.1:1", 255, "GET http://127.0.0.1:1/api/v1/namespaces/default/pods: "),
        ("pod list -k {exec}", 255, "the credential program 'no-such-tool' was not found"),
        ("queue get -k {dead}", 255, "name is mandatory to get the particular queue details"),
        ("queue delete -k {dead}", 255, "queue name must be specified"),
    ],
)
def test_vcctl(files: dict[str, str], arguments: str, code: int, message: str) -> None:
    result = CliRunner().invoke(vcctl, arguments.format(**files).split(), prog_name="vcctl")
    assert message in one_line(result.output)
    assert result.exit_code == code, result.exception


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("vsub", 255, "Failed to: job name cannot be left blank; use -n"),
        ("vsub -n x -R cpu -k {dead}", 255, "Failed to: resource 'cpu' must be name=quantity, such as cpu=1000m"),
        ("vsub -n x -c 'sleep -k {dead}", 255, "Failed to: No closing quotation in the command of -c"),
        ("vsub -n x --wait=Done -k {dead}", 2, "'Done' is not one of 'Pending'"),
        ("vsub -n x -k {dead} --timeout -1s", 2, "-1s is negative; use 0 to wait without a limit"),
        ("vjobs -k {dead}", 255, "check that the API server runs, and its address in --kubeconfig or --master"),
        ("vjobs --watch -k {dead}", 255, "check that the API server runs, and its address in --kubeconfig or --master"),
        ("vqueues -k {none}", 255, "does not exist; name one with --kubeconfig or KUBECONFIG"),
        ("vqueues -o xml", 2, "'xml' is not one of 'json', 'yaml', 'wide', 'name'"),
        ("vcancel", 2, "Missing option '-n' / '--name' (see `vcancel --help`)"),
        ("vsuspend --bogus", 2, "No such option '--bogus' (see `vsuspend --help`)"),
        ("vresume -n x -k {text}", 255, "is not a mapping; is it a kubeconfig?"),
    ],
)
def test_tools(files: dict[str, str], arguments: str, code: int, message: str) -> None:
    program, *rest = arguments.format(**files).split()
    main = import_module(f"volcano_py.cli.{program}").main
    result = CliRunner().invoke(main, rest, prog_name=program)
    assert message in one_line(result.output)
    assert result.exit_code == code, result.exception


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, timeout=60, cwd=HERE, env=dict(os.environ)
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("--kubeconfig {none}", 1, "none does not exist; name one with --kubeconfig or KUBECONFIG"),
        ("--kubeconfig {broken}", 1, "broken is not valid YAML: "),
        ("--kubeconfig {dead} --plugins-dir={none}", 2, "none is not a directory"),
        ("--kubeconfig {dead} --enable-healthz --healthz-address=foo", 1, "address 'foo' must be host:port"),
        ("--kubeconfig {dead} --enable-metrics --listen-address=127.0.0.1:{port}", 1, "choose another address"),
    ],
)
def test_the_scheduler(files: dict[str, str], taken: int, arguments: str, code: int, message: str) -> None:
    result = run("volcano_py.cli.main", "scheduler", *arguments.format(**files, port=taken).split())
    assert message in one_line(result.stdout + result.stderr)
    assert result.returncode == code


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ("none", "none cannot be read: No such file or directory; check"),
        ("broken", "broken: line 2, column 4: not valid YAML"),
        ("shares", "shares: tiers[0]: proportion and drf with hierarchy"),
    ],
)
def test_a_scheduler_without_a_valid_configuration_reports_it_and_waits(
    files: dict[str, str], conf: str, message: str
) -> None:
    command = [sys.executable, "-m", "volcano_py.cli.main", "scheduler", "--kubeconfig", files["dead"]]
    with subprocess.Popen([*command, f"--scheduler-conf={files[conf]}"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        line = next(line for line in lines if " ERROR " in line)
        assert message in line and "nothing is scheduled until it is valid" in line and process.poll() is None
        process.terminate()
        assert not [line for line in lines if " ERROR " in line]
    assert process.returncode == 0


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which another process listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_in_use(files: dict[str, str], taken: int) -> None:
    up = ["sandbox", "up", "--components", "none", "--port", str(taken), "--kubeconfig", f"{files['folder']}/x/kc"]
    result = CliRunner().invoke(volcano_py, up)
    assert "choose another with --port, or 0 for any free one" in one_line(result.output)
    assert result.exit_code == 1

    manager = ["controller-manager", "--kubeconfig", files["dead"], "--enable-metrics"]
    result = CliRunner().invoke(volcano_py, [*manager, f"--listen-address=127.0.0.1:{taken}"])
    assert "/metrics cannot be served on 127.0.0.1:" in one_line(result.output)
    assert "choose another address" in result.output and result.exit_code == 1


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"{sys.executable} -m volcano_py.cli.main completion bash | true"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, cwd=HERE)
    assert result.stderr == ""


def test_the_demo_leaves_a_sandbox_that_is_up_alone(files: dict[str, str]) -> None:
    from volcano_py.sandbox import running

    path = Path(files["dead"])
    claim = running.claim(path)
    result = CliRunner().invoke(volcano_py, ["demo", "--kubeconfig", str(path)])
    claim.release()
    assert result.exit_code == 1 and "a sandbox is up with" in result.output and "sandbox down" in result.output
    assert path.exists()


def test_a_server_that_cannot_be_reached_is_named_without_reprs() -> None:
    result = CliRunner().invoke(vcctl, ["job", "list", "-s", "https://127.0.0.1:1"])
    assert result.exit_code == 255 and result.output.startswith("Failed to list job: GET https://127.0.0.1:1/apis/")
    assert "Cannot connect to host 127.0.0.1:1 [" in result.output and "ssl:" not in result.output
