"""The comparison of pod templates of an updated Job in CEL: fields by name; absent and empty values are equal.

/jobs/validate compares whole templates after removing empty values at any depth. CEL has no recursion, so the fields
are listed here. Not compared: affinity, probes, lifecycle hooks, ephemeral volume sources, and fields that later
versions of Kubernetes add.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from volcano_py.webhooks.job_defaults import HOST_NETWORK_DNS

TEXT, NUMBER, FALSE, LIST = "''", "0", "false", "[]"
"""The empty value of a field; an absent field is equal to it."""

_POD = {
    **dict.fromkeys(("serviceAccountName", "serviceAccount", "restartPolicy", "schedulerName", "nodeName"), TEXT),
    **dict.fromkeys(("priorityClassName", "runtimeClassName", "preemptionPolicy"), TEXT),
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
"""Lists in a pod spec, and the fields of their items."""

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
    """An expression: two pod templates are equal except for their containers, as far as CEL can compare them."""
    a, b = f"{new}.?spec", f"{old}.?spec"
    parts = [f"{a}.?{name}.orValue({empty}) == {b}.?{name}.orValue({empty})" for name, empty in _POD.items()]
    parts += [f"{_pointer(f'{a}.?{name}')} == {_pointer(f'{b}.?{name}')}" for name in _POD_POINTERS]
    parts.append(f"{_dns_policy(a)} == {_dns_policy(b)}")
    for name, fields in _LISTS.items():
        parts += _same_items(f"{a}.?{name}.orValue([])", f"{b}.?{name}.orValue([])", fields)
    for path in ("?spec.?nodeSelector", "?metadata.?labels", "?metadata.?annotations"):
        parts.append(_same_map(f"{new}.{path}.orValue({{}})", f"{old}.{path}.orValue({{}})"))
    return _cheaply(new, old, parts)


def same_containers(new: str, old: str) -> str:
    """An expression: the containers of two pod templates are equal, as far as CEL can compare them."""
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
    """Compares fields only if the whole values differ: a large Job would exceed the API server's CEL cost limit."""
    return f"({new} == {old} || ({' && '.join(parts)}))"


def _same_items(a: str, b: str, fields: Mapping[str, str]) -> Iterable[str]:
    return [
        f"{a}.map(i, i.?{f}.orValue({empty})) == {b}.map(i, i.?{f}.orValue({empty}))" for f, empty in fields.items()
    ]


def _dns_policy(pod: str) -> str:
    """An expression: the dnsPolicy of a pod; Volcano stores the default of pods in the host's network."""
    is_default = f"{pod}.?dnsPolicy.orValue('') == '' && {pod}.?hostNetwork.orValue(false)"
    return f"({is_default} ? '{HOST_NETWORK_DNS}' : {pod}.?dnsPolicy.orValue(''))"


def _pointer(path: str) -> str:
    """An expression: the value of a pointer field as a string. Zero and false are not equal to its absence."""
    return f"({path}.hasValue() ? string({path}.value()) : '')"


def _same_map(a: str, b: str) -> str:
    """An expression: two maps of strings or quantities are equal; an empty value is equal to an absent one."""
    return (
        f"{a}.all(k, k in {b} ? {a}[k] == {b}[k] : string({a}[k]) in ['', '0']) && "
        f"{b}.all(k, k in {a} || string({b}[k]) in ['', '0'])"
    )
