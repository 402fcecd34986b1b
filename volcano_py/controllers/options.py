"""Options of the controller-manager: its flags, their defaults, and which controllers they select.

Volcano: vc-controller-manager. Flags are parsed as in Go: `--leader-elect=false`, `--leader-elect`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import NoReturn

from msgspec import Struct, field

from volcano_py.api.duration import parse_duration
from volcano_py.controllers.job.run_limit import ACTIONS
from volcano_py.kube.flags import KLOG, REDIRECTION

DEFAULT_SCHEDULERS = ("volcano:volcano:0.0:0.6:false:2:100", "agent-scheduler:agent:0.7:1.0:true:2:100")
"""Of the sharding controller: name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes."""
DEFAULT_CONTROLLERS = ("*", "-sharding-controller")

_WITHOUT_EFFECT = (
    *(f"--{name}" for name in KLOG),
    "--leader-elect-resource-lock",
)
"""Flags of Volcano that are accepted so that a deployment's arguments remain valid, but have no effect."""


class Options(Struct):
    """Durations are seconds; addresses are `host:port`, without a host all interfaces."""

    kubeconfig: str = ""
    master: str = ""
    kube_api_qps: float = 50.0
    kube_api_burst: int = 100
    worker_threads: int = 3
    worker_threads_for_podgroup: int = 5
    worker_threads_for_queue: int = 5
    worker_threads_for_gc: int = 1
    worker_threads_for_cronjob: int = 3
    scheduler_names: list[str] = field(default_factory=lambda: ["volcano"])
    max_requeue_num: int = 15
    on_max_run_time: str = ""
    inherit_owner_annotations: bool = True
    pod_groups_of_single_pods: bool = False
    queue_commands: str = "off"
    queue_command_namespaces: list[str] = field(default_factory=list)
    controllers: list[str] = field(default_factory=lambda: list(DEFAULT_CONTROLLERS))
    feature_gates: dict[str, bool] = field(default_factory=dict)
    scheduler_configs: list[str] = field(default_factory=lambda: list(DEFAULT_SCHEDULERS))
    shard_sync_period: float = 60.0
    enable_node_event_trigger: bool = True
    sharding_configmap: str = "volcano-sharding-configmap"
    sharding_configmap_namespace: str = "volcano-system"
    watch_with_kopf: bool = True
    enable_healthz: bool = False
    healthz_address: str = ":11251"
    enable_metrics: bool = False
    listen_address: str = ":8081"
    ca_cert_file: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    leader_elect: bool = True
    leader_elect_lease_duration: float = 15.0
    leader_elect_renew_deadline: float = 10.0
    leader_elect_retry_period: float = 2.0
    leader_elect_resource_name: str = "vc-controller-manager"
    leader_elect_resource_namespace: str = "volcano-system"

    @property
    def sharding_place(self) -> tuple[str, str] | None:
        """Namespace and name of the ConfigMap of the sharding controller, if one is configured."""
        return (self.sharding_configmap_namespace, self.sharding_configmap) if self.sharding_configmap else None

    def gate(self, name: str) -> bool:
        """Whether a feature gate is on; those of the controllers are on by default."""
        return self.feature_gates.get(name, True)


def enabled(selection: Sequence[str], known: Iterable[str]) -> list[str]:
    """The controllers that `--controllers` selects, in the order of `known`. Raises ValueError."""
    known = list(known)
    wanted: dict[str, bool] = {}
    for entry in selection:
        if entry == "*":
            continue
        name = entry.removeprefix("-").removeprefix("+")
        if name in wanted:
            raise ValueError(f"--controllers: {name} is listed twice; keep one")
        wanted[name] = not entry.startswith("-")
    others = "*" in selection or not selection
    return [name for name in known if wanted.get(name, others)]


def parse_flags(arguments: Sequence[str], program: str = "volcano-py controller-manager") -> Options:
    """The options for command-line flags. A usage error is one line and exit code 2."""
    defaults = Options()
    parser = _Parser(prog=program, description="Run the controllers.", allow_abbrev=False)

    def text(flag: str, default: str, help: str) -> None:
        parser.add_argument(flag, default=default, metavar="TEXT", help=f"{help} (default {default!r})")

    def number(flag: str, default: int, help: str) -> None:
        parser.add_argument(flag, type=int, default=default, metavar="N", help=f"{help} (default {default})")

    def switch(flag: str, default: bool, help: str) -> None:
        parser.add_argument(
            flag,
            type=_boolean,
            nargs="?",
            const=True,
            default=default,
            metavar="BOOL",
            help=f"{help} (default {str(default).lower()})",
        )

    def seconds(flag: str, default: float, help: str) -> None:
        parser.add_argument(
            flag, type=_duration, default=default, metavar="DURATION", help=f"{help} (default {default:g}s)"
        )

    text("--kubeconfig", defaults.kubeconfig, "Path to a kubeconfig file.")
    text("--master", defaults.master, "URL of the API server; overrides the kubeconfig.")
    parser.add_argument(
        "--kube-api-qps",
        type=float,
        default=defaults.kube_api_qps,
        metavar="QPS",
        help=f"Maximum requests per second. (default {defaults.kube_api_qps:g})",
    )
    number("--kube-api-burst", defaults.kube_api_burst, "Maximum burst of requests.")
    number("--worker-threads", defaults.worker_threads, "Number of Jobs synced concurrently.")
    number("--worker-threads-for-podgroup", defaults.worker_threads_for_podgroup, "Number of pods synced concurrently.")
    number("--worker-threads-for-queue", defaults.worker_threads_for_queue, "Number of queues synced concurrently.")
    number(
        "--worker-threads-for-cronjob", defaults.worker_threads_for_cronjob, "Number of CronJobs synced concurrently."
    )
    number("--worker-threads-for-gc", defaults.worker_threads_for_gc, "Number of finished Jobs deleted concurrently.")
    parser.add_argument(
        "--scheduler-name", action="append", metavar="NAME", help="schedulerName of the pods. Can be repeated."
    )
    number(
        "--max-requeue-num",
        defaults.max_requeue_num,
        "Number of attempts before a Job is terminated; -1 means no limit.",
    )
    parser.add_argument(
        "--on-max-run-time",
        choices=("", *ACTIONS),
        default=defaults.on_max_run_time,
        metavar="ACTION",
        help=f"Action for Jobs that have run for as long as volcano.sh/max-run-time states: {', '.join(ACTIONS)}. "
        "Empty: only for Jobs with the annotation volcano.sh/on-max-run-time. (default '')",
    )
    switch(
        "--inherit-owner-annotations",
        defaults.inherit_owner_annotations,
        "Copy annotations of the owners to PodGroups of plain pods.",
    )
    switch(
        "--pod-groups-of-single-pods",
        defaults.pod_groups_of_single_pods,
        "Create PodGroups also for pods that need none: those that are no gang and have no network topology.",
    )
    parser.add_argument(
        "--queue-commands",
        choices=("off", "checked"),
        default=defaults.queue_commands,
        help="Commands that open and close queues: off, or checked (those that /commands/mutate has checked; only "
        "with this webhook). (default off)",
    )
    text("--queue-command-namespaces", "", "Namespaces whose Commands may open and close queues; * means all.")
    text("--controllers", ",".join(DEFAULT_CONTROLLERS), "Controllers to run: *, name, +name, -name.")
    text("--feature-gates", "", "Comma-separated list of Name=true|false.")
    parser.add_argument(
        "--scheduler-configs", action="append", help="Schedulers of the sharding controller, without a ConfigMap."
    )
    seconds("--shard-sync-period", defaults.shard_sync_period, "Interval of the sharding controller.")
    switch("--enable-node-event-trigger", defaults.enable_node_event_trigger, "Also assign nodes when they change.")
    text("--sharding-configmap", defaults.sharding_configmap, "Name of the sharding controller's ConfigMap.")
    text("--sharding-configmap-namespace", defaults.sharding_configmap_namespace, "Namespace of this ConfigMap.")
    switch("--watch-with-kopf", defaults.watch_with_kopf, "Watch rarely changing kinds with kopf.")
    switch("--enable-healthz", defaults.enable_healthz, "Serve /healthz.")
    text("--healthz-address", defaults.healthz_address, "Address of /healthz.")
    switch("--enable-metrics", defaults.enable_metrics, "Serve /metrics.")
    text("--listen-address", defaults.listen_address, "Address of /metrics.")
    text("--ca-cert-file", "", "Path to the CA for clients of /metrics and /healthz.")
    text("--tls-cert-file", "", "Path to the certificate of /metrics and /healthz.")
    text("--tls-private-key-file", "", "Path to the key of this certificate.")
    switch("--leader-elect", defaults.leader_elect, "Run the controllers only while holding the Lease.")
    seconds("--leader-elect-lease-duration", defaults.leader_elect_lease_duration, "Duration of the Lease.")
    seconds("--leader-elect-renew-deadline", defaults.leader_elect_renew_deadline, "Time limit for renewing the Lease.")
    seconds(
        "--leader-elect-retry-period",
        defaults.leader_elect_retry_period,
        "Time between attempts to acquire or renew the Lease.",
    )
    text("--leader-elect-resource-name", defaults.leader_elect_resource_name, "Name of the Lease.")
    text("--leader-elect-resource-namespace", defaults.leader_elect_resource_namespace, "Namespace of the Lease.")
    parser.add_argument("--lock-object-namespace", default="", help=argparse.SUPPRESS)
    for name in _WITHOUT_EFFECT:
        parser.add_argument(name, nargs="?", const="true", dest="without_effect", help=argparse.SUPPRESS)
    parser.add_argument("-v", "--v", dest="without_effect", help=argparse.SUPPRESS)

    given = vars(parser.parse_args([text for text in arguments if text != REDIRECTION]))
    del given["without_effect"]
    # If set, the deprecated flag takes precedence, as in Volcano.
    namespace = given.pop("lock_object_namespace")
    given["leader_elect_resource_namespace"] = namespace or given["leader_elect_resource_namespace"]
    given["scheduler_names"] = given.pop("scheduler_name") or defaults.scheduler_names
    configs = [part.strip() for text in given["scheduler_configs"] or () for part in text.split(",") if part.strip()]
    given["scheduler_configs"] = configs or defaults.scheduler_configs
    namespaces = given["queue_command_namespaces"].split(",")
    given["queue_command_namespaces"] = [name.strip() for name in namespaces if name.strip()]
    given["controllers"] = [name.strip() for name in given["controllers"].split(",") if name.strip()]
    try:
        given["feature_gates"] = _gates(given["feature_gates"])
        enabled(given["controllers"], ())
    except ValueError as error:
        parser.error(str(error))
    return Options(**given)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line; the usage of thirty flags would hide the message."""
        self.exit(2, f"error: {message} (see `{self.prog} --help`)\n")


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "t", "1"):
        return True
    if text.lower() in ("false", "f", "0"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _gates(text: str) -> dict[str, bool]:
    gates = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or value.lower() not in ("true", "false"):
            raise ValueError(f"--feature-gates: {part!r} is not Name=true or Name=false")
        gates[name] = value.lower() == "true"
    return gates
