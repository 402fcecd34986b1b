"""The version of the cluster, whose kube-scheduler profiles follow unless `--kubernetes-version` names another."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

from volcano_py.kube import Client, KubeError
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.pods.document import with_file
from volcano_py.scheduler.profiles.release import DEFAULT, release_of

log = logging.getLogger(__name__)

LONGEST = 5.0
"""Seconds to wait for the API server: the scheduler also starts while there is none."""


async def with_cluster_version(options: Options) -> Options:
    """The options with the version of the cluster, where they have profiles and name no version.

    Raises ConfigurationError for a file of `--config` that cannot be read.
    """
    if not options.config or options.kubernetes_version:
        return options
    connection = with_file(options)
    try:
        async with Client.for_flags(
            connection.kubeconfig, connection.master, user_agent="volcano-py/scheduler", timeout=LONGEST
        ) as client:
            found = str(json.loads(await client.raw("GET", "/version", retries=0))["gitVersion"])
        release = release_of(found)
    except (KubeError, OSError, ValueError, KeyError, TypeError) as error:
        log.warning(
            "the cluster's version cannot be read (%s): profiles decide as kube-scheduler %s; "
            "set --kubernetes-version to choose another version",
            error,
            DEFAULT.name,
        )
        return replace(options, kubernetes_version=DEFAULT.name)
    log.info("the cluster is Kubernetes %s: profiles decide as kube-scheduler %s", found, release.name)
    return replace(options, kubernetes_version=release.name)
