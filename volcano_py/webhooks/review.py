"""AdmissionReviews: reading a request, and writing what a path answers. Kubernetes: admission.k8s.io/v1.

Nothing that arrives here raises: what cannot be read is answered with a refusal that says why.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from volcano_py.webhooks.paths import Asked, Path, Surroundings, Verdict, judge

API_VERSION = "admission.k8s.io/v1"


def answer(path: Path, body: bytes, around: Surroundings) -> bytes:
    """The body of the answer to the body of a request."""
    uid = ""
    try:
        request = _request(body)
        uid = request["uid"]
        asked = _asked(request)
    except ValueError as error:
        return _response(uid, Verdict([str(error)]), None)
    return _response(uid, judge(path, asked, around), asked.obj)


def _request(body: bytes) -> dict[str, Any]:
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"the AdmissionReview cannot be read: {error}") from None
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        found = review.get("kind") if isinstance(review, dict) else type(review).__name__
        raise ValueError(f"kind: Invalid value: {found!r}: only AdmissionReviews ({API_VERSION}) are answered here")
    if review.get("apiVersion") != API_VERSION:
        raise ValueError(
            f"apiVersion: Invalid value: {review.get('apiVersion')!r}: this is {API_VERSION}; "
            "name it in admissionReviewVersions of the webhook"
        )
    request = review.get("request")
    if not isinstance(request, dict):
        raise ValueError("request: Required value: the AdmissionReview asks nothing")
    if not isinstance(request.get("uid"), str):
        raise ValueError("request.uid: Required value: it is what the answer is known by")
    return request


def _asked(request: Mapping[str, Any]) -> Asked:
    for key in ("object", "oldObject"):
        if not isinstance(request.get(key), dict | None):
            raise ValueError(f"request.{key}: Invalid value: {type(request[key]).__name__}: it must be an object")
    for key in ("operation", "name", "namespace"):
        if not isinstance(request.get(key), str | None):
            raise ValueError(f"request.{key}: Invalid value: {request[key]!r}: it must be a text")
    return Asked(
        operation=request.get("operation") or "",
        obj=request.get("object"),
        old=request.get("oldObject"),
        name=request.get("name") or "",
        namespace=request.get("namespace") or "",
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
    """The operations of RFC 6902 that turn one object into the other; a list that differs is replaced whole."""
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
    """JSON knows that true is not 1."""
    return bool(one == other) and type(one) is type(other)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
