"""What of the pod templates of a changed Job CEL can compare: fields by name, with absent and empty made the same.

/jobs/validate compares whole templates, of which empty values were taken out at any depth. CEL has no recursion: the
fields are listed here. Not compared are affinity, probes, lifecycle hooks, ephemeral sources of volumes, and what
Kubernetes adds later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

TEXT, NUMBER, FALSE, LIST = "''", "0", "false", "[]"
"""The empty value of a field, with which its absence is equal."""

_POD = {
    **dict.fromkeys(("serviceAccountName", "serviceAccount", "restartPolicy", "schedulerName", "nodeName"), TEXT),
    **dict.fromkeys(("priorityClassName", "runtimeClassName", "preemptionPolicy", "dnsPolicy"), TEXT),
    **dict.fromkeys(("hostname", "subdomain", "os.?name", "securityContext.?seccompProfile.?type"), TEXT),
    **dict.fromkeys(("hostNetwork", "hostPID", "hostIPC"), FALSE),
    **dict.fromkeys(("activeDeadlineSeconds",), NUMBER),
    **dict.fromkeys(("securityContext.?supplementalGroups", "dnsConfig.?nameservers", "dnsConfig.?searches"), LIST),
}
_POD_POINTERS = (
    *("terminationGracePeriodSeconds", "automountServiceAccountToken", "enableServiceLinks", "shareProcessNamespace"),
    *("hostUsers", "securityContext.?runAsUser", "securityContext.?runAsGroup", "securityContext.?runAsNonRoot"),
    "securityContext.?fsGroup",
)
_LISTS: Mapping[str, Mapping[str, str]] = {
    "volumes": {
        **dict.fromkeys(("name", "configMap.?name", "secret.?secretName", "persistentVolumeClaim.?claimName"), TEXT),
        **dict.fromkeys(("hostPath.?path", "nfs.?server", "nfs.?path", "csi.?driver", "emptyDir.?medium"), TEXT),
    },
    "tolerations": dict.fromkeys(("key", "operator", "value", "effect"), TEXT),
    "topologySpreadConstraints": {"topologyKey": TEXT, "whenUnsatisfiable": TEXT, "maxSkew": NUMBER},
    "schedulingGates": {"name": TEXT},
    "imagePullSecrets": {"name": TEXT},
    "resourceClaims": dict.fromkeys(("name", "resourceClaimName", "resourceClaimTemplateName"), TEXT),
    "hostAliases": {"ip": TEXT, "hostnames": LIST},
}
"""Lists of a pod, and the fields of their items."""

_CONTAINER = {
    **dict.fromkeys(("name", "image", "workingDir", "imagePullPolicy", "restartPolicy"), TEXT),
    **dict.fromkeys(
        ("command", "args", "securityContext.?capabilities.?add", "securityContext.?capabilities.?drop"), LIST
    ),
    **dict.fromkeys(("stdin", "stdinOnce", "tty"), FALSE),
}
_CONTAINER_POINTERS = tuple(
    f"securityContext.?{name}"
    for name in (
        *("privileged", "runAsUser", "runAsGroup", "runAsNonRoot"),
        *("allowPrivilegeEscalation", "readOnlyRootFilesystem"),
    )
)
_CONTAINER_LISTS: Mapping[str, Mapping[str, str]] = {
    "env": {
        **dict.fromkeys(("name", "value", "valueFrom.?fieldRef.?fieldPath", "valueFrom.?secretKeyRef.?name"), TEXT),
        **dict.fromkeys(("valueFrom.?secretKeyRef.?key", "valueFrom.?configMapKeyRef.?name"), TEXT),
        **dict.fromkeys(("valueFrom.?configMapKeyRef.?key", "valueFrom.?resourceFieldRef.?resource"), TEXT),
    },
    "envFrom": dict.fromkeys(("prefix", "configMapRef.?name", "secretRef.?name"), TEXT),
    "ports": {"name": TEXT, "containerPort": NUMBER, "hostPort": NUMBER, "protocol": TEXT, "hostIP": TEXT},
    "volumeMounts": {"name": TEXT, "mountPath": TEXT, "subPath": TEXT, "subPathExpr": TEXT, "readOnly": FALSE},
}
_CONTAINERS = ("containers", "initContainers")


def same_pods(new: str, old: str) -> str:
    """An expression: two pod templates are the same but for their containers, as far as CEL can compare them."""
    a, b = f"{new}.?spec", f"{old}.?spec"
    parts = [f"{a}.?{name}.orValue({empty}) == {b}.?{name}.orValue({empty})" for name, empty in _POD.items()]
    parts += [f"{_pointer(f'{a}.?{name}')} == {_pointer(f'{b}.?{name}')}" for name in _POD_POINTERS]
    for name, fields in _LISTS.items():
        parts += _same_items(f"{a}.?{name}.orValue([])", f"{b}.?{name}.orValue([])", fields)
    for path in ("?spec.?nodeSelector", "?metadata.?labels", "?metadata.?annotations"):
        parts.append(_same_map(f"{new}.{path}.orValue({{}})", f"{old}.{path}.orValue({{}})"))
    return _cheaply(new, old, parts)


def same_containers(new: str, old: str) -> str:
    """An expression: the containers of two pod templates are the same, as far as CEL can compare them."""
    parts: list[str] = []
    for kind in _CONTAINERS:
        a, b = f"{new}.?spec.?{kind}.orValue([])", f"{old}.?spec.?{kind}.orValue([])"
        parts += _same_items(a, b, _CONTAINER)
        parts += [
            f"{a}.map(c, {_pointer(f'c.?{f}')}) == {b}.map(c, {_pointer(f'c.?{f}')})" for f in _CONTAINER_POINTERS
        ]
        for name, fields in _CONTAINER_LISTS.items():
            for leaf, empty in fields.items():
                each = f"c.?{name}.orValue([]).map(e, e.?{leaf}.orValue({empty}))"
                parts.append(f"{a}.map(c, {each}) == {b}.map(c, {each})")
        maps = (
            _same_map(f"c.?resources.?{name}.orValue({{}})", f"d.?resources.?{name}.orValue({{}})")
            for name in ("requests", "limits")
        )
        same = " && ".join(maps)
        parts.append(f"{a}.all(c, {b}.exists(d, d.?name.orValue('') == c.?name.orValue('') && {same}))")
    return _cheaply(new, old, parts)


def _cheaply(new: str, old: str, parts: Iterable[str]) -> str:
    """Equal values need no comparison by field: a large Job would exceed the cost that the API server allows."""
    return f"({new} == {old} || ({' && '.join(parts)}))"


def _same_items(a: str, b: str, fields: Mapping[str, str]) -> Iterable[str]:
    return [
        f"{a}.map(i, i.?{f}.orValue({empty})) == {b}.map(i, i.?{f}.orValue({empty}))" for f, empty in fields.items()
    ]


def _pointer(path: str) -> str:
    """A field of which zero and false are not the same as its absence, as a text."""
    return f"({path}.hasValue() ? string({path}.value()) : '')"


def _same_map(a: str, b: str) -> str:
    """Maps of texts and quantities; an empty value is the same as none."""
    return (
        f"{a}.all(k, k in {b} ? {a}[k] == {b}[k] : string({a}[k]) in ['', '0']) && "
        f"{b}.all(k, k in {a} || string({b}[k]) in ['', '0'])"
    )
