"""The controllers of a sandbox, and their time limits. Kubernetes: kube-controller-manager."""

from __future__ import annotations

from dataclasses import dataclass

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.controllers.apps import daemonset, deployment, replicaset, statefulset
from volcano_py.sandbox.controllers.batch import job, ttl_after_finished
from volcano_py.sandbox.controllers.core import (
    garbage_collector,
    namespace,
    pod_gc,
    resource_quota,
    service_account,
    service_account_token,
)
from volcano_py.sandbox.controllers.node import node_lifecycle, taint_eviction
from volcano_py.sandbox.controllers.policy import disruption
from volcano_py.sandbox.controllers.resource import (
    device_driver,
    group_protection,
    npu_device_plugin,
    numa_exporter,
    resource_claim,
)
from volcano_py.sandbox.controllers.runtime import runner
from volcano_py.sandbox.controllers.runtime.owners import Owners
from volcano_py.sandbox.controllers.runtime.pods import Pods
from volcano_py.sandbox.controllers.runtime.runner import Controller, Runner
from volcano_py.sandbox.controllers.storage import ephemeral_volume, persistent_volume, volume_protection


@dataclass(frozen=True, slots=True)
class Options:
    """workloads: whether other controllers than those of namespaces and garbage run. service_accounts: whether
    namespaces get a default one, and Secrets for them their tokens. All times are in seconds.

    job_backoff: before the first failed pod of a Job is replaced; doubles with every failure. node_grace: without
    a heartbeat, until the conditions of a node become Unknown. quarantine: between the deletion of a node and that of
    its pods.
    """

    workloads: bool = True
    service_accounts: bool = False
    job_backoff: float = 10.0
    node_grace: float = 50.0
    quarantine: float = 40.0


class ControllerManager:
    """The controllers of one API server, in its event loop."""

    def __init__(self, api: Api, options: Options, authority: bytes) -> None:
        self.api = api
        self.authority = authority
        self.options = options
        self.owners = Owners(api.store)
        self.pods = Pods(api.resource("", "pods").collection)
        self.runners: list[Runner] = []

    def start(self) -> None:
        self.owners.start()
        self.runners = runner.start(self._chosen(), self.api.store, self.owners)

    def stop(self) -> None:
        for running in self.runners:
            running.stop()
        self.owners.stop()
        self.pods.stop()

    def _chosen(self) -> list[Controller]:
        api, owners, pods = self.api, self.owners, self.pods
        chosen = [garbage_collector.controller(api, owners), namespace.controller(api)]
        if self.options.workloads:
            chosen += [
                resource_quota.controller(api),
                replicaset.controller(api, owners, pods),
                deployment.controller(api, owners, pods),
                statefulset.controller(api, owners, pods),
                daemonset.controller(api, owners, pods),
                job.controller(api, owners, pods, self.options.job_backoff),
                ttl_after_finished.controller(api),
                persistent_volume.controller(api),
                volume_protection.controller(api),
                ephemeral_volume.controller(api),
                npu_device_plugin.controller(api),
                numa_exporter.controller(api),
                disruption.controller(api, owners, pods),
                node_lifecycle.controller(api, pods, self.options.node_grace),
                taint_eviction.controller(api),
                pod_gc.controller(api, self.options.quarantine),
            ]
        if self.options.workloads and api.registry.find("resource.k8s.io", "resourceclaims") is not None:
            chosen += [resource_claim.controller(api), device_driver.controller(api)]
        if self.options.workloads and group_protection.is_served(api):
            chosen.append(group_protection.controller(api))
        if self.options.workloads and self.options.service_accounts:
            chosen.append(service_account.controller(api, self.authority))
            if "authenticator" in api.extensions:  # it signs the tokens
                chosen.append(service_account_token.controller(api, self.authority))
        return chosen
