"""`volcano-py hypernode-controller`: the HyperNode controller in a process of its own.

Volcano: vc-hypernode-controller-manager. The controller-manager then runs with `--controllers=*,-hyperNode-controller`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from volcano_py.cli.errors import describe_os_error, fail
from volcano_py.kube.flags import KLOG, Duration, Verbosity, flag, ignored_flags

if TYPE_CHECKING:
    from volcano_py.controllers.options import Options

LEASE = "vc-hypernode-controller-manager"


@click.command(context_settings={"max_content_width": 110, "show_default": True})
@click.option("--kubeconfig", default="", help="Path to a kubeconfig file.")
@click.option("--master", default="", help="URL of the API server; overrides the kubeconfig.")
@click.option(
    "--kube-api-qps", type=click.FloatRange(0, min_open=True), default=50.0, help="Maximum requests per second."
)
@click.option("--kube-api-burst", type=click.IntRange(1), default=100, help="Maximum burst of requests.")
@flag("--enable-healthz", False, "Serve /healthz and /readyz.")
@click.option("--healthz-address", default=":11251", help="Address of /healthz and /readyz.")
@flag("--enable-metrics", False, "Serve /metrics.")
@click.option("--listen-address", default=":8081", help="Address of /metrics.")
@click.option("--ca-cert-file", default="", help="Path to the CA for clients of /metrics and /healthz.")
@click.option("--tls-cert-file", default="", help="Path to the certificate of /metrics and /healthz.")
@click.option("--tls-private-key-file", default="", help="Path to the key of this certificate.")
@flag("--leader-elect", True, "Run the controller only while holding the Lease.")
@click.option("--leader-elect-lease-duration", type=Duration(), default="15s", help="Duration of the Lease.")
@click.option(
    "--leader-elect-renew-deadline", type=Duration(), default="10s", help="Time limit for renewing the Lease."
)
@click.option(
    "--leader-elect-retry-period", type=Duration(), default="2s", help="Time between attempts to get the Lease."
)
@click.option("--leader-elect-resource-name", default=LEASE, help="Name of the Lease.")
@click.option("--leader-elect-resource-namespace", default="volcano-system", help="Namespace of the Lease.")
@click.option("-v", "--v", "verbosity", type=Verbosity(), default=0, hidden=True)
@ignored_flags((*KLOG, "leader-elect-resource-lock"))
def hypernode_controller(**given: Any) -> None:
    """Count the nodes of HyperNodes, and discover HyperNodes from labels and from UFM."""
    from volcano_py.controllers.options import Options

    options = Options(**{name: value for name, value in given.items() if name in Options.__struct_fields__})
    if options.enable_healthz and options.enable_metrics and options.healthz_address == options.listen_address:
        fail("--healthz-address and --listen-address are equal: set two different addresses", 2)
    from volcano_py.kube import logs

    logs.configure("hypernode-controller")
    _run(options)


def _run(options: Options) -> None:
    from volcano_py.controllers.executor import NotLeading
    from volcano_py.controllers.hypernode.controller import HyperNodeController
    from volcano_py.controllers.manager import run
    from volcano_py.controllers.metrics import REQUESTS
    from volcano_py.kube.client import Client
    from volcano_py.kube.errors import KubeError
    from volcano_py.kube.supervise import TaskEnded
    from volcano_py.kube.termination import until_terminated

    async def work() -> None:
        flags = (options.kubeconfig or None, options.master or None)
        async with Client.for_flags(
            *flags, qps=options.kube_api_qps, burst=options.kube_api_burst, requests=REQUESTS
        ) as client:
            await run(client, options, make=lambda cluster, _: [HyperNodeController(cluster)], component=LEASE)

    try:
        asyncio.run(until_terminated(work()))
    except NotLeading:
        fail("leadership was lost; another instance is the leader now")
    except (KubeError, TaskEnded, ValueError) as error:
        fail(str(error))
    except OSError as error:
        fail(describe_os_error(error))
    except KeyboardInterrupt:
        raise SystemExit(0) from None
