"""Defaults of pod specs, for pods and all kinds with a pod template. Kubernetes: core/v1 defaults."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def default_pod_spec(spec: Object) -> None:
    """Set the server's defaults, in place."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    host_network = spec.get("hostNetwork", False)
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(key) or ():
            default_container(container)
            if host_network and key != "ephemeralContainers":
                for port in container.get("ports") or ():
                    port.setdefault("hostPort", port.get("containerPort", 0))
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    for constraint in spec.get("topologySpreadConstraints") or ():
        constraint.setdefault("whenUnsatisfiable", "DoNotSchedule") if not constraint.get("whenUnsatisfiable") else None


def default_container(container: Object) -> None:
    image = container.get("image", "")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = "Always" if _latest(image) else "IfNotPresent"
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.get("resources")
    if resources:
        limits = resources.get("limits")
        if limits:
            requests = resources.setdefault("requests", {})
            for name, value in limits.items():
                requests.setdefault(name, value)
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
        field = (variable.get("valueFrom") or {}).get("resourceFieldRef")
        if field is not None and not field.get("divisor"):
            field["divisor"] = "0"
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            default_probe(probe)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and hook.get("httpGet") is not None:
            default_http(hook["httpGet"])


def _latest(image: str) -> bool:
    """Whether an image has no tag, or the tag latest."""
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")


def default_probe(probe: Object) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(key):
            probe[key] = value
    if probe.get("httpGet") is not None:
        default_http(probe["httpGet"])
    if probe.get("grpc") is not None:
        probe["grpc"].setdefault("service", "")


def default_http(action: Object) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


_SOURCES_WITH_MODE = {"configMap": 420, "secret": 420, "downwardAPI": 420, "projected": 420}


def default_volume(volume: Object) -> None:
    if len(volume) == 1:  # a name and no source
        volume["emptyDir"] = {}
        return
    for source, mode in _SOURCES_WITH_MODE.items():
        if volume.get(source) is not None:
            volume[source].setdefault("defaultMode", mode)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    if volume.get("iscsi") is not None:
        volume["iscsi"].setdefault("iscsiInterface", "default")
    for items in (((volume.get("downwardAPI") or {}).get("items") or ()),):
        for item in items:
            if item.get("fieldRef") is not None:
                item["fieldRef"].setdefault("apiVersion", "v1")
    for source in (volume.get("projected") or {}).get("sources") or ():
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            if item.get("fieldRef") is not None:
                item["fieldRef"].setdefault("apiVersion", "v1")
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if claim is not None:
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def default_template(template: Object) -> None:
    """The pod template of a workload."""
    spec = template.get("spec")
    if spec is not None:
        default_pod_spec(spec)
