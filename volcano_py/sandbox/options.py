"""`volcano-py sandbox`: starts an embedded cluster in the foreground, and queries it from other processes."""

from __future__ import annotations

import asyncio
import gc
import resource
import secrets
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volcano_py.sandbox.foreign_command import nodes
from volcano_py.sandbox.node_commands import clock, node, summary
from volcano_py.sandbox.private_files import replacing
from volcano_py.sandbox.terminal import ask, fail, kubeconfig_option, missing_extra, node_shape_option, none_up
from volcano_py.sandbox.transfer_commands import dump, load

if TYPE_CHECKING:
    from volcano_py.kube.client import Client
    from volcano_py.sandbox.cluster import Sandbox
    from volcano_py.sandbox.running import Claim

MOST_FILES = 65536
STOP_SECONDS = 30.0
"""Seconds for which `down` waits for the end of the sandbox."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def sandbox() -> None:
    """Run a cluster on this machine: API server, hollow nodes, scheduler and controllers."""


for command in (node, nodes, clock, dump, load):
    sandbox.add_command(command)


@sandbox.command()
@click.option("--nodes", default=20, show_default=True, help="Number of nodes.")
@node_shape_option
@kubeconfig_option()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=0, show_default=True, help="Port to listen on; 0 selects a free one.")
@click.option(
    "--components",
    default="scheduler,controller-manager",
    show_default=True,
    help="Comma-separated components to start; none for only the API server and nodes.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for persistent data; an existing cluster is restored with its own nodes, token and port.",
)
@click.option("--fsync", is_flag=True, help="With --data: acknowledged writes also survive a power failure; slower.")
@click.option(
    "--audit-log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path to an audit log: one line per request, with user, verb, object and status code.",
)
@click.option(
    "--authorization",
    type=click.Choice(["rbac", "always-allow"]),
    default="rbac",
    show_default=True,
    help="Permissions of users other than the administrator: those of their roles, or all.",
)
@click.option(
    "--feature-gates",
    default="",
    metavar="NAME=true,...",
    help="Alpha features of the API server: GenericWorkload (native gangs), TopologyAwareWorkloadScheduling, "
    "DRAWorkloadResourceClaims; WorkloadAwarePreemption in 1.36, CompositePodGroup and PodGroupPreemptionPolicy in "
    "1.37; AllAlpha for all.",
)
@click.option(
    "--kubernetes-version",
    default="1.36",
    show_default=True,
    help="The version that the API server reports, 1.33 to 1.37, and whose kinds it serves.",
)
@click.option(
    "--prometheus-port",
    type=int,
    help="Serve the load of nodes on this port as Prometheus does, for the plugin usage; 0 selects a free one.",
)
@click.option("--dashboard", is_flag=True, help="Also serve the dashboard; requires the extra [dashboard].")
@click.option("--dashboard-port", default=0, show_default=True, help="Port of the dashboard; 0 selects a free one.")
@click.option(
    "--run-commands",
    is_flag=True,
    help="Run the commands of pods' containers as processes of THIS MACHINE, with the permissions of the user who "
    "starts the sandbox: every user who may create pods has these permissions. By default no pod runs a command.",
)
def up(
    nodes: int,
    node_shapes: tuple[str, ...],
    kubeconfig: Path,
    host: str,
    port: int,
    components: str,
    data: Path | None,
    fsync: bool,
    audit_log: Path | None,
    authorization: str,
    feature_gates: str,
    kubernetes_version: str,
    prometheus_port: int | None,
    dashboard: bool,
    dashboard_port: int,
    run_commands: bool,
) -> None:
    """Run a cluster until Ctrl-C."""
    if problem := missing_extra():
        fail(problem)
    from volcano_py.sandbox import shapes, volcano
    from volcano_py.sandbox.cluster import Sandbox, SandboxError
    from volcano_py.sandbox.controllers.manager import Options

    try:
        parsed = [shapes.parse(text) for text in node_shapes]
        chosen = [name.strip() for name in components.split(",") if name.strip() not in ("", "none")]
        if fsync and data is None:
            raise ValueError("--fsync needs --data; add --data DIR")
        arguments, token = {}, ""
        if dashboard:
            dashboard_port = dashboard_port or volcano.free_port()
            token_file = kubeconfig.absolute().with_name(f"{kubeconfig.name}.dashboard-token")
            token = _write_token(token_file)
            arguments = volcano.dashboard_arguments(dashboard_port, token_file)
            chosen.append(volcano.DASHBOARD)
        cluster = Sandbox(
            nodes,
            node_shapes=parsed,
            components=chosen,
            component_arguments=arguments,
            host=host,
            port=port,
            path=kubeconfig.absolute(),
            logs=kubeconfig.absolute().parent / "logs",
            data=data,
            fsync=fsync,
            audit=audit_log,
            run_commands=run_commands,
            rbac=authorization == "rbac",
            feature_gates=feature_gates,
            kubernetes_version=kubernetes_version,
            prometheus_port=prometheus_port,
            controllers=Options(service_accounts=True),
        )
        _allow_many_files()
        asyncio.run(_run(cluster, kubeconfig, f"http://127.0.0.1:{dashboard_port}/?token={token}" if dashboard else ""))
    except (SandboxError, ValueError) as error:
        fail(str(error))


def _write_token(path: Path) -> str:
    """Write a new token of the dashboard to a file that only this user can read; returns it. Raises ValueError."""
    token = secrets.token_urlsafe(24)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(f"{token}\n")
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}; choose another --kubeconfig") from None
    return token


def _allow_many_files() -> None:
    """Raise the limit of open files: every watch is one, and the default of many systems is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _run(cluster: Sandbox, path: Path, dashboard: str) -> None:
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, done.set)
    claim = _claim(path)
    try:
        await _serve(cluster, claim, done, dashboard)
    finally:
        claim.release()


def _claim(path: Path) -> Claim:
    from volcano_py.sandbox import running
    from volcano_py.sandbox.cluster import SandboxError

    try:
        return running.claim(path)
    except running.AlreadyRunning as error:
        where = f" at {error.state.url} (pid {error.state.pid})" if error.state is not None else ""
        raise SandboxError(
            f"a sandbox is already running{where} with {path}; "
            "stop it with `volcano-py sandbox down`, or choose another --kubeconfig"
        ) from None
    except OSError as error:
        raise SandboxError(f"cannot write beside {path} ({error.strerror}); choose another with --kubeconfig") from None


async def _serve(cluster: Sandbox, claim: Claim, done: asyncio.Event, dashboard: str) -> None:
    """Run a cluster until `done`. `dashboard`: its address, empty without one.

    Raises SandboxError when it cannot start or cannot persist its objects.
    """
    from volcano_py.sandbox.cluster import SandboxError

    async with cluster:
        # existing objects are long-lived; repeated collections of them would cost a tenth of the requests
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        claim.publish(cluster.url, cluster.nodes)
        _announce(cluster, dashboard)
        watch = asyncio.create_task(_monitor(cluster, done))
        await done.wait()
        watch.cancel()
        if cluster.durable is not None and cluster.durable.failure:
            raise SandboxError(cluster.durable.failure)


def _announce(cluster: Sandbox, dashboard: str) -> None:
    from volcano_py.sandbox import volcano

    nodes, chosen = cluster.nodes, [name for name in cluster.wanted_components if name != volcano.DASHBOARD]
    lines = [
        f"The sandbox is {'back' if cluster.restored else 'up'}: {cluster.url}, "
        f"{nodes} {'node' if nodes == 1 else 'nodes'}" + (f", {' and '.join(chosen)}" if chosen else ", no components"),
        "",
        f"  export KUBECONFIG={cluster.kubeconfig}",
        "  kubectl get nodes",
        "",
    ]
    if dashboard:
        lines.append(f"Dashboard: {dashboard} (in a few seconds)")
    if cluster.prometheus is not None:
        lines.append(f"Load of nodes, as from Prometheus: http://{cluster.host}:{cluster.prometheus.port}")
    if chosen:
        lines.append(f"Logs of the components: {cluster.logs}")
    if cluster.run_commands:
        lines.append(f"Pods' commands run on this machine, with your permissions, in {cluster.kubeconfig}.pods.")
    kept = f"its objects are persisted in {cluster.data}" if cluster.data else "nothing is persisted"
    lines.append(f"Ctrl-C stops it; {kept}.")
    click.echo("\n".join(lines))


async def _monitor(cluster: Sandbox, done: asyncio.Event) -> None:
    """Report components that end; set `done` when no writes are possible any more."""

    def report(name: str, code: int, pause: float) -> None:
        where = f"see {cluster.logs}/{name}.log"
        click.echo(f"sandbox: {name} ended with exit code {code} and starts again in {pause:.0f} s; {where}", err=True)

    if cluster.components is not None:
        cluster.components.on_end = report
    while True:
        if cluster.durable is not None and cluster.durable.failure:
            done.set()
        await asyncio.sleep(0.5)


@sandbox.command()
@kubeconfig_option()
def down(kubeconfig: Path) -> None:
    """Stop the sandbox that uses a kubeconfig."""
    from volcano_py.sandbox import running

    try:
        state = running.terminate(kubeconfig)
    except PermissionError:
        fail(f"the sandbox of {kubeconfig} runs as another user; stop it as that user")
    if state is None:
        none_up(kubeconfig)
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        now = running.find(kubeconfig)
        if now is None or now.pid != state.pid:
            click.echo("The sandbox is down.")
            return
        time.sleep(0.1)
    fail(f"pid {state.pid} has not stopped within {STOP_SECONDS:g} s; see what it prints, or end it with kill -9")


@sandbox.command()
@kubeconfig_option()
def status(kubeconfig: Path) -> None:
    """Print whether a sandbox is up."""
    from volcano_py.sandbox import running

    state = running.find(kubeconfig)
    if state is None or not state.url:
        none_up(kubeconfig)

    async def work(client: Client) -> None:
        what = await summary(client)
        click.echo(f"up at {state.url}, pid {state.pid}, {what}, kubeconfig {kubeconfig.absolute()}")

    ask(kubeconfig, work)


@sandbox.command("kubeconfig")
@kubeconfig_option()
def show_kubeconfig(kubeconfig: Path) -> None:
    """Print the kubeconfig of the sandbox that is up."""
    try:
        click.echo(kubeconfig.read_text(), nl=False)
    except OSError:
        fail(f"no kubeconfig at {kubeconfig}; start one with `volcano-py sandbox up`")
