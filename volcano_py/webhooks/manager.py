"""The webhook manager: the server with its certificate, what its rules look at, and its place in the API server.

Volcano: cmd/webhook-manager/app. When one of its tasks ends, the process ends and is restarted. Order matters when a
certificate is renewed: first the API server gets the new CA, then the new certificate is served.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client import generate_latest

from volcano_py.api.kinds import (
    MUTATINGWEBHOOKCONFIGURATION,
    NAMESPACE,
    QUEUE,
    SECRET,
    VALIDATINGWEBHOOKCONFIGURATION,
)
from volcano_py.kube import definitions
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.certificates import ServerCertificate
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound
from volcano_py.kube.health import Health, Progress
from volcano_py.kube.informer import Informer
from volcano_py.kube.remedies import remedy
from volcano_py.kube.serve import serving, tls_context
from volcano_py.kube.supervise import run_all
from volcano_py.webhooks import keeping, registration, server
from volcano_py.webhooks.configuration import AdmissionConfiguration
from volcano_py.webhooks.lookup import Manifest, QueueIndex
from volcano_py.webhooks.options import Options, warnings_about
from volcano_py.webhooks.paths import PATHS, Surroundings

log = logging.getLogger(__name__)

LOOK = 10.0
"""Seconds between two looks at certificate, Secret and configurations: somebody may have replaced them."""
CONFIGURATION_LOOK = 1.0
LONGEST_ROUND = 900.0
"""Seconds of one look, in which a server that asks for patience may have some dozen requests repeated."""


async def run(client: Client, options: Options, *, started: asyncio.Event | None = None) -> None:
    """Serve until cancelled or a part ends. `started` is set when the configurations are made and requests answered.

    Raises what ended the part, or TaskEnded; OSError for an address that is in use or files that cannot be read.
    """
    for warning in warnings_about(options):
        log.warning("%s", warning)
    queues = QueueIndex()
    informers: list[Informer[Any]] = [Informer(client, QUEUE)]
    informers[0].on(add=queues.put, update=lambda old, new: queues.put(new), delete=_removal(queues))
    namespaces: Mapping[str, Manifest] = {}
    if "/podgroups/mutate" in options.enabled_admission:
        informers.append(Informer(client, NAMESPACE))
        namespaces = informers[1].store
    configuration = AdmissionConfiguration(options.admission_conf)

    def around() -> Surroundings:
        return Surroundings(
            queues=queues,
            namespaces=namespaces,
            scheduler_names=options.scheduler_names,
            resource_groups=configuration.groups,
            max_queue_depth=options.max_queue_depth,
            protect_root_queue=options.enable_root_queue_protection,
            check_allocated_pods=options.enable_queue_allocated_pods_check,
            feature_gates=options.feature_gates,
        )

    async def reread() -> None:
        while True:
            await asyncio.sleep(CONFIGURATION_LOOK)
            if configuration.refresh():
                log.info("--admission-conf was read again: %d resource groups", len(configuration.groups or ()))

    async def admit() -> None:
        for informer in informers:
            await informer.synced.wait()
        certificate = await _certificate_patiently(client, options)
        tls = certificate.context()
        app = server.application(around, options.enabled_admission, most_bytes=options.max_request_bytes)
        try:
            grace = options.graceful_shutdown_time
            async with server.listening(app, options.listen_address, options.port, tls, grace):
                log.info("admission is served on port %d: %s", options.port, ", ".join(options.enabled_admission))
                await _look_after(client, options, certificate, tls, rounds, started)
        except OSError as error:
            why = f"port {options.port} cannot be listened on ({error.strerror}); choose another --port"
            raise OSError(why) from None

    rounds = Progress(LONGEST_ROUND)
    health = Health()
    parts = {
        "admission configuration": health.watched("admission configuration", reread()),
        "admission": health.watched("admission", admit(), rounds.check),
    }
    judged = (QUEUE, *(PATHS[path].rt for path in options.enabled_admission))
    parts["definitions"] = health.watched("definitions", definitions.follow(client, judged))
    for informer in informers:
        name = f"informer {informer.rt.plural}"
        parts[name] = health.watched(name, informer.run(), informer.problem)
    metrics = (options.metrics_address, lambda: generate_latest(server.REGISTRY)) if options.enable_metrics else None
    healthz = (options.healthz_address, health) if options.enable_healthz else None
    tls = tls_context(options.ca_cert_file, options.tls_cert_file, options.tls_private_key_file)
    async with serving(metrics=metrics, healthz=healthz, tls=tls):
        await run_all(parts)


def _removal(queues: QueueIndex) -> Any:
    return lambda queue: queues.remove(queue["metadata"]["name"])


async def _look_after(
    client: Client,
    options: Options,
    certificate: ServerCertificate,
    tls: ssl.SSLContext,
    rounds: Progress,
    started: asyncio.Event | None,
) -> None:
    """Keep the API server's trust and our certificate up to date, until cancelled."""
    waiting: list[str] = []
    reported = ""
    backoff = Backoff(longest=LOOK)
    while True:
        rounds.working()
        try:
            newest = await _certificate(client, options)
            missing = await _announce(client, options, newest.authority)
            if newest != certificate:
                newest.load_into(tls)
                certificate = newest
                log.info("a new certificate is served")
            if missing != waiting and missing:
                log.warning("waiting for %s: the chart makes them; --register makes them here", ", ".join(missing))
            waiting = missing
            if started is not None:
                started.set()
            reported = ""
            backoff.reset()
        except (KubeError, OSError, ValueError) as error:
            level = logging.DEBUG if str(error) == reported else logging.ERROR
            reported = str(error)
            why = f"{error}{_grant(error, options)}"
            log.log(level, "certificate and webhook configurations cannot be checked now: %s; retrying", why)
            await asyncio.sleep(backoff.next())
            continue
        await asyncio.sleep(LOOK)


def _grant(error: Exception, options: Options) -> str:
    """`; grant it: …` with all verbs that the manager needs on a kind, an empty text where RBAC denied nothing."""
    if not isinstance(error, Forbidden):
        return ""
    on_configurations = registration.VERBS_TO_REGISTER if options.register else registration.VERBS_TO_INJECT
    needed = (
        (SECRET, ("get", "create", "update"), _secret_place(options)[0]),
        (MUTATINGWEBHOOKCONFIGURATION, on_configurations, None),
        (VALIDATINGWEBHOOKCONFIGURATION, on_configurations, None),
    )
    for rt, verbs, namespace in needed:
        if str(error).startswith(rt.plural):
            return "; " + remedy(error, rt, verbs, namespace)
    return ""


async def _certificate_patiently(client: Client, options: Options) -> ServerCertificate:
    """The first certificate, as soon as the API server lets it be read or made. Raises OSError for files."""
    backoff = Backoff()
    while True:
        try:
            return await _certificate(client, options)
        except KubeError as error:
            level = logging.WARNING if backoff.failures in (0, 10, 100) else logging.DEBUG
            log.log(level, "there is no certificate yet: %s%s; retrying", error, _grant(error, options))
            await asyncio.sleep(backoff.next())


async def _announce(client: Client, options: Options, bundle: bytes) -> list[str]:
    if not options.register:
        return await registration.inject(client, options.enabled_admission, bundle)
    where = registration.Where(options.webhook_url, options.webhook_namespace, options.webhook_service_name)
    await registration.register(client, options.enabled_admission, where, bundle)
    return []


def _secret_place(options: Options) -> tuple[str, str]:
    """Namespace and name of the Secret that keeps the certificate."""
    return options.webhook_namespace or "volcano-system", options.cert_secret or "volcano-admission-secret"


async def _certificate(client: Client, options: Options) -> ServerCertificate:
    """From the files, else from the Secret, which is written where it has to be. Raises OSError or KubeError."""
    if options.tls_cert_file:
        named = (options.ca_cert_file, options.tls_cert_file, options.tls_private_key_file)
        return ServerCertificate(*(Path(name).read_bytes() for name in named))
    namespace, name = _secret_place(options)
    while True:
        try:
            secret = await client.get(SECRET, name, namespace)
        except NotFound:
            secret = None
        kept = keeping.read(secret.get("data") or {}) if secret else None
        wanted = keeping.renewed(kept, options.hosts, time.time())
        if wanted is None:
            assert kept is not None
            return kept.served()
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "data": wanted.data(),
        }
        try:
            if secret is None:
                await client.create(SECRET, manifest)
            else:
                await client.update(SECRET, {**secret, "data": {**(secret.get("data") or {}), **wanted.data()}})
        except (AlreadyExists, Conflict):
            continue  # another replica was faster: its certificate is as good
        log.info("wrote a new certificate into the Secret %s/%s", namespace, name)
        return wanted.served()
