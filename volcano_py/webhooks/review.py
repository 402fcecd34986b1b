"""AdmissionReview: decodes the request and encodes the response. Kubernetes: admission.k8s.io/v1.

Invalid input raises nothing: the response denies the request and states the reason.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from volcano_py.webhooks.access import user_of
from volcano_py.webhooks.paths import AdmissionContext, AdmissionRequest, Path, Verdict, evaluate, with_access

API_VERSION = "admission.k8s.io/v1"


def answer(path: Path, body: bytes, context: AdmissionContext) -> bytes:
    """The response body for a request body."""
    uid = ""
    try:
        raw = _request(body)
        uid = raw["uid"]
        request = _parsed(raw)
    except ValueError as error:
        return _response(uid, Verdict([str(error)]), None)
    return _response(uid, evaluate(path, request, context), request.obj)


async def answer_with_access(path: Path, body: bytes, context: AdmissionContext) -> bytes:
    """The response body, after the access check that the request needs. Raises KubeError."""
    try:
        request = _parsed(_request(body))
    except ValueError:
        return answer(path, body, context)  # it reports the problem
    return answer(path, body, await with_access(path, request, context))


def _request(body: bytes) -> dict[str, Any]:
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"invalid AdmissionReview: {error}") from None
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        found = review.get("kind") if isinstance(review, dict) else type(review).__name__
        raise ValueError(f"kind: Invalid value: {found!r}: must be an AdmissionReview of {API_VERSION}")
    if review.get("apiVersion") != API_VERSION:
        raise ValueError(
            f"apiVersion: Invalid value: {review.get('apiVersion')!r}: must be {API_VERSION}; "
            "set admissionReviewVersions of the webhook to [v1]"
        )
    request = review.get("request")
    if not isinstance(request, dict):
        raise ValueError("request: Required value: the AdmissionReview contains no request")
    if not isinstance(request.get("uid"), str):
        raise ValueError("request.uid: Required value: the response must repeat it")
    return request


def _parsed(request: Mapping[str, Any]) -> AdmissionRequest:
    for key in ("object", "oldObject"):
        if not isinstance(request.get(key), dict | None):
            raise ValueError(f"request.{key}: Invalid value: {type(request[key]).__name__}: must be an object")
    for key in ("operation", "name", "namespace"):
        if not isinstance(request.get(key), str | None):
            raise ValueError(f"request.{key}: Invalid value: {request[key]!r}: must be a string")
    return AdmissionRequest(
        operation=request.get("operation") or "",
        obj=request.get("object"),
        old=request.get("oldObject"),
        name=request.get("name") or "",
        namespace=request.get("namespace") or "",
        user=user_of(request),
    )


def _response(uid: str, verdict: Verdict, before: Mapping[str, Any] | None) -> bytes:
    response: dict[str, Any] = {"uid": uid, "allowed": not verdict.problems}
    if verdict.problems:
        response["status"] = {"status": "Failure", "message": "; ".join(verdict.problems), "code": 400}
    elif verdict.obj is not None and (patch := list(json_patch(before or {}, verdict.obj))):
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(patch)).decode()
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": API_VERSION, "response": response})


def json_patch(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> Iterator[dict[str, Any]]:
    """The RFC 6902 operations that turn `before` into `after`; a list that differs is replaced as a whole."""
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, new in after.items():
        place = f"{path}/{_escaped(key)}"
        if key not in before:
            yield {"op": "add", "path": place, "value": new}
        elif isinstance(new, dict) and isinstance(before[key], dict):
            yield from json_patch(before[key], new, place)
        elif not _same(before[key], new):
            yield {"op": "replace", "path": place, "value": new}


def _same(one: Any, other: Any) -> bool:
    """Equality as in JSON, where true is not 1."""
    return bool(one == other) and type(one) is type(other)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
