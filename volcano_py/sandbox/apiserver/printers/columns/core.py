"""Columns of the core kinds other than pods and nodes, and of leases, priority classes, RBAC and storage.

Kubernetes: pkg/printers/internalversion.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.printers.cells import AGE, NAME, Column, Printer, age, since

Object = dict[str, Any]


def name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def pairs(labels: Object | None, empty: str = "<none>") -> str:
    """`a=b,c=d`, sorted."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or empty


def _service(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    kind = spec.get("type", "ClusterIP")
    external = ",".join(spec.get("externalIPs") or [])
    if kind == "LoadBalancer":
        ingress = (status.get("loadBalancer") or {}).get("ingress") or []
        external = (
            ",".join(filter(None, [i.get("ip") or i.get("hostname") for i in ingress])) or external or "<pending>"
        )
    elif kind == "ExternalName":
        external = spec.get("externalName", "")
    ports = []
    for port in spec.get("ports") or []:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port['port']}{node}/{port.get('protocol', 'TCP')}")
    return [
        name(obj),
        kind,
        spec.get("clusterIP") or "<none>",
        external or "<none>",
        ",".join(ports) or "<none>",
        age(obj),
        pairs(spec.get("selector")),
    ]


def _event(obj: Object) -> list[Any]:
    target = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    count = obj.get("count") or obj.get("deprecatedCount") or 0
    series = obj.get("series")
    if series:
        last, count = series.get("lastObservedTime") or last, series.get("count") or count
    elif not count:
        count = 1 if not (obj.get("count") or obj.get("deprecatedCount")) else count
    last = last or first
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    host = source.get("host") or obj.get("reportingInstance") or ""
    where = ", ".join(filter(None, [component, host]))
    thing = (
        f"{target.get('kind', '').lower()}/{target.get('name', '')}"
        if target.get("name")
        else target.get("kind", "").lower()
    )
    message = (obj.get("message") or obj.get("note") or "").strip()
    return [
        since(last) if last else "<unknown>",
        obj.get("type", ""),
        obj.get("reason", ""),
        thing,
        target.get("fieldPath", ""),
        where,
        message,
        since(first) if first else "<unknown>",
        count,
        name(obj),
    ]


def _pvc(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    capacity = modes = ""
    if spec.get("volumeName"):
        modes = access_modes(status.get("accessModes"))
        capacity = (status.get("capacity") or {}).get("storage", "")
    return [
        name(obj),
        phase,
        spec.get("volumeName", ""),
        capacity,
        modes,
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj),
        spec.get("volumeMode", "<unset>"),
    ]


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def access_modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or []))


def _pv(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    claim = spec.get("claimRef")
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        name(obj),
        (spec.get("capacity") or {}).get("storage", ""),
        access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        age(obj),
        spec.get("volumeMode", "<unset>"),
    ]


def _quota(obj: Object) -> list[Any]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for key in sorted(hard):
        text = f"{key}: {used.get(key, '0')}/{hard[key]}"
        (limits if key.startswith("limits.") else requests).append(text)
    return [name(obj), ", ".join(requests), ", ".join(limits), age(obj)]


def _role_binding(obj: Object) -> list[Any]:
    subjects = obj.get("subjects") or []

    def of(kind: str) -> str:
        return ", ".join(
            f"{s['namespace']}/{s['name']}" if kind == "ServiceAccount" else s["name"]
            for s in subjects
            if s.get("kind") == kind
        )

    role = obj["roleRef"]
    return [
        name(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(obj),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ]


def _pdb(obj: Object) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}

    def shown(value: Any) -> str:
        return "N/A" if value is None else str(value)

    return [
        name(obj),
        shown(spec.get("minAvailable")),
        shown(spec.get("maxUnavailable")),
        status.get("disruptionsAllowed", 0),
        age(obj),
    ]


def _storage_class(obj: Object) -> list[Any]:
    meta = obj["metadata"]
    default = (meta.get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class") == "true"
    return [
        meta["name"] + (" (default)" if default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj),
    ]


_BINDING_COLUMNS = (
    NAME,
    Column("Role"),
    AGE,
    Column("Users", priority=1),
    Column("Groups", priority=1),
    Column("ServiceAccounts", priority=1),
)
_EVENTS = Printer(
    (
        Column("Last Seen"),
        Column("Type"),
        Column("Reason"),
        Column("Object"),
        Column("Subobject", priority=1),
        Column("Source", priority=1),
        Column("Message"),
        Column("First Seen", priority=1),
        Column("Count", priority=1),
        Column("Name", priority=1, format="name"),
    ),
    _event,
)

PRINTERS = {
    "namespaces": Printer(
        (NAME, Column("Status"), AGE),
        lambda o: [name(o), (o.get("status") or {}).get("phase", ""), age(o)],
    ),
    "configmaps": Printer(
        (NAME, Column("Data"), AGE),
        lambda o: [name(o), len(o.get("data") or {}) + len(o.get("binaryData") or {}), age(o)],
    ),
    "secrets": Printer(
        (NAME, Column("Type"), Column("Data"), AGE),
        lambda o: [name(o), o.get("type", ""), len(o.get("data") or {}), age(o)],
    ),
    "services": Printer(
        (
            NAME,
            Column("Type"),
            Column("Cluster-IP"),
            Column("External-IP"),
            Column("Port(s)"),
            AGE,
            Column("Selector", priority=1),
        ),
        _service,
    ),
    "serviceaccounts": Printer((NAME, AGE), lambda o: [name(o), age(o)]),
    "events": _EVENTS,
    "events.events.k8s.io": _EVENTS,
    "persistentvolumeclaims": Printer(
        (
            NAME,
            Column("Status"),
            Column("Volume"),
            Column("Capacity"),
            Column("Access Modes"),
            Column("StorageClass"),
            Column("VolumeAttributesClass"),
            AGE,
            Column("VolumeMode", priority=1),
        ),
        _pvc,
    ),
    "persistentvolumes": Printer(
        (
            NAME,
            Column("Capacity"),
            Column("Access Modes"),
            Column("Reclaim Policy"),
            Column("Status"),
            Column("Claim"),
            Column("StorageClass"),
            Column("VolumeAttributesClass"),
            Column("Reason"),
            AGE,
            Column("VolumeMode", priority=1),
        ),
        _pv,
    ),
    "resourcequotas": Printer((NAME, Column("Request"), Column("Limit"), AGE), _quota),
    "leases.coordination.k8s.io": Printer(
        (NAME, Column("Holder"), AGE),
        lambda o: [name(o), (o.get("spec") or {}).get("holderIdentity") or "", age(o)],
    ),
    "priorityclasses.scheduling.k8s.io": Printer(
        (NAME, Column("Value", "integer"), Column("Global-Default", "boolean"), AGE, Column("PreemptionPolicy")),
        lambda o: [
            name(o),
            o.get("value", 0),
            bool(o.get("globalDefault")),
            age(o),
            o.get("preemptionPolicy", ""),
        ],
    ),
    "rolebindings.rbac.authorization.k8s.io": Printer(_BINDING_COLUMNS, _role_binding),
    "clusterrolebindings.rbac.authorization.k8s.io": Printer(_BINDING_COLUMNS, _role_binding),
    "poddisruptionbudgets.policy": Printer(
        (
            NAME,
            Column("Min Available"),
            Column("Max Unavailable"),
            Column("Allowed Disruptions"),
            AGE,
        ),
        _pdb,
    ),
    "storageclasses.storage.k8s.io": Printer(
        (
            NAME,
            Column("Provisioner"),
            Column("ReclaimPolicy"),
            Column("VolumeBindingMode"),
            Column("AllowVolumeExpansion"),
            AGE,
        ),
        _storage_class,
    ),
}
