"""Columns of pods and nodes. Kubernetes: pkg/printers/internalversion."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.printers.cells import AGE, NAME, Column, Printer, age, since
from volcano_py.sandbox.apiserver.schema import codec

Object = dict[str, Any]


def _pod_cells(pod: Object) -> list[Any]:
    spec, status, meta = pod["spec"], pod.get("status") or {}, pod["metadata"]
    restarts, ready, total = 0, 0, len(spec.get("containers") or [])
    last_restart = ""
    reason = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    sidecars = {c["name"] for c in spec.get("initContainers") or [] if c.get("restartPolicy") == "Always"}
    total += len(sidecars)
    initializing = False
    for index, container in enumerate(status.get("initContainerStatuses") or []):
        restarts += container["restartCount"]
        last_restart = max(last_restart, _finished(container))
        state = container.get("state") or {}
        if container["name"] in sidecars:
            ready += bool(container.get("ready"))
            if container.get("started"):
                continue
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if terminated and terminated.get("exitCode") == 0:
            continue
        if terminated:
            if terminated.get("reason"):
                reason = "Init:" + terminated["reason"]
            elif terminated.get("signal"):
                reason = f"Init:Signal:{terminated['signal']}"
            else:
                reason = f"Init:ExitCode:{terminated.get('exitCode', 0)}"
        elif waiting and waiting.get("reason") and waiting["reason"] != "PodInitializing":
            reason = "Init:" + waiting["reason"]
        else:
            reason = f"Init:{index}/{len(spec.get('initContainers') or [])}"
        initializing = True
        break
    if not initializing or _condition(status, "Initialized"):
        restarts = sum(c["restartCount"] for c in status.get("initContainerStatuses") or [] if c["name"] in sidecars)
        running = False
        for container in reversed(status.get("containerStatuses") or []):
            restarts += container["restartCount"]
            last_restart = max(last_restart, _finished(container))
            state = container.get("state") or {}
            waiting, terminated = state.get("waiting"), state.get("terminated")
            if waiting and waiting.get("reason"):
                reason = waiting["reason"]
            elif terminated and terminated.get("reason"):
                reason = terminated["reason"]
            elif terminated:
                signal = terminated.get("signal")
                reason = f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"
            elif container.get("ready") and state.get("running") is not None:
                running = True
                ready += 1
        if reason == "Completed" and running:
            reason = "Running" if _condition(status, "Ready") else "NotReady"
    if meta.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    restarted = f"{restarts} ({since(last_restart)} ago)" if restarts and last_restart else str(restarts)
    gates = spec.get("readinessGates") or []
    passed = sum(1 for gate in gates if _condition(status, gate["conditionType"]))
    ips = status.get("podIPs") or []
    return [
        meta["name"],
        f"{ready}/{total}",
        reason,
        restarted,
        age(pod),
        ips[0]["ip"] if ips else status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        f"{passed}/{len(gates)}" if gates else "<none>",
    ]


def _finished(container: Object) -> str:
    terminated = (container.get("lastState") or {}).get("terminated") or {}
    stamp = terminated.get("finishedAt") or ""
    try:
        return stamp if stamp and codec.parse_time(stamp) else ""
    except codec.DecodeError:
        return ""


def _condition(status: Object, type_: str) -> bool:
    return any(c["type"] == type_ and c["status"] == "True" for c in status.get("conditions") or [])


def _pod_conditions(pod: Object) -> list[Object] | None:
    phase = (pod.get("status") or {}).get("phase")
    if phase == "Succeeded":
        message = "The pod has completed successfully."
    elif phase == "Failed":
        message = "The pod failed."
    else:
        return None
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _node_cells(node: Object) -> list[Any]:
    meta, status, spec = node["metadata"], node.get("status") or {}, node.get("spec") or {}
    words = []
    ready = next((c for c in status.get("conditions") or [] if c["type"] == "Ready"), None)
    if ready is None:
        words.append("Unknown")
    else:
        words.append("Ready" if ready["status"] == "True" else "NotReady")
    if spec.get("unschedulable"):
        words.append("SchedulingDisabled")
    roles = set()
    for key, value in (meta.get("labels") or {}).items():
        if key.startswith("node-role.kubernetes.io/") and key != "node-role.kubernetes.io/":
            roles.add(key.removeprefix("node-role.kubernetes.io/"))
        elif key == "kubernetes.io/role" and value:
            roles.add(value)
    info = status.get("nodeInfo") or {}
    addresses = {a["type"]: a["address"] for a in reversed(status.get("addresses") or [])}
    kernel = info.get("kernelVersion") or "<unknown>"
    if info.get("architecture") and info.get("kernelVersion"):
        kernel += f" ({info['architecture']})"
    return [
        meta["name"],
        ",".join(words),
        ",".join(sorted(roles)) or "<none>",
        age(node),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


PRINTERS = {
    "pods": Printer(
        (
            NAME,
            Column("Ready"),
            Column("Status"),
            Column("Restarts"),
            AGE,
            Column("IP", priority=1),
            Column("Node", priority=1),
            Column("Nominated Node", priority=1),
            Column("Readiness Gates", priority=1),
        ),
        _pod_cells,
        _pod_conditions,
    ),
    "nodes": Printer(
        (
            NAME,
            Column("Status"),
            Column("Roles"),
            AGE,
            Column("Version"),
            Column("Internal-IP", priority=1),
            Column("External-IP", priority=1),
            Column("OS-Image", priority=1),
            Column("Kernel-Version", priority=1),
            Column("Container-Runtime", priority=1),
        ),
        _node_cells,
    ),
}
