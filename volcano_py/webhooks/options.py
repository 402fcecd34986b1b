"""Flags of the webhook manager: Volcano's flags with their names and defaults, and additional ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches

from volcano_py.webhooks.paths import PATHS
from volcano_py.webhooks.pods import QUEUE_GATE
from volcano_py.webhooks.queues import MAX_DEPTH
from volcano_py.webhooks.server import MOST_BYTES

DEFAULT_PATHS = (
    "/jobs/mutate",
    "/jobs/validate",
    "/queues/mutate",
    "/queues/validate",
    "/podgroups/validate",
    "/hypernodes/validate",
    "/cronjobs/validate",
    "/jobflows/validate",
    "/commands/mutate",
)
"""The paths that Volcano's chart enables, /jobflows/validate and /commands/mutate. None of them handles pods."""


@dataclass(frozen=True)
class Options:
    """Values of the command line flags. Times in seconds."""

    kubeconfig: str = ""
    master: str = ""
    listen_address: str = ""
    port: int = 8443
    kube_api_qps: float = 50.0
    kube_api_burst: int = 100
    ca_cert_file: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    cert_secret: str = ""
    webhook_namespace: str = ""
    webhook_service_name: str = ""
    webhook_url: str = ""
    register: bool = False
    enabled_admission: tuple[str, ...] = DEFAULT_PATHS
    scheduler_names: tuple[str, ...] = ("volcano",)
    admission_conf: str = ""
    enable_healthz: bool = False
    healthz_address: str = ":11251"
    enable_metrics: bool = False
    metrics_address: str = ":8080"
    graceful_shutdown_time: float = 30.0
    enable_queue_allocated_pods_check: bool = False
    max_queue_depth: int = MAX_DEPTH
    enable_root_queue_protection: bool = True
    max_request_bytes: int = MOST_BYTES
    feature_gates: dict[str, bool] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names of the webhook server; the first is the common name of the certificate."""
        if self.webhook_url:
            from urllib.parse import urlsplit

            return (urlsplit(self.webhook_url).hostname or "localhost",)
        name, namespace = self.webhook_service_name, self.webhook_namespace
        return (f"{name}.{namespace}.svc", f"{name}.{namespace}", name, f"{name}.{namespace}.svc.cluster.local")


def check(options: Options) -> None:
    """Raises ValueError for invalid flags and invalid combinations of flags."""
    for path in options.enabled_admission:
        if path not in PATHS:
            near = get_close_matches(path, PATHS, 1)
            hint = f"did you mean {near[0]}?" if near else f"valid paths are {', '.join(PATHS)}"
            raise ValueError(f"--enabled-admission: unknown path {path}; {hint}")
    if not 1 <= options.port <= 65535:
        raise ValueError(f"--port: must be between 1 and 65535, got {options.port}")
    if not (options.webhook_url or options.webhook_service_name or options.webhook_namespace):
        raise ValueError("set --webhook-url, or --webhook-namespace and --webhook-service-name: the webhooks' address")
    if options.webhook_url and not options.webhook_url.startswith("https://"):
        raise ValueError(f"--webhook-url: must start with https://, got {options.webhook_url}")
    files = {
        "--ca-cert-file": options.ca_cert_file,
        "--tls-cert-file": options.tls_cert_file,
        "--tls-private-key-file": options.tls_private_key_file,
    }
    lacking = [flag for flag, value in files.items() if not value]
    if 0 < len(lacking) < len(files):
        raise ValueError(
            f"{' and '.join(lacking)} must be set, too; omit all three flags to have a certificate issued automatically"
        )
    if lacking and not options.webhook_url and not (options.webhook_namespace and options.webhook_service_name):
        raise ValueError("set --webhook-service-name and --webhook-namespace: the certificate is issued for them")


def warnings_about(options: Options) -> list[str]:
    """Warnings about valid options that have no effect, each with the remedy."""
    found = []
    pods = "/pods/mutate" in options.enabled_admission
    if options.feature_gates.get(QUEUE_GATE) and not (pods and options.admission_conf):
        missing = "--enabled-admission with /pods/mutate" if not pods else "--admission-conf; the file may be empty"
        found.append(f"--feature-gates: {QUEUE_GATE}=true has no effect on pods: add {missing}")
    return found
