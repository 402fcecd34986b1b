"""`volcano-py webhook-manager`."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from volcano_py.cli.errors import describe_os_error, fail
from volcano_py.kube.flags import KLOG, Duration, Verbosity, flag, ignored_flags, parse_gates
from volcano_py.webhooks.options import DEFAULT_PATHS, Options, check


@click.command(context_settings={"max_content_width": 110, "show_default": True})
@click.option("--kubeconfig", default="", help="Path to a kubeconfig file.")
@click.option("--master", default="", help="URL of the API server; overrides the kubeconfig.")
@click.option("--listen-address", default="", help="Address to listen on; empty means all addresses.")
@click.option("--port", type=int, default=8443, help="Port to listen on.")
@click.option("--kube-api-qps", type=float, default=50.0, help="Maximum requests per second to the API server.")
@click.option("--kube-api-burst", type=int, default=100, help="Maximum burst of requests to the API server.")
@click.option("--ca-cert-file", default="", help="Path to the CA bundle for the API server; requires --tls-cert-file.")
@click.option(
    "--tls-cert-file", default="", help="Path to the serving certificate; by default the program issues one itself."
)
@click.option("--tls-private-key-file", default="", help="Path to the private key of the serving certificate.")
@click.option("--cert-secret", default="", help="Secret with the issued certificate [volcano-admission-secret].")
@click.option("--webhook-namespace", default="", help="Namespace of the Service of the webhook manager.")
@click.option("--webhook-service-name", default="", help="Name of the Service of the webhook manager.")
@click.option("--webhook-url", default="", help="URL of the webhook manager without a Service: https://host:port.")
@flag("--register", False, "Create the webhook configurations; otherwise the chart creates them.")
@click.option("--enabled-admission", default=",".join(DEFAULT_PATHS), help="Comma-separated list of admission paths.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    default=("volcano",),
    help="Names of the schedulers; the first is the default of Jobs. Can be repeated.",
)
@click.option("--admission-conf", default="", help="Path to a file with resource groups; it is reloaded on change.")
@flag("--enable-healthz", False, "Serve /healthz.")
@click.option("--healthz-address", default=":11251", help="Address of /healthz.")
@flag("--enable-metrics", False, "Serve /metrics.")
@click.option("--metrics-address", default=":8080", help="Address of /metrics.")
@click.option("--graceful-shutdown-time", type=Duration(), default="30s", help="Grace period of open requests.")
@flag("--enable-queue-allocated-pods-check", False, "Deny the deletion of a queue that has allocated pods.")
@click.option("--max-queue-depth", type=int, default=5, help="Maximum levels of queues below root.")
@flag("--enable-root-queue-protection", True, "Deny changes of the root queue's resources.")
@click.option("--max-request-bytes", type=click.IntRange(1024), default=1 << 20, help="Maximum size of a request.")
@click.option("--feature-gates", default="", help="Comma-separated list of Name=true|false.")
@click.option("-v", "--v", "verbosity", type=Verbosity(), default=0, hidden=True)
@ignored_flags(KLOG)
def webhook_manager(**given: Any) -> None:
    """Serve the admission webhooks: defaults and validation of Volcano's objects and of pods."""
    given["feature_gates"] = parse_gates(given["feature_gates"])
    given["enabled_admission"] = tuple(path.strip() for path in given["enabled_admission"].split(",") if path.strip())
    options = Options(**{key: value for key, value in given.items() if key in Options.__dataclass_fields__})
    try:
        check(options)
    except ValueError as error:
        fail(str(error), 2)
    from volcano_py.kube import logs

    logs.configure("webhook-manager")
    _run(options)


def _run(options: Options) -> None:
    from volcano_py.kube.client import Client
    from volcano_py.kube.errors import KubeError
    from volcano_py.kube.supervise import TaskEnded
    from volcano_py.kube.termination import until_terminated
    from volcano_py.webhooks.manager import run

    async def work() -> None:
        flags = (options.kubeconfig or None, options.master or None)
        limits: dict[str, Any] = {"qps": options.kube_api_qps, "burst": options.kube_api_burst}
        async with Client.for_flags(*flags, **limits, user_agent="volcano-py/webhook-manager") as client:
            await run(client, options)

    try:
        asyncio.run(until_terminated(work()))
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    except (KubeError, TaskEnded, ValueError) as error:
        fail(str(error))
    except OSError as error:
        fail(describe_os_error(error))
