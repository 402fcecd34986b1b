"""The controller-manager: makes the selected controllers and runs them while it is the leader."""

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
from volcano_py.controllers.commands import CommandController, Sink
from volcano_py.controllers.cronjob.controller import CronJobController
from volcano_py.controllers.executor import Executor, NotLeading
from volcano_py.controllers.garbage import GarbageController
from volcano_py.controllers.hypernode.controller import HyperNodeController
from volcano_py.controllers.job.controller import JobController
from volcano_py.controllers.jobflow.controller import JobFlowController
from volcano_py.controllers.jobtemplate import JobTemplateController
from volcano_py.controllers.kopf_thread import can_watch
from volcano_py.controllers.kopf_watch import HandWatch
from volcano_py.controllers.options import Options, enabled
from volcano_py.controllers.podgroup.controller import PodGroupController
from volcano_py.controllers.queue.controller import QueueController
from volcano_py.controllers.runner import Cluster, Controller, run_controllers
from volcano_py.controllers.sharding.controller import ShardingController, flag_settings
from volcano_py.kube.client import Client
from volcano_py.kube.events import EventRecorder
from volcano_py.kube.leader import LeaderElection
from volcano_py.kube.serve import serving

log = logging.getLogger(__name__)
COMPONENT = "vc-controller-manager"

MAKERS: dict[str, Callable[[Cluster, Options], Controller]] = {
    JobController.name: lambda cluster, options: JobController(
        cluster, workers=options.worker_threads, max_requeue=options.max_requeue_num
    ),
    QueueController.name: lambda cluster, options: QueueController(
        cluster, workers=options.worker_threads_for_queue, max_requeue=options.max_requeue_num
    ),
    PodGroupController.name: lambda cluster, options: PodGroupController(
        cluster,
        workers=options.worker_threads_for_podgroup,
        scheduler_names=options.scheduler_names,
        inherit_owner_annotations=options.inherit_owner_annotations,
        workloads=options.gate("WorkLoadSupport"),
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
"""Controller name, as in `--controllers`, to what makes it."""


def check_selection(selection: Sequence[str]) -> list[str]:
    """Warnings about `--controllers`. Raises ValueError when nothing is left to run."""
    warnings = []
    for entry in selection:
        name = entry.removeprefix("-").removeprefix("+")
        if name != "*" and name not in MAKERS:
            near = get_close_matches(name, MAKERS, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(MAKERS)}"
            warnings.append(f"--controllers: there is no {name}; {hint}")
    if not enabled(selection, MAKERS):
        raise ValueError("; ".join(["--controllers selects no controller", *warnings]))
    return warnings


def make_controllers(cluster: Cluster, options: Options) -> list[Controller]:
    """The selected controllers. Raises ValueError for a selection that makes no sense."""
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
        controllers.append(CommandController(cluster, sinks))
    return controllers


async def run(
    client: Client,
    options: Options,
    *,
    started: asyncio.Event | None = None,
    make: Callable[[Cluster, Options], list[Controller]] = make_controllers,
    component: str = COMPONENT,
) -> None:
    """Run until cancelled; raises NotLeading when leadership is lost. `started` is set when work begins.

    `make` says which controllers, `component` in whose name Events are recorded.
    """
    recorder = EventRecorder(client, component)
    leading = asyncio.Event()
    election: LeaderElection | None = None
    if options.leader_elect:
        election = LeaderElection(
            client,
            options.leader_elect_resource_namespace,
            options.leader_elect_resource_name,
            lease_duration=options.leader_elect_lease_duration,
            renew_deadline=options.leader_elect_renew_deadline,
            retry_period=options.leader_elect_retry_period,
            on_started=leading.set,
        )
    executor = Executor(client, recorder, election.holds if election else lambda: True)
    cluster = Cluster(client, executor, _by_hand(client, options))
    controllers = make(cluster, options)

    def unready() -> str:
        """Empty when we lead and know everything, or follow somebody."""
        if election is None or election.holds():
            return "" if leading.is_set() and cluster.synced() else "the caches are not filled yet"
        return "" if election.observed_holder else "nobody leads"

    async def lead() -> None:
        if election is None:
            leading.set()
            return
        await election.run()
        raise NotLeading("leadership was lost")

    async def work() -> None:
        await leading.wait()
        if started is not None:
            started.set()
        await run_controllers(cluster, controllers)

    try:
        async with _endpoints(options, unready), asyncio.TaskGroup() as group:
            group.create_task(recorder.run(), name="events")
            group.create_task(lead(), name="leader election")
            group.create_task(work(), name="controllers")
    except* NotLeading:
        raise NotLeading("leadership was lost") from None


def _by_hand(client: Client, options: Options) -> HandWatch | None:
    """kopf, if it is wanted and can be used."""
    if not options.watch_with_kopf:
        return None
    if not can_watch(client.credentials):
        log.info("kopf cannot be told the server's TLS name; informers watch all kinds")
        return None
    return HandWatch(client)


def _endpoints(options: Options, unready: Callable[[], str]) -> contextlib.AbstractAsyncContextManager[dict[str, int]]:
    """/healthz with /readyz, and /metrics, each where it is wanted."""
    return serving(
        metrics=(options.listen_address, lambda: generate_latest(metrics.REGISTRY)) if options.enable_metrics else None,
        healthz=(options.healthz_address, lambda: "") if options.enable_healthz else None,
        readyz=unready,
    )
