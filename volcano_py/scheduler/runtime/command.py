"""The scheduler's command line: Volcano's flags with their names and defaults, and a few additions.

Flags that only configure Go's libraries (klog, worker threads) are accepted without effect, so
that a Volcano deployment's arguments can be kept; each is logged once.
"""

from __future__ import annotations

import gc
import os
from dataclasses import fields, replace
from typing import Any

import click
from click.core import ParameterSource

from volcano_py import __version__
from volcano_py.kube.flags import DEBUG_FROM, KLOG, Duration, Verbosity, flag, ignored_flags, parse_gates
from volcano_py.scheduler.configuration.options import CONFIGURATION_KEY, Options
from volcano_py.scheduler.model.nodes.sample_size import SampleSize

_IGNORED = [
    *KLOG,
    "resync-period",
    "node-worker-threads",
    "gate-removal-worker-num",
    "csi-storage",
    "resource-sync-timeout",
    "leader-elect-resource-lock",
]


@click.command(context_settings={"max_content_width": 110, "show_default": True})
@click.option("--kubeconfig", default="", help="Path to a kubeconfig file.")
@click.option("--master", default="", help="Address of the API server; overrides the kubeconfig's.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    default=("volcano",),
    help="Schedule pods with this spec.schedulerName; may be repeated.",
)
@click.option("--scheduler-conf", default="", help="Configuration file; it is read again when it changes.")
@click.option(
    "--scheduler-configmap",
    default="",
    metavar="NAMESPACE/NAME[/KEY]",
    help="ConfigMap with the configuration, instead of a file; it is watched. KEY: volcano-scheduler.conf.",
)
@click.option(
    "--config",
    default="",
    help="File with a KubeSchedulerConfiguration: its profiles schedule pod by pod, beside the session.",
)
@flag(
    "--strict-config",
    True,
    "With an invalid configuration at the start use the last valid one, or wait; false: use the built-in one.",
)
@flag("--disable-default-scheduler-config", False, "Do not fall back to the built-in configuration.")
@click.option(
    "--schedule-period",
    type=Duration(),
    default="1s",
    help="Longest pause between cycles while anything is pending.",
)
@click.option(
    "--idle-schedule-period",
    "idle_period",
    type=Duration(),
    default="60s",
    help="Longest pause between cycles while nothing is pending, for plugins that declare no time of their own; "
    "at least --schedule-period.",
)
@click.option(
    "--cycle-budget", type=click.IntRange(0), default=0, help="Limit of tasks tried in one cycle; 0: no limit."
)
@click.option("--default-queue", default="default", help="Queue of PodGroups without spec.queue.")
@click.option("--kube-api-qps", type=float, default=2000.0, help="Limit of writes per second; 0: no limit.")
@click.option("--kube-api-burst", type=int, default=2000, help="Limit of writes in a burst.")
@click.option("--listen-address", default=":8080", help="Address of /metrics and /debug/pprof/.")
@click.option("--healthz-address", default=":11251", help="Address of /healthz.")
@flag("--enable-metrics", False, "Serve /metrics.")
@flag("--enable-healthz", False, "Serve /healthz.")
@flag("--enable-pprof", False, "Serve /debug/pprof/ on the listen address: a CPU profile, and all stacks.")
@click.option("--ca-cert-file", default="", help="CA for clients of /metrics and /healthz (needs the next two).")
@click.option("--tls-cert-file", default="", help="Certificate of /metrics and /healthz.")
@click.option("--tls-private-key-file", default="", help="Key of /metrics and /healthz.")
@click.option("--node-selector", multiple=True, help="key:value; use only nodes with any of these labels.")
@click.option("--plugins-dir", default="", help="Folder of Python files with custom plugins and actions.")
@flag("--cache-dumper", True, "Dump the cache: to a file on SIGUSR1, to the log on SIGUSR2.")
@click.option("--cache-dump-dir", default="/tmp", help="Folder for that file.")
@click.option("--record", default="", metavar="DIR", help="Keep recent cycles in this folder, for volcano-py replay.")
@click.option("--record-limit", type=click.IntRange(1), default=256, help="Limit of that folder in MB.")
@click.option(
    "--otlp-endpoint", default="", metavar="URL", help="Send a trace of each job to this OpenTelemetry collector."
)
@click.option(
    "--verify-incremental", is_flag=True, help="Compare incremental state with state built from scratch in every cycle."
)
@click.option(
    "--cache-audit-period",
    type=Duration(),
    default="30s",
    help="Time between two comparisons of the cache with the API server; 0s: none.",
)
@click.option(
    "--cycle-deadline",
    type=Duration(),
    default="40s",
    help="Limit of a cycle, which is then ended, and the model is built again; 0s: none.",
)
@click.option(
    "--plugin-deadline",
    type=Duration(),
    default="10s",
    help="Limit of a call of a plugin, which ends the cycle, and of all its calls in a cycle, which is slow; 0s: none.",
)
@click.option("--shadow", is_flag=True, help="Write nothing: compare decisions with those of the live scheduler.")
@click.option("--shadow-settle", type=Duration(), default="3s", help="Time without an event until --shadow compares.")
@click.option(
    "--ignored-provisioners",
    multiple=True,
    help="Provisioners whose volumes count against no limit of a node; may be repeated, or separated by commas.",
)
@flag("--priority-class", True, "Use PriorityClasses.")
@click.option("--feature-gates", default="", help="Name=true|false, separated by commas.")
@click.option(
    "--kubernetes-version",
    default="",
    help="Profiles decide as kube-scheduler of this version, 1.36 or 1.37. Default: the cluster's version.",
)
@click.option(
    "--scheduler-sharding-mode",
    "sharding_mode",
    type=click.Choice(["none", "hard", "soft"]),
    default="none",
    help="Schedule only on the nodes of this scheduler's NodeShard (hard), prefer them (soft), or ignore shards.",
)
@click.option(
    "--scheduler-sharding-name", "sharding_name", default="volcano", help="Name of this scheduler's NodeShard."
)
@click.option(
    "--minimum-feasible-nodes",
    type=click.IntRange(1),
    default=100,
    help="Consider all nodes up to this number; used without the deviation every-node, as the next two.",
)
@click.option("--minimum-percentage-nodes-to-find", type=click.IntRange(0, 100), default=5, help="Least percentage.")
@click.option(
    "--percentage-nodes-to-find", type=click.IntRange(0, 100), default=0, help="Percentage of nodes; 0: adaptive."
)
@flag("--leader-elect", True, "Write only while holding the Lease.")
@click.option(
    "--leader-elect-lease-duration", "lease_duration", type=Duration(), default="15s", help="Duration of the Lease."
)
@click.option(
    "--leader-elect-renew-deadline",
    "renew_deadline",
    type=Duration(),
    default="10s",
    help="Time limit for renewing the Lease.",
)
@click.option(
    "--leader-elect-retry-period",
    "retry_period",
    type=Duration(),
    default="2s",
    help="Time between attempts to acquire or renew the Lease.",
)
@click.option("--leader-elect-resource-name", "lease_name", default="volcano", help="Name of the Lease.")
@click.option(
    "--leader-elect-resource-namespace", "lease_namespace", default="volcano-system", help="Namespace of the Lease."
)
@click.option("--lock-object-namespace", default="", hidden=True)
@click.option(
    "--heartbeat-timeout",
    type=Duration(),
    default="60s",
    help="Limit of a cycle, which ends the process, and of the dispatcher's silence, which replaces it.",
)
@click.option("--seed", type=int, default=0, help="Seed of the choice among nodes of equal score.")
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]),
    default="INFO",
    help="Lowest level that is logged.",
)
@click.option("-v", "--v", "verbosity", type=Verbosity(), default=None, help="klog's verbosity: 4 and more is DEBUG.")
@ignored_flags(_IGNORED)
@click.version_option(__version__, prog_name="volcano-py scheduler")
def scheduler(**given: Any) -> None:
    """Run the scheduler until SIGTERM or SIGINT."""
    # Nothing that is imported is garbage: collections would only take time. The cache lets them begin when all objects
    # are listed.
    gc.disable()
    try:
        # Imported here, so that `--help` does not load numpy.
        from volcano_py.scheduler.runtime.process import main

        context = click.get_current_context()
        explicit = {name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
        code = main(replace(options_of(given), given=frozenset(explicit)))
    finally:
        gc.enable()
    raise SystemExit(code)


def options_of(given: dict[str, Any]) -> Options:
    """The Options of click's parameters. Raises click.BadParameter."""
    ignored = tuple(f"--{name}" for name in _IGNORED if given.pop(name.replace("-", "_"), None) is not None)
    verbosity = given.pop("verbosity", None)
    if verbosity is not None and verbosity >= DEBUG_FROM:
        given["log_level"] = "DEBUG"
    # The deprecated flag wins where it is set, as in Volcano.
    given["lease_namespace"] = given.pop("lock_object_namespace", "") or given["lease_namespace"]
    sizes = ("minimum_feasible_nodes", "minimum_percentage_nodes_to_find", "percentage_nodes_to_find")
    given["sample_size"] = SampleSize(*(given.pop(name) for name in sizes))
    given["feature_gates"] = parse_gates(given["feature_gates"])
    given["node_selector"] = tuple(part for entry in given["node_selector"] for part in entry.split(","))
    given["ignored_provisioners"] = tuple(p for entry in given["ignored_provisioners"] for p in entry.split(",") if p)
    for name in ("master", "kubeconfig"):
        given[name] = given[name] or ""
    if given["schedule_period"] <= 0:
        raise click.BadParameter("--schedule-period must be longer than 0")
    if given["leader_elect"] and not given["lease_duration"] > given["renew_deadline"] > 1.2 * given["retry_period"]:
        raise click.BadParameter("leader election needs lease duration > renew deadline > 1.2 x retry period")
    _check_shadow(given)
    for name in ("scheduler_conf", "config", "plugins_dir"):
        given[name] = os.path.expanduser(given[name])
    given["scheduler_configmap"] = _configmap(given["scheduler_configmap"])
    if given["scheduler_configmap"] and given["scheduler_conf"]:
        raise click.BadParameter("--scheduler-conf and --scheduler-configmap are both set; use one of them")
    known = {entry.name for entry in fields(Options)}
    return Options(**{key: value for key, value in given.items() if key in known}, ignored=ignored)


def _check_shadow(given: dict[str, Any]) -> None:
    """Raises click.BadParameter for what shadow mode does not go with."""
    if not given["shadow"]:
        return
    other = {"config": "--config", "record": "--record"}
    used = [flag for name, flag in other.items() if given[name]]
    if given["sharding_mode"] != "none":
        used.append("--scheduler-sharding-mode")
    if used:
        raise click.BadParameter(f"--shadow does not go with {used[0]}; leave one of them out")
    if given["shadow_settle"] <= 0:
        raise click.BadParameter("--shadow-settle must be longer than 0")


def _configmap(text: str) -> tuple[str, str, str] | None:
    """Namespace, name and key of `--scheduler-configmap`, None when it is not given. Raises click.BadParameter."""
    namespace, _, rest = text.partition("/")
    name, slash, key = rest.partition("/")
    if text and (not namespace or not name or "/" in key or (slash and not key)):
        raise click.BadParameter(
            f"--scheduler-configmap is {text!r}; use NAMESPACE/NAME, e.g. volcano-system/volcano-scheduler-configmap"
        )
    return (namespace, name, key or CONFIGURATION_KEY) if text else None
