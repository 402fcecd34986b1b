"""The Volcano-specific parts of the sandbox: definitions, first objects, admission rules, and components.

The only module of the sandbox that imports more than `volcano_py.kube` and the generic half of `volcano_py.api`.

The API server calls Volcano's admission rules without a webhook. The rules for pods are not in the admission chain,
because that would copy every pod at every write: they run when a pod is created, and only for pods with Volcano's
scheduler name or a PodGroup.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import yaml

from volcano_py.api import kinds
from volcano_py.api.scheduling import DEFAULT_QUEUE, QUEUE_OPEN, ROOT_QUEUE
from volcano_py.api.yaml_documents import FAST_LOADER
from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.auth.authorization import Access, allowed
from volcano_py.sandbox.apiserver.registry.api import Admission, Api, Attributes
from volcano_py.sandbox.apiserver.registry.request import Request, User
from volcano_py.sandbox.apiserver.storage.store import ADDED, DELETED, Event
from volcano_py.webhooks import paths, pods
from volcano_py.webhooks.access import AccessQuery, UserInfo
from volcano_py.webhooks.lookup import Manifest, QueueIndex, Queues
from volcano_py.webhooks.paths import PATHS, AdmissionContext, AdmissionRequest, evaluate, with_access

SYSTEM_NAMESPACE = "volcano-system"
QUEUES = "queues.scheduling.volcano.sh"
OPENING_SECONDS = 5.0
"""Seconds for which a new Job waits for the first state of its queue."""
SCHEDULER_CONFIGMAP = (SYSTEM_NAMESPACE, "volcano-scheduler-configmap")
"""Namespace and name of the ConfigMap with the scheduler's configuration, as in Volcano's chart."""
SCHEDULER_KEY = "volcano-scheduler.conf"
"""The key in its data, and the name of the file in the package."""

PROGRAM = "volcano_py.cli.main"
WEBHOOK_MANAGER = "webhook-manager"
DASHBOARD = "dashboard"
COMPONENTS: dict[str, tuple[str, ...]] = {
    "scheduler": ("--leader-elect=false", "--scheduler-name=volcano", "--scheduler-name=default-scheduler"),
    "controller-manager": (
        "--leader-elect=false",
        "--kube-api-qps=2000",
        "--kube-api-burst=4000",
        "--queue-commands=checked",  # the API server checks them
    ),
    WEBHOOK_MANAGER: ("--register", "--listen-address=127.0.0.1"),
    DASHBOARD: ("--nice=10",),
}
"""The arguments of each component in addition to --kubeconfig. One replica needs no leader election, and the dashboard
must not delay the start of the others.
"""


class NotInstalled(Exception):
    """Files of the package are missing; the text contains their names and the remedy."""


# --- definitions and first objects -----------------------------------------------------------------------------------


def definitions() -> list[dict[str, Any]]:
    """The CRDs of Volcano. Raises NotInstalled if the installation does not contain them."""
    documents: list[dict[str, Any]] = orjson.loads(_definitions())
    return documents


@functools.cache
def _definitions() -> bytes:
    """Parsed once: parsing 18,000 lines of YAML takes 20 times as long as decoding JSON."""
    documents = []
    for path in sorted(_package_folder("crds").glob("*.yaml")):
        with path.open("rb") as file:
            documents += [document for document in yaml.load_all(file, Loader=FAST_LOADER) if document]
    return orjson.dumps(documents)


def scheduler_configmap() -> dict[str, Any]:
    """The scheduler's ConfigMap, with the configuration in the package. Raises NotInstalled."""
    namespace, name = SCHEDULER_CONFIGMAP
    text = (_package_folder("conf") / SCHEDULER_KEY).read_text(encoding="utf-8")
    return {"metadata": {"namespace": namespace, "name": name}, "data": {SCHEDULER_KEY: text}}


def _package_folder(name: str) -> Path:
    """A data folder of the package: in the wheel, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "data" / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise NotInstalled(f"no folder {name}/ found; reinstall volcano-py, or run from a checkout that has {name}/")


def put_first_queues(api: Api) -> None:
    """Create missing queues that Volcano's scheduler creates when it starts."""
    resource = api.resource("scheduling.volcano.sh", "queues")
    for queue in _first_queues():
        if resource.collection.get("", queue["metadata"]["name"]) is None:
            stamps = {"uid": metadata.new_uid(), "creationTimestamp": metadata.now(), "generation": 1}
            queue["metadata"].update(stamps)
            api.write(resource, ADDED, queue)


def _first_queues() -> list[dict[str, Any]]:
    return [
        {
            "metadata": {"name": ROOT_QUEUE},
            "spec": {"reclaimable": False, "weight": 1},
            "status": {"state": QUEUE_OPEN},
        },
        {
            "metadata": {"name": DEFAULT_QUEUE},
            "spec": {"reclaimable": True, "weight": 1},
            "status": {"state": QUEUE_OPEN},
        },
    ]


# --- components ------------------------------------------------------------------------------------------------------


def component_command(name: str, kubeconfig: Path, arguments: Mapping[str, Sequence[str]]) -> list[str]:
    """The module of a component, and its arguments. Raises ValueError for an unknown name.

    arguments: additional ones by component; a scheduler without --scheduler-conf reads its ConfigMap.
    """
    if name not in COMPONENTS:
        raise ValueError(f"components: {name!r} is unknown; valid values are {', '.join(COMPONENTS)} and none")
    more = [*COMPONENTS[name], *arguments.get(name, ())]
    if name == "scheduler" and not any(argument.startswith("--scheduler-conf") for argument in more):
        more.append(f"--scheduler-configmap={'/'.join(SCHEDULER_CONFIGMAP)}")
    if name == WEBHOOK_MANAGER and not any(argument.startswith("--port") for argument in more):
        port = free_port()
        more += [f"--port={port}", f"--webhook-url=https://127.0.0.1:{port}"]
    return [PROGRAM, name, "--kubeconfig", str(kubeconfig), *more]


def dashboard_arguments(port: int, token_file: Path | None = None) -> dict[str, list[str]]:
    """The arguments of the dashboard on a port, and of the scheduler, which serves its metrics to it. `token_file`: the
    token that viewers need; None: the dashboard makes one.

    Raises ValueError when the dashboard is not installed.
    """
    if not has_dashboard():
        raise ValueError("the dashboard requires an extra; install it: pip install 'volcano-py[dashboard]'")
    metrics = f"127.0.0.1:{free_port()}"
    return {
        DASHBOARD: [
            f"--port={port}",
            f"--metrics=http://{metrics}/metrics",
            *([f"--token-file={token_file}"] if token_file is not None else []),
        ],
        "scheduler": ["--enable-metrics", f"--listen-address={metrics}"],
    }


def has_dashboard() -> bool:
    """Whether the extra [dashboard] is installed."""
    return importlib.util.find_spec("nicegui") is not None


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# --- admission -------------------------------------------------------------------------------------------------------


class StoredQueues:
    """The index of the queues in the store."""

    def __init__(self, api: Api) -> None:
        self.index = QueueIndex()
        collection = api.store.collection(QUEUES)
        for entry in collection.select():
            self.index.put(entry.load())
        collection.observers.append(self._changed)

    def _changed(self, event: Event) -> None:
        if event.type == DELETED:
            self.index.remove(event.entry.name)
        else:
            self.index.put(event.entry.load())

    def get(self, name: str) -> Manifest | None:
        return self.index.get(name)

    def children(self, name: str) -> Sequence[Manifest]:
        return self.index.children(name)

    def all(self) -> Iterable[Manifest]:
        return self.index.all()


class StoredNamespaces:
    """The namespaces in the store."""

    def __init__(self, api: Api) -> None:
        self._collection = api.store.collections["namespaces"]

    def get(self, name: str) -> Manifest | None:
        entry = self._collection.get("", name)
        return entry.load() if entry else None


class StoredReservations:
    """The Reservations in the store."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def values(self) -> Iterable[Manifest]:
        found = self._api.store.collections.get(f"{kinds.RESERVATION.plural}.{kinds.RESERVATION.group}")
        return [entry.load() for entry in found.select()] if found is not None else []


def deny(webhook: str, problems: Sequence[str]) -> None:
    """Deny a request with the API server's text for a denying webhook."""
    if problems:
        message = "; ".join(problems)
        text = f'admission webhook "{webhook}" denied the request: {message}'
        raise StatusError(400, "", text)


def install_admission(api: Api) -> None:
    """Add Volcano's rules to the admission chain, and those for pods before it."""
    _install_for_pods(api)

    async def access(query: AccessQuery) -> bool:
        user = User(query.user.name, query.user.groups, query.user.uid)
        return allowed(api, Access(user, query.verb, query.group, "", query.resource, name=query.name))

    around = AdmissionContext(
        queues=StoredQueues(api),
        namespaces=StoredNamespaces(api),
        reservations=StoredReservations(api),
        access=access,
    )
    for path in PATHS.values():
        if path.rt is not kinds.POD:
            chain = api.mutating if path.mutates else api.validating
            chain.setdefault(f"{path.rt.plural}.{path.rt.group}", []).append(_admission(path, around))


def _admission(path: paths.Path, around: AdmissionContext) -> Admission:
    async def admit(attributes: Attributes) -> None:
        if attributes.operation not in path.operations or attributes.request.subresource:
            return
        if path is PATHS["/jobs/validate"] and attributes.operation == "CREATE":
            await _queue_has_state(around.queues, (attributes.obj or {}).get("spec") or {})
        old = attributes.old
        name = old["metadata"]["name"] if old is not None else ""
        user = attributes.request.user
        who = UserInfo(user.name, tuple(user.groups), user.uid, user.extra)
        review = AdmissionRequest(attributes.operation, attributes.obj, old, name, attributes.request.namespace, who)
        verdict = evaluate(path, review, await with_access(path, review, around))
        deny(f"{path.webhook}.volcano.sh", verdict.problems)
        if verdict.obj is not None:
            attributes.obj = verdict.obj

    return admit


async def _queue_has_state(queues: Queues, spec: Manifest) -> None:
    """Wait until the queue controller has set the state of a Job's queue, up to `OPENING_SECONDS`.

    kubectl apply creates the queue and the Jobs of a folder within milliseconds, and Volcano denies a Job whose
    queue has no state yet. A webhook may take as long.
    """
    deadline = time.monotonic() + OPENING_SECONDS
    while time.monotonic() < deadline:
        queue = queues.get(spec.get("queue") or DEFAULT_QUEUE)
        if queue is None or (queue.get("status") or {}).get("state"):
            return
        await asyncio.sleep(0.02)


def _install_for_pods(api: Api) -> None:
    """Validate new pods of Volcano. The sandbox has no resource groups, so pods are not changed."""
    resource = api.resource("", "pods")
    before = resource.strategy.admit_create
    path, around = PATHS["/pods/validate"], AdmissionContext()

    def admit(api: Api, pod: dict[str, Any], request: Request) -> None:
        if before is not None:
            before(api, pod, request)
        try:
            concerned = pods.concerns(pod)
        except (TypeError, AttributeError):
            concerned = True  # its structure is invalid; the rules report it
        if concerned:
            deny(f"{path.webhook}.volcano.sh", evaluate(path, AdmissionRequest("CREATE", pod), around).problems)

    # the strategy is shared by all API servers of the process
    resource.strategy = replace(resource.strategy, admit_create=admit)
