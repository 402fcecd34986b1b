"""The controller-manager: creates the selected controllers and runs them while it is the leader."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from prometheus_client import generate_latest

from volcano_py.api.kinds import JOB, QUEUE, ResourceType
from volcano_py.controllers import metrics
from volcano_py.controllers.colocation import ColocationController
from volcano_py.controllers.commands import CommandController, QueueCommands, Sink
from volcano_py.controllers.cronjob.controller import CronJobController
from volcano_py.controllers.executor import Executor
from volcano_py.controllers.garbage import GarbageController
from volcano_py.controllers.hypernode.controller import HyperNodeController
from volcano_py.controllers.job.controller import JobController
from volcano_py.controllers.jobflow.controller import JobFlowController
from volcano_py.controllers.jobtemplate import JobTemplateController
from volcano_py.controllers.kopf_thread import can_watch
from volcano_py.controllers.kopf_watch import KopfWatch
from volcano_py.controllers.leadership import Leadership
from volcano_py.controllers.options import Options, enabled
from volcano_py.controllers.podgroup.controller import PodGroupController
from volcano_py.controllers.queue.controller import QueueController
from volcano_py.controllers.runner import Cluster, Controller, run_controllers
from volcano_py.controllers.sharding.controller import ShardingController, flag_settings
from volcano_py.kube.client import Client
from volcano_py.kube.events import EventRecorder
from volcano_py.kube.health import Health
from volcano_py.kube.serve import serving, tls_context
from volcano_py.kube.supervise import run_all

log = logging.getLogger(__name__)
COMPONENT = "vc-controller-manager"

MAKERS: dict[str, Callable[[Cluster, Options], Controller]] = {
    JobController.name: lambda cluster, options: JobController(
        cluster,
        workers=options.worker_threads,
        max_requeue=options.max_requeue_num,
        on_max_run_time=options.on_max_run_time,
    ),
    QueueController.name: lambda cluster, options: QueueController(
        cluster,
        workers=options.worker_threads_for_queue,
        max_requeue=options.max_requeue_num,
        single_pods_of=() if options.pod_groups_of_single_pods else options.scheduler_names,
        workloads=options.gate("WorkLoadSupport"),
    ),
    PodGroupController.name: lambda cluster, options: PodGroupController(
        cluster,
        workers=options.worker_threads_for_podgroup,
        scheduler_names=options.scheduler_names,
        inherit_owner_annotations=options.inherit_owner_annotations,
        workloads=options.gate("WorkLoadSupport"),
        of_single_pods=options.pod_groups_of_single_pods,
    ),
    CronJobController.name: lambda cluster, options: CronJobController(
        cluster, workers=options.worker_threads_for_cronjob
    ),
    HyperNodeController.name: lambda cluster, options: HyperNodeController(cluster),
    ShardingController.name: lambda cluster, options: ShardingController(
        cluster,
        flag_settings(options.scheduler_configs, options.shard_sync_period, options.enable_node_event_trigger),
        place=options.sharding_place,
    ),
    ColocationController.name: lambda cluster, options: ColocationController(cluster),
    JobFlowController.name: lambda cluster, options: JobFlowController(cluster, max_requeue=options.max_requeue_num),
    JobTemplateController.name: lambda cluster, options: JobTemplateController(cluster),
    GarbageController.name: lambda cluster, options: GarbageController(cluster, workers=options.worker_threads_for_gc),
}
"""Controller name, as in `--controllers`, to its constructor."""


def check_selection(selection: Sequence[str]) -> list[str]:
    """Warnings about `--controllers`. Raises ValueError if it selects no controller."""
    warnings = []
    for entry in selection:
        name = entry.removeprefix("-").removeprefix("+")
        if name != "*" and name not in MAKERS:
            near = get_close_matches(name, MAKERS, 1)
            hint = f"did you mean {near[0]}?" if near else f"valid names are {', '.join(MAKERS)}"
            warnings.append(f"--controllers: unknown controller {name}; {hint}")
    if not enabled(selection, MAKERS):
        raise ValueError("; ".join(["--controllers selects no controller", *warnings]))
    return warnings


def make_controllers(cluster: Cluster, options: Options) -> list[Controller]:
    """The selected controllers. Raises ValueError for an invalid selection."""
    for warning in check_selection(options.controllers):
        log.warning("%s", warning)
    made = {
        name: MAKERS[name](cluster, options)
        for name in enabled(options.controllers, MAKERS)
        if name != CronJobController.name or options.gate("CronVolcanoJobSupport")
    }
    sinks: dict[ResourceType, Sink] = {}
    jobs, queues = made.get(JobController.name), made.get(QueueController.name)
    if isinstance(jobs, JobController):
        sinks[JOB] = jobs.command
    if isinstance(queues, QueueController):
        sinks[QUEUE] = queues.command
    controllers = list(made.values())
    if sinks and options.gate("QueueCommandSync"):
        permitted = QueueCommands(options.queue_commands == "checked", options.queue_command_namespaces)
        controllers.append(CommandController(cluster, sinks, permitted))
    return controllers


async def run(
    client: Client,
    options: Options,
    *,
    started: asyncio.Event | None = None,
    make: Callable[[Cluster, Options], list[Controller]] = make_controllers,
    component: str = COMPONENT,
) -> None:
    """Run until cancelled or a task ends. `started` is set when work begins.

    `client` reads; writes use a separate client with the same limits, which sends nothing without the Lease.
    `make` constructs the controllers, `component` is the source of Events. Raises the exception that ended the task:
    NotLeading when leadership is lost, TaskEnded for a task that must not end, OSError for an address in use.
    """
    agent = f"volcano-py/{component}"
    leadership = Leadership(options, client.credentials, agent)
    health = Health()
    async with (
        leadership.client,
        Client(
            client.credentials,
            qps=options.kube_api_qps,
            burst=options.kube_api_burst,
            gate=leadership.gate,
            lean=True,  # requests are sent at once or never, so that none is sent without the Lease
            user_agent=agent,
            requests=metrics.REQUESTS,
        ) as writer,
    ):
        recorder = EventRecorder(writer, component)
        cluster = Cluster(client, Executor(writer, recorder, leadership.holds), _kopf_watch(client, options))
        controllers = make(cluster, options)

        def unready() -> str:
            """Empty if this process leads with synced caches, or follows a leader."""
            if leadership.holds():
                return "" if leadership.began.is_set() and cluster.synced() else "the caches are not synced"
            return "" if leadership.holder else "there is no leader"

        async def work() -> None:
            await leadership.began.wait()
            leadership.idle.clear()
            try:
                if started is not None:
                    started.set()
                await run_controllers(cluster, controllers, health)
            finally:
                leadership.idle.set()

        async with _endpoints(options, health, unready):
            await run_all(
                {
                    "events": health.watched("events", recorder.run()),
                    "leadership": health.watched("leader election", leadership.run(), leadership.check),
                    "controllers": health.watched("controllers", work()),
                }
            )


def _kopf_watch(client: Client, options: Options) -> KopfWatch | None:
    """The kopf watch, if it is enabled and supported."""
    if not options.watch_with_kopf:
        return None
    if not can_watch(client.credentials):
        log.info("kopf does not support a TLS server name; informers watch all kinds")
        return None
    return KopfWatch(client)


def _endpoints(
    options: Options, health: Health, unready: Callable[[], str]
) -> contextlib.AbstractAsyncContextManager[dict[str, int]]:
    """The servers of /healthz with /readyz, and of /metrics, if enabled."""
    return serving(
        metrics=(options.listen_address, lambda: generate_latest(metrics.REGISTRY)) if options.enable_metrics else None,
        healthz=(options.healthz_address, health) if options.enable_healthz else None,
        readyz=unready,
        tls=tls_context(options.ca_cert_file, options.tls_cert_file, options.tls_private_key_file),
    )
