"""Tokens of service accounts: POST serviceaccounts/x/token.

Kubernetes: pkg/registry/core/serviceaccount/storage/token.go.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.auth.authentication import AUDIENCE, Authenticator, service_account_claims
from volcano_py.sandbox.apiserver.endpoints.ownership import tracked
from volcano_py.sandbox.apiserver.endpoints.subresources import entry_of, typed_body
from volcano_py.sandbox.apiserver.registry.api import Api, Plain, Result
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.storage.store import Entry

Object = dict[str, Any]

GROUP = "authentication.k8s.io"
SHORTEST, LONGEST, DEFAULT = 600, 2**32, 3600
"""The limits of a token's lifetime in seconds, and the default."""
_BINDABLE = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


def install(api: Api) -> None:
    api.subresources["serviceaccounts", "token"] = request_token


async def request_token(api: Api, request: Request) -> Result | Plain:
    """Issue a token for audiences; it is valid until it expires, and while its account and bound object exist."""
    entry = entry_of(request)
    body = typed_body(request, "authentication.v1.TokenRequest", "TokenRequest")
    wanted = (body.get("metadata") or {}).get("uid", "")
    if wanted and wanted != entry.uid:
        text = f"the UID in the token request ({wanted}) does not match the UID of the service account ({entry.uid})"
        raise errors.conflict(GROUP, "TokenRequest", entry.name, text)
    spec = body.setdefault("spec", {})
    seconds = _seconds(spec)
    spec["audiences"] = spec.get("audiences") or [AUDIENCE]
    bound = _bound(api, entry, spec.setdefault("boundObjectRef", None))
    ends = time.time() + seconds
    claims = service_account_claims(entry.namespace, entry.name, entry.uid, ends if not request.dry_run else 0, **bound)
    authenticator: Authenticator = api.extensions["authenticator"]
    token = authenticator.issue({**claims, "aud": spec["audiences"], "jti": metadata.new_uid()})
    made = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    meta = {
        "name": entry.name,
        "namespace": entry.namespace,
        "uid": entry.uid,
        "creationTimestamp": metadata.now(),
    }
    answer: Object = {
        "kind": "TokenRequest",
        "apiVersion": f"{GROUP}/v1",
        "metadata": meta,
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": made},
    }
    tracked(request, "authentication.v1.TokenRequest", answer, f"{GROUP}/v1")
    return Plain(answer, 201)


def _seconds(spec: Object) -> int:
    """The lifetime of the token, which is added to the spec if it is missing; StatusError 422."""
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = DEFAULT
    seconds: int = spec["expirationSeconds"]
    text = ""
    if seconds < SHORTEST:
        text = "may not specify a duration less than 10 minutes"
    elif seconds > LONGEST:
        text = "may not specify a duration larger than 2^32 seconds"
    if text:
        cause = errors.invalid_value("spec.expirationSeconds", seconds, text)
        raise errors.invalid(GROUP, "TokenRequest", "", [cause])
    return seconds


def _bound(api: Api, account: Entry, reference: Object | None) -> dict[str, Object]:
    """The claims about the object that a token is bound to; StatusError 400, 404 or 409."""
    if reference is None:
        return {}
    kind, name = reference.get("kind", ""), reference.get("name", "")
    group, _, version = reference.get("apiVersion", "").rpartition("/")
    plural = _BINDABLE.get(kind) if not group else None
    if plural is None:
        shown = f"{group}/{version}" if group else f"/{version}"
        raise errors.bad_request(f"cannot bind token to object of type {shown}, Kind={kind}")
    namespace = "" if kind == "Node" else account.namespace
    entry = api.store.collections[plural].get(namespace, name)
    if entry is None:
        raise errors.not_found("", plural, name)
    more: dict[str, Object] = {}
    if kind == "Pod":
        spec = entry.load()["spec"]
        if (spec.get("serviceAccountName") or "default") != account.name:
            text = f'"{account.name}" to pod running with different serviceaccount name.'
            raise errors.bad_request(f"cannot bind token for serviceaccount {text}")
        if spec.get("nodeName"):
            node = api.store.collections["nodes"].get("", spec["nodeName"])
            more["node"] = {"name": spec["nodeName"], **({"uid": node.uid} if node is not None else {})}
    uid = reference.get("uid", "")
    if uid and uid != entry.uid:
        text = f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        raise errors.conflict("", kind, name, text + "The object might have been deleted and then recreated")
    return {kind.lower(): {"name": name, "uid": entry.uid}, **more}
