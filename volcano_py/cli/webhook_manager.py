"""`volcano-py webhook-manager`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import Any

import click

from volcano_py.cli.errors import describe_os_error, fail
from volcano_py.kube.flags import KLOG, Duration, Verbosity, flag, ignored_flags, parse_gates
from volcano_py.webhooks.options import DEFAULT_PATHS, Options, check


@click.command(context_settings={"max_content_width": 110, "show_default": True})
@click.option("--kubeconfig", default="", help="File that says how to reach the API server.")
@click.option("--master", default="", help="Address of the API server; overrides the kubeconfig's.")
@click.option("--listen-address", default="", help="Where to listen; empty: on all addresses.")
@click.option("--port", type=int, default=8443)
@click.option("--kube-api-qps", type=float, default=50.0, help="Requests a second.")
@click.option("--kube-api-burst", type=int, default=100, help="Requests at once.")
@click.option("--ca-cert-file", default="", help="CA that the API server trusts; needs the next two.")
@click.option("--tls-cert-file", default="", help="Our certificate; without these three files we make our own.")
@click.option("--tls-private-key-file", default="", help="Its key.")
@click.option("--cert-secret", default="", help="Secret that keeps our own certificate [volcano-admission-secret].")
@click.option("--webhook-namespace", default="", help="Namespace of our Service.")
@click.option("--webhook-service-name", default="", help="Our Service.")
@click.option("--webhook-url", default="", help="How we are reached without a Service: https://host:port.")
@flag("--register", False, "Make the webhook configurations; without it the chart does.")
@click.option("--enabled-admission", default=",".join(DEFAULT_PATHS), help="Paths to answer on, by commas.")
@click.option("--scheduler-name", "scheduler_names", multiple=True, default=("volcano",), help="Jobs get the first.")
@click.option("--admission-conf", default="", help="File with resource groups; it is read again when it changes.")
@flag("--enable-healthz", False, "Serve /healthz.")
@click.option("--healthz-address", default=":11251", help="Where /healthz is served.")
@flag("--enable-metrics", False, "Serve /metrics.")
@click.option("--metrics-address", default=":8080", help="Where /metrics is served.")
@click.option("--graceful-shutdown-time", type=Duration(), default="30s", help="Left to requests under way at the end.")
@flag("--enable-queue-allocated-pods-check", False, "Refuse to delete a queue that has allocated pods.")
@click.option("--max-queue-depth", type=int, default=5, help="Levels of queues below root.")
@flag("--enable-root-queue-protection", True, "Refuse changes of root's resources.")
@click.option("--max-request-bytes", type=click.IntRange(1024), default=1 << 20, help="Larger requests get a 413.")
@click.option("--feature-gates", default="", help="Name=true|false, separated by commas.")
@click.option("-v", "--v", "verbosity", type=Verbosity(), default=0, hidden=True)
@ignored_flags(KLOG)
def webhook_manager(**given: Any) -> None:
    """Admission: defaults and checks of Jobs, CronJobs, JobFlows, Queues, PodGroups, HyperNodes, pods."""
    given["feature_gates"] = parse_gates(given["feature_gates"])
    given["enabled_admission"] = tuple(path.strip() for path in given["enabled_admission"].split(",") if path.strip())
    options = Options(**{key: value for key, value in given.items() if key in Options.__dataclass_fields__})
    try:
        check(options)
    except ValueError as error:
        fail(str(error), 2)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname).1s %(name)s: %(message)s")
    _run(options)


def _run(options: Options) -> None:
    from volcano_py.kube.client import Client
    from volcano_py.kube.errors import KubeError
    from volcano_py.kube.supervise import TaskEnded
    from volcano_py.webhooks.manager import run

    async def work() -> None:
        flags = (options.kubeconfig or None, options.master or None)
        serving = asyncio.current_task()
        assert serving is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
        limits: dict[str, Any] = {"qps": options.kube_api_qps, "burst": options.kube_api_burst}
        async with Client.for_flags(*flags, **limits, user_agent="volcano-py/webhook-manager") as client:
            with contextlib.suppress(asyncio.CancelledError):
                await run(client, options)

    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    except (KubeError, TaskEnded, ValueError) as error:
        fail(str(error))
    except OSError as error:
        fail(describe_os_error(error))
