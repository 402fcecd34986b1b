"""Remedies for requests that the API server rejects permanently: the command to run.

The program waits for missing definitions and permissions; the log line contains the command that resolves the
problem.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from volcano_py.kube.errors import Forbidden, KubeError, NotFound

if TYPE_CHECKING:
    from volcano_py.api.resource_types import ResourceType

_SERVICE_ACCOUNT = re.compile(r'User "system:serviceaccount:([^:"]+):([^"]+)" cannot')
_USER = re.compile(r'User "([^"]+)" cannot')
_UNSERVED = ("the server could not find the requested resource", "404 page not found")
"""Messages about a kind that the API server does not serve, instead of an object."""


def remedy(
    error: KubeError,
    rt: ResourceType,
    verbs: tuple[str, ...],
    namespace: str | None = None,
    versions: Sequence[ResourceType] = (),
) -> str:
    """The remedy for a rejected request on a kind, or an empty string if there is none. `versions`: in which the kind
    can be used, if there are several."""
    if isinstance(error, NotFound):
        if "alpha" in rt.version and rt.group.endswith(".k8s.io"):
            flags = " or ".join(f"--runtime-config={each.api_version}=true" for each in versions or (rt,))
            return f"an API server serves it with {flags}, and its feature gate"
        if rt.group.endswith("volcano.sh"):
            return f"install the CRD {rt.plural}.{rt.group}: {UPDATE_CRDS}"
        if str(error).strip() in _UNSERVED:
            return f"the API server does not serve {rt.api_version}; features that use it are off"
        return ""
    if isinstance(error, Forbidden):
        return "grant it: " + grant(str(error), rt, verbs, namespace)
    return ""


UPDATE_CRDS = "kubectl apply --server-side --force-conflicts -f crds/ (or helm upgrade)"
"""Installs the CRDs, and updates CRDs of the chart or another installation."""


def grant(message: str, rt: ResourceType, verbs: tuple[str, ...], namespace: str | None = None) -> str:
    """The two kubectl commands that grant the user of a Forbidden message these verbs on a kind."""
    return _commands(message, f"{rt.plural}.{rt.group}" if rt.group else rt.plural, verbs, namespace)


def grant_list(message: str, resources: Sequence[str]) -> str:
    """The kubectl commands that let the user of a Forbidden message read several kinds."""
    return _commands(message, ",".join(resources), ("get", "list"), None, name="volcano-explain")


_UNKNOWN_CA = ("unable to get local issuer certificate", "self-signed certificate", "self signed certificate")


def for_tls(text: str) -> str:
    """The remedy for a TLS error about the server's certificate, an empty string for other errors."""
    if "certificate has expired" in text:
        return "; renew the API server's certificate: kubeadm certs renew apiserver"
    if any(each in text for each in _UNKNOWN_CA):
        return (
            "; no CA that the kubeconfig names has signed the API server's certificate: set certificate-authority or "
            "certificate-authority-data of the cluster"
        )
    return ""


_DENIED = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?')


def for_denied(message: str) -> str:
    """`; grant it: …` for the message of a request that RBAC denied, an empty string for any other.

    The command grants the verb in all namespaces, but on Secrets only in the namespace of the request.
    """
    found = _DENIED.search(message)
    if not found:
        return ""
    verb, resource, group, namespace = found.groups()
    plural, _, subresource = resource.partition("/")
    resource = (f"{plural}.{group}" if group else plural) + (f"/{subresource}" if subresource else "")
    return "; grant it: " + _commands(message, resource, (verb,), namespace if plural == "secrets" else None)


def _commands(message: str, resource: str, verbs: tuple[str, ...], namespace: str | None, name: str = "") -> str:
    name = name or f"volcano-{'-'.join(verbs)}-{re.sub('[./]', '-', resource)}"
    if found := _SERVICE_ACCOUNT.search(message):
        subject = f"--serviceaccount={found[1]}:{found[2]}"
    elif found := _USER.search(message):
        subject = f"--user={found[1]}"
    else:
        subject = "--user=USER"
    role, where = ("role", f" -n {namespace}") if namespace else ("clusterrole", "")
    return (
        f"kubectl create {role} {name}{where} --verb={','.join(verbs)} --resource={resource} && "
        f"kubectl create {role}binding {name}{where} --{role}={name} {subject}"
    )
