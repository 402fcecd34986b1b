"""Tokens of service accounts: POST serviceaccounts/x/token."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.apiserver import errors, metadata
from volcano_py.sandbox.apiserver.api import Api, Plain, Result
from volcano_py.sandbox.apiserver.request import Request
from volcano_py.sandbox.apiserver.reviews import tracked
from volcano_py.sandbox.apiserver.subresources import entry_of, typed_body

Object = dict[str, Any]

GROUP = "authentication.k8s.io"
SHORTEST, LONGEST, DEFAULT = 600, 2**32, 3600
AUDIENCE = "https://kubernetes.default.svc"


def install(api: Api) -> None:
    api.subresources["serviceaccounts", "token"] = request_token


async def request_token(api: Api, request: Request) -> Result | Plain:
    """Issue a token; it is good until it expires or its account goes."""
    entry = entry_of(request)
    body = typed_body(request, "authentication.v1.TokenRequest", "TokenRequest")
    spec = body.setdefault("spec", {})
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = DEFAULT
    seconds = spec["expirationSeconds"]
    text = ""
    if seconds < SHORTEST:
        text = "may not specify a duration less than 10 minutes"
    elif seconds > LONGEST:
        text = "may not specify a duration larger than 2^32 seconds"
    if text:
        cause = errors.invalid_value("spec.expirationSeconds", seconds, text)
        raise errors.invalid(GROUP, "TokenRequest", "", [cause])
    spec["audiences"] = spec.get("audiences") or [AUDIENCE]
    spec.setdefault("boundObjectRef", None)
    name = f"system:serviceaccount:{entry.namespace}:{entry.name}"
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{entry.namespace}", "system:authenticated")
    extra = {"authentication.kubernetes.io/credential-id": [f"JTI={metadata.new_uid()}"]}
    ends = time.time() + seconds
    usable = int(ends) if not request.dry_run else 0
    claims = {"iss": AUDIENCE, "aud": spec["audiences"], "sub": name, "exp": usable, "iat": int(time.time())}
    token = api.extensions["authenticator"].issue({**claims, "uid": entry.uid, "groups": groups, "extra": extra})
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
