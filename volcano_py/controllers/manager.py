"""The controller-manager: makes the selected controllers and runs them while it is the leader."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from volcano_py.api.kinds import JOB, QUEUE, ResourceType
from volcano_py.controllers import metrics
from volcano_py.controllers.commands import CommandController, Sink
from volcano_py.controllers.executor import Executor, NotLeading
from volcano_py.controllers.garbage import GarbageController
from volcano_py.controllers.job.controller import JobController
from volcano_py.controllers.options import Options, enabled
from volcano_py.controllers.podgroup.controller import PodGroupController
from volcano_py.controllers.queue.controller import QueueController
from volcano_py.controllers.runner import Cluster, Controller, run_controllers
from volcano_py.kube.client import Client
from volcano_py.kube.events import EventRecorder
from volcano_py.kube.leader import LeaderElection

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
    GarbageController.name: lambda cluster, options: GarbageController(cluster, workers=options.worker_threads_for_gc),
}
"""Controller name, as in `--controllers`, to what makes it."""


def make_controllers(cluster: Cluster, options: Options) -> list[Controller]:
    """The selected controllers. Raises ValueError for a selection that makes no sense."""
    made = {name: MAKERS[name](cluster, options) for name in enabled(options.controllers, MAKERS)}
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


async def run(client: Client, options: Options, *, started: asyncio.Event | None = None) -> None:
    """Run until cancelled; raises NotLeading when leadership is lost. `started` is set when work begins."""
    recorder = EventRecorder(client, COMPONENT)
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
    cluster = Cluster(client, executor)
    controllers = make_controllers(cluster, options)

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
        async with _endpoints(options), asyncio.TaskGroup() as group:
            group.create_task(recorder.run(), name="events")
            group.create_task(lead(), name="leader election")
            group.create_task(work(), name="controllers")
    except* NotLeading:
        raise NotLeading("leadership was lost") from None


@contextlib.asynccontextmanager
async def _endpoints(options: Options) -> AsyncIterator[None]:
    """/healthz and /metrics, each where it is wanted."""
    sites: list[tuple[str, str]] = []
    if options.enable_healthz:
        sites.append((options.healthz_address, "/healthz"))
    if options.enable_metrics:
        sites.append((options.listen_address, "/metrics"))
    runners = []
    try:
        for address, path in sites:
            app = web.Application()
            app.router.add_get(path, _healthz if path == "/healthz" else _metrics)
            runner = web.AppRunner(app)
            runners.append(runner)
            await runner.setup()
            host, _, port = address.rpartition(":")
            await web.TCPSite(runner, host or None, int(port)).start()
            log.info("%s is served on %s", path, address)
        yield
    finally:
        for runner in runners:
            await runner.cleanup()


async def _healthz(request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _metrics(request: web.Request) -> web.Response:
    return web.Response(body=generate_latest(metrics.REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})
