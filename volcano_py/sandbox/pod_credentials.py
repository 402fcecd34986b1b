"""The credentials of a pod's real processes: a kubeconfig of the pod's service account.

In a container it would be the token in /var/run/secrets; a local process cannot have a file at that path.
"""

from __future__ import annotations

import time
from typing import Any

from volcano_py.sandbox import kubeconfig
from volcano_py.sandbox.apiserver.auth.authentication import Authenticator, service_account_claims
from volcano_py.sandbox.apiserver.registry.api import Api

Object = dict[str, Any]

LIFETIME = 365 * 86400.0
"""Lifetime of the token in seconds; it also ends with its pod."""


def document(api: Api, url: str, authority: bytes, pod: Object) -> Object | None:
    """The kubeconfig of a pod; None if it has no service account, or automountServiceAccountToken is false."""
    meta, spec = pod["metadata"], pod["spec"]
    name = spec.get("serviceAccountName") or "default"
    entry = api.resource("", "serviceaccounts").collection.get(meta["namespace"], name)
    if entry is None:
        return None
    wanted = spec.get("automountServiceAccountToken")
    if not (entry.load().get("automountServiceAccountToken", True) if wanted is None else wanted):
        return None
    bound = {"pod": {"name": meta["name"], "uid": meta["uid"]}}
    claims = service_account_claims(meta["namespace"], name, entry.uid, time.time() + LIFETIME, **bound)
    authenticator: Authenticator = api.extensions["authenticator"]
    return kubeconfig.document(url, authority, authenticator.issue(claims))
