"""The webhook manager: the webhook server, its certificate, the state that rules read, and the registration.

Volcano: cmd/webhook-manager/app. When one of its tasks ends, the process ends and is restarted. When a certificate is
renewed, the API server gets the new CA first; then the server presents the new certificate.
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
    RESERVATION,
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
from volcano_py.webhooks import certificate_secret, registration, server
from volcano_py.webhooks.access import access_check
from volcano_py.webhooks.configuration import AdmissionConfiguration
from volcano_py.webhooks.lookup import Manifest, QueueIndex
from volcano_py.webhooks.options import Options, warnings_about
from volcano_py.webhooks.paths import PATHS, AdmissionContext

log = logging.getLogger(__name__)

LOOK = 10.0
"""Seconds between two checks of certificate, Secret and webhook configurations, which other clients may change."""
CONFIGURATION_LOOK = 1.0
LONGEST_ROUND = 900.0
"""Maximum seconds of one check. A throttling API server may cause several dozen retries in it."""


async def run(client: Client, options: Options, *, started: asyncio.Event | None = None) -> None:
    """Serve until cancelled or a task ends. `started` is set when webhooks are configured and the server is ready.

    Raises the exception that ended the task, or TaskEnded; OSError for an address in use or unreadable files.
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
    reservations: Mapping[str, Manifest] = {}
    if "/reservations/validate" in options.enabled_admission:
        informers.append(Informer(client, RESERVATION, optional=True))
        reservations = informers[-1].store
    configuration = AdmissionConfiguration(options.admission_conf)
    access = access_check(client)

    def context() -> AdmissionContext:
        return AdmissionContext(
            queues=queues,
            namespaces=namespaces,
            reservations=reservations,
            scheduler_names=options.scheduler_names,
            resource_groups=configuration.groups,
            max_queue_depth=options.max_queue_depth,
            protect_root_queue=options.enable_root_queue_protection,
            check_allocated_pods=options.enable_queue_allocated_pods_check,
            feature_gates=options.feature_gates,
            access=access,
        )

    async def reread() -> None:
        while True:
            await asyncio.sleep(CONFIGURATION_LOOK)
            if configuration.refresh():
                log.info("reloaded --admission-conf: %d resource groups", len(configuration.groups or ()))

    async def admit() -> None:
        for informer in informers:
            await informer.synced.wait()
        certificate = await _certificate_patiently(client, options)
        tls = certificate.context()
        app = server.application(context, options.enabled_admission, most_bytes=options.max_request_bytes)
        try:
            grace = options.graceful_shutdown_time
            async with server.listening(app, options.listen_address, options.port, tls, grace):
                log.info("serving admission on port %d: %s", options.port, ", ".join(options.enabled_admission))
                await _look_after(client, options, certificate, tls, rounds, started)
        except OSError as error:
            why = f"cannot listen on port {options.port} ({error.strerror}); set another --port"
            raise OSError(why) from None

    rounds = Progress(LONGEST_ROUND)
    health = Health()
    parts = {
        "admission configuration": health.watched("admission configuration", reread()),
        "admission": health.watched("admission", admit(), rounds.check),
    }
    types = (QUEUE, *(PATHS[path].rt for path in options.enabled_admission))
    parts["definitions"] = health.watched("definitions", definitions.follow(client, types))
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
    """Keep the CA in the webhook configurations and the serving certificate up to date, until cancelled."""
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
                log.info("serving a new certificate")
            if missing != waiting and missing:
                log.warning("waiting for %s: install the chart, or set --register to create them", ", ".join(missing))
            waiting = missing
            if started is not None:
                started.set()
            reported = ""
            backoff.reset()
        except (KubeError, OSError, ValueError) as error:
            level = logging.DEBUG if str(error) == reported else logging.ERROR
            reported = str(error)
            why = f"{error}{_grant(error, options)}"
            log.log(level, "certificate and webhook configurations cannot be checked: %s; retrying", why)
            await asyncio.sleep(backoff.next())
            continue
        await asyncio.sleep(LOOK)


def _grant(error: Exception, options: Options) -> str:
    """`; grant it: …` with all verbs that the manager needs for the forbidden kind; empty for other errors."""
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
    """The first certificate; retries until the API server permits access to the Secret. Raises OSError for files."""
    backoff = Backoff()
    while True:
        try:
            return await _certificate(client, options)
        except KubeError as error:
            level = logging.WARNING if backoff.failures in (0, 10, 100) else logging.DEBUG
            log.log(level, "no certificate yet: %s%s; retrying", error, _grant(error, options))
            await asyncio.sleep(backoff.next())


async def _announce(client: Client, options: Options, bundle: bytes) -> list[str]:
    if not options.register:
        return await registration.inject(client, options.enabled_admission, bundle)
    where = registration.Where(options.webhook_url, options.webhook_namespace, options.webhook_service_name)
    await registration.register(client, options.enabled_admission, where, bundle)
    return []


def _secret_place(options: Options) -> tuple[str, str]:
    """Namespace and name of the Secret with the certificate."""
    return options.webhook_namespace or "volcano-system", options.cert_secret or "volcano-admission-secret"


async def _certificate(client: Client, options: Options) -> ServerCertificate:
    """The certificate from the files, or from the Secret, which is created or updated if necessary.

    Raises OSError or KubeError.
    """
    if options.tls_cert_file:
        named = (options.ca_cert_file, options.tls_cert_file, options.tls_private_key_file)
        return ServerCertificate(*(Path(name).read_bytes() for name in named))
    namespace, name = _secret_place(options)
    while True:
        try:
            secret = await client.get(SECRET, name, namespace)
        except NotFound:
            secret = None
        stored = certificate_secret.read(secret.get("data") or {}) if secret else None
        renewed = certificate_secret.renewed(stored, options.hosts, time.time())
        if renewed is None:
            assert stored is not None
            return stored.served()
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "data": renewed.data(),
        }
        try:
            if secret is None:
                await client.create(SECRET, manifest)
            else:
                await client.update(SECRET, {**secret, "data": {**(secret.get("data") or {}), **renewed.data()}})
        except (AlreadyExists, Conflict):
            continue  # another replica wrote the Secret first: use its certificate
        log.info("wrote a new certificate to the Secret %s/%s", namespace, name)
        return renewed.served()
