"""What the scheduler is started with, as data; `command` reads it from the command line."""

from __future__ import annotations

from dataclasses import dataclass, field

from volcano_py.scheduler.model.nodes.sample_size import DEFAULT_SAMPLE, SampleSize

PERIOD = 30.0
"""Of the cache audit."""
CONFIGURATION_KEY = "volcano-scheduler.conf"
"""The key of the configuration in a ConfigMap, as Volcano's chart has it."""


@dataclass(frozen=True)
class Options:
    """The scheduler's options. Times in seconds."""

    master: str = ""
    kubeconfig: str = ""
    scheduler_names: tuple[str, ...] = ("volcano",)
    scheduler_conf: str = ""
    scheduler_configmap: tuple[str, str, str] | None = None
    """Namespace, name and key."""
    strict_config: bool = True
    disable_default_scheduler_config: bool = False
    config: str = ""
    """File with a KubeSchedulerConfiguration: the profiles that schedule pod by pod."""
    schedule_period: float = 1.0
    idle_period: float = 60.0
    cycle_budget: int = 0
    default_queue: str = "default"
    kube_api_qps: float = 2000.0
    kube_api_burst: int = 2000
    listen_address: str = ":8080"
    healthz_address: str = ":11251"
    enable_metrics: bool = False
    enable_healthz: bool = False
    enable_pprof: bool = False
    ca_cert_file: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    node_selector: tuple[str, ...] = ()
    plugins_dir: str = ""
    cache_dumper: bool = True
    cache_dump_dir: str = "/tmp"
    record: str = ""
    """Folder for recent cycles; empty: none are recorded."""
    record_limit: int = 256
    """Megabytes in that folder."""
    otlp_endpoint: str = ""
    """Address of an OpenTelemetry collector that receives a trace of each job; empty: none is sent."""
    verify_incremental: bool = False
    """Compare incremental state with state built from scratch in every cycle, and report differences as faults."""
    cache_audit_period: float = PERIOD
    """Seconds between two comparisons of the cache with the API server; 0: none."""
    cycle_deadline: float = 40.0
    """Limit of a cycle, which is then ended; 0: none."""
    plugin_deadline: float = 10.0
    """Limit of one call of a plugin, and of all its calls in a cycle; 0: none."""
    shadow: bool = False
    """Decide beside a live scheduler, and write nothing."""
    shadow_settle: float = 3.0
    """Seconds without an event after which the comparison takes a decision as complete."""
    ignored_provisioners: tuple[str, ...] = ()
    """In addition to those that always are."""
    priority_class: bool = True
    feature_gates: dict[str, bool] = field(default_factory=dict)
    kubernetes_version: str = ""
    """Profiles decide as kube-scheduler of this version; empty: that of the cluster."""
    sample_size: SampleSize = DEFAULT_SAMPLE
    sharding_mode: str = "none"
    sharding_name: str = "volcano"
    leader_elect: bool = True
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    lease_name: str = "volcano"
    lease_namespace: str = "volcano-system"
    heartbeat_timeout: float = 60.0
    seed: int = 0
    log_level: str = "INFO"
    given: frozenset[str] = frozenset()
    """Names of the options that were given; the others may come from the file `config`."""
    ignored: tuple[str, ...] = ()
    """Flags that were given and have no effect."""

    @property
    def component(self) -> str:
        """The source of Events: the scheduler's name when there is exactly one."""
        return self.scheduler_names[0] if len(self.scheduler_names) == 1 else "volcano"
