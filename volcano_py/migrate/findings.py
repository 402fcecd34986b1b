"""The differences between Volcano and volcano_py for a cluster, and their remedies.

A finding blocks (the cluster uses a feature that does not exist here), changes (the feature behaves differently), or
is a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

from volcano_py.api.kinds import (
    CONFIGMAP,
    CUSTOMRESOURCEDEFINITION,
    DAEMONSET,
    DEPLOYMENT,
    HYPERNODE,
    JOB,
    JOBFLOW,
    MUTATINGWEBHOOKCONFIGURATION,
    NODE,
    OPTIONAL,
    QUEUE,
    VALIDATINGWEBHOOKCONFIGURATION,
    VOLCANO,
)
from volcano_py.api.node_patterns import Budget, InvalidPattern, TooCostly, quoted
from volcano_py.migrate.facts import Facts
from volcano_py.migrate.image import missing_image
from volcano_py.migrate.native_groups import native_findings
from volcano_py.scheduler.framework.config import Configuration, ConfigurationError, load
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.review.findings import argument_findings
from volcano_py.webhooks.job_plugins import known_plugins
from volcano_py.webhooks.paths import PATHS
from volcano_py.webhooks.registration import PREFIX

Manifest = dict[str, Any]
Weight = Literal["blocks", "changes", "note"]

OLDEST = (1, 31)
"""The oldest supported version of Kubernetes."""


@dataclass(frozen=True)
class Finding:
    """`what` contains the object and the difference, `remedy` the action to take."""

    weight: Weight
    what: str
    remedy: str


def findings(facts: Facts, registry: Registry, image: str = "") -> list[Finding]:
    """All findings, most important first. `image`: the one to install; empty: it is not looked for."""
    found = [
        *_version(facts),
        *_image(facts, image),
        *(Finding("note", f"not read: {text}", "run it as a user with permission to read it") for text in facts.unread),
        *_scheduler(facts, registry),
        *_components(facts),
        *_jobs(facts),
        *_webhooks(facts),
        *_crds(facts),
        *_topology(facts),
        *(Finding(weight, what, remedy) for weight, what, remedy in native_findings(facts.native)),
    ]
    order = ("blocks", "changes", "note")
    return sorted(dict.fromkeys(found), key=lambda finding: order.index(finding.weight))


def _counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _version(facts: Facts) -> Iterator[Finding]:
    match = re.match(r"v?(\d+)\.(\d+)", facts.version)
    if match and (int(match[1]), int(match[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        yield Finding("blocks", f"the API server is {facts.version}", f"upgrade Kubernetes to {oldest} or later")


def _image(facts: Facts, image: str) -> Iterator[Finding]:
    if image:
        for fails, what, remedy in missing_image(facts.of(NODE), image):
            yield Finding("blocks" if fails else "note", what, remedy)


def _scheduler(facts: Facts, registry: Registry) -> Iterator[Finding]:
    """The scheduler's configurations in the ConfigMaps of the installation."""
    for found in facts.of(CONFIGMAP):
        for key, text in (found.get("data") or {}).items():
            if not (key.startswith("volcano-scheduler") and key.endswith(".conf")):
                continue
            where = f"ConfigMap {found['metadata']['name']}, {key}"
            try:
                configuration = load(text, registry.actions)
            except ConfigurationError as error:
                yield Finding("blocks", f"{where}: {error}", "correct it, or remove the action")
                continue
            yield from _configuration(where, configuration, registry)


def _configuration(where: str, configuration: Configuration, registry: Registry) -> Iterator[Finding]:
    for option in (option for tier in configuration.tiers for option in tier):
        if option.name not in registry.plugins:
            remedy = "remove it, or write it in Python: docs/plugin-authors.md"
            yield Finding("blocks", f"{where}: plugin {option.name} does not exist", remedy)
    for warning in configuration.warnings:
        yield Finding("note", f"{where}: {warning}", "correct it")
    for problem in argument_findings(configuration, registry):
        what, _, remedy = problem.text.partition("; ")
        weight: Weight = "blocks" if problem.severity == "error" else "changes" if "is ignored: " in what else "note"
        yield Finding(weight, f"{where}: {what}", remedy or "correct it")
    on = [one.name for one in fields(configuration.deviations) if getattr(configuration.deviations, one.name)]
    if on:
        yield Finding(
            "changes",
            f"{where}: {len(on)} decisions differ where Volcano has a fault",
            "read docs/deviations.md; `deviations: parity` in the configuration turns them off",
        )


def _components(facts: Facts) -> Iterator[Finding]:
    for found in (*facts.of(DEPLOYMENT), *facts.of(DAEMONSET)):
        name = found["metadata"]["name"]
        for container in found["spec"]["template"]["spec"]["containers"]:
            image = container.get("image", "")
            arguments = container.get("args") or []
            if "vc-agent-scheduler" in image:
                remedy = "set schedulerName: volcano in its pods; custom.agent_scheduler_enable: false"
                yield Finding("blocks", f"{name} is the agent scheduler, which volcano_py does not have", remedy)
            elif "vc-agent" in image:
                remedy = "keep it in a separate release; custom.colocation_enable: false"
                yield Finding("changes", f"{name} is the node agent, which volcano_py does not have", remedy)
            if "vc-scheduler" in image:
                yield from _arguments(name, arguments)


def _arguments(name: str, arguments: list[str]) -> Iterator[Finding]:
    for argument in arguments:
        flag, _, value = argument.partition("=")
        if flag == "--plugins-dir" and value:
            yield Finding(
                "blocks",
                f"{name} loads plugins from {value}: compiled plugins (.so) cannot be loaded",
                "write them in Python: docs/plugin-authors.md",
            )
        if flag == "--leader-elect" and value == "false":
            yield Finding(
                "note",
                f"{name} runs without the Lease",
                "delete or scale it down before volcano_py starts; an upgrade of its helm release does that",
            )


def _jobs(facts: Facts) -> Iterator[Finding]:
    known = known_plugins()
    unknown: dict[str, list[str]] = {}
    for job in facts.of(JOB):
        key = f"{job['metadata'].get('namespace')}/{job['metadata']['name']}"
        for plugin in job["spec"].get("plugins") or {}:
            if plugin not in known:
                unknown.setdefault(plugin, []).append(key)
    for plugin, keys in sorted(unknown.items()):
        shown = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
        remedy = "register it as an entry point (CONTRIBUTING.md), or remove it from the Jobs"
        yield Finding("blocks", f"job plugin {plugin} of {shown} does not exist", remedy)
    with_ssh = [job for job in facts.of(JOB) if "ssh" in (job["spec"].get("plugins") or {})]
    if with_ssh:
        yield Finding(
            "changes",
            f"{_counted(len(with_ssh), 'Job uses', 'Jobs use')} the plugin ssh, for which the chart grants no access "
            "to Secrets by default",
            "install with --set custom.ssh_secrets_enable=true",
        )
    flows = [flow for flow in facts.of(JOBFLOW) if any("patch" in row for row in flow["spec"].get("flows") or ())]
    if flows:
        yield Finding(
            "changes",
            f"{_counted(len(flows), 'JobFlow has', 'JobFlows have')} a patch, which Volcano ignores and volcano_py "
            "applies",
            "check flows[].patch of each before new members start",
        )


def _webhooks(facts: Facts) -> Iterator[Finding]:
    known = {PREFIX + path.replace("/", "-") for path in PATHS}
    for rt in (MUTATINGWEBHOOKCONFIGURATION, VALIDATINGWEBHOOKCONFIGURATION):
        for found in facts.of(rt):
            name = found["metadata"]["name"]
            if name.startswith(PREFIX) and name not in known:
                remedy = "delete it, or remove its path from custom.enabled_admissions"
                yield Finding("blocks", f"{rt.kind} {name} is for a path that volcano_py does not have", remedy)


def _crds(facts: Facts) -> Iterator[Finding]:
    there = {crd["metadata"]["name"]: crd for crd in facts.of(CUSTOMRESOURCEDEFINITION)}
    ours = {f"{rt.plural}.{rt.group}" for rt in VOLCANO}
    missing = sorted(ours - there.keys())
    if missing:
        yield Finding(
            "note",
            f"{_counted(len(missing), 'CRD is', 'CRDs are')} not installed: {', '.join(missing)}",
            "the chart installs them",
        )
    for name in sorted(there.keys() - ours - {f"{rt.plural}.{rt.group}" for rt in OPTIONAL}):
        if name.endswith(".volcano.sh"):
            yield Finding("note", f"CRD {name} is not used by volcano_py", "its objects are not changed")


def _topology(facts: Facts) -> Iterator[Finding]:
    for found in facts.of(HYPERNODE):
        budget = Budget()
        for member in found["spec"].get("members") or ():
            pattern = ((member.get("selector") or {}).get("regexMatch") or {}).get("pattern")
            if not pattern:
                continue
            try:
                budget.use(pattern)
            except TooCostly as error:
                yield Finding("blocks", f"HyperNode {found['metadata']['name']} {error}", "see docs/limits.md")
                break
            except InvalidPattern as error:
                what = f"HyperNode {found['metadata']['name']}: pattern {quoted(pattern)} is not RE2: {error}"
                yield Finding("blocks", what, "use RE2 syntax")
    deep = [queue["metadata"]["name"] for queue in facts.of(QUEUE) if (queue["spec"].get("parent") or "root") != "root"]
    if deep:
        yield Finding(
            "changes",
            f"{_counted(len(deep), 'queue has', 'queues have')} a parent; one whose parent is invalid is placed below "
            "root here",
            "see partial_hierarchy in docs/deviations.md",
        )
