"""Access checks of the user of a request: SubjectAccessReviews. Kubernetes: authorization.k8s.io/v1.

The rules are functions without I/O; who calls them makes the check first, with `checked`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class UserInfo(NamedTuple):
    """The user of an admission request (`request.userInfo`)."""

    name: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Any] | None = None


class AccessQuery(NamedTuple):
    """A verb of a user on one object of a cluster-scoped kind."""

    user: UserInfo
    verb: str
    group: str
    resource: str
    name: str


AccessCheck = Callable[[AccessQuery], Awaitable[bool]]
"""Whether the API server allows the access. Raises KubeError if it does not respond."""


def user_of(raw: Mapping[str, Any]) -> UserInfo:
    """The user in the request of an AdmissionReview; raises ValueError if it is malformed."""
    info = raw.get("userInfo") or {}
    if not isinstance(info, dict) or not isinstance(info.get("username", ""), str):
        raise ValueError("request.userInfo: Invalid value: must be an object with the string username")
    groups, extra = info.get("groups") or (), info.get("extra")
    if not isinstance(groups, list | tuple) or not all(isinstance(group, str) for group in groups):
        raise ValueError("request.userInfo.groups: Invalid value: must be a list of strings")
    return UserInfo(info.get("username", ""), tuple(groups), str(info.get("uid") or ""), extra)


def review_body(query: AccessQuery) -> dict[str, Any]:
    """The SubjectAccessReview of a query."""
    user = query.user
    spec: dict[str, Any] = {
        "user": user.name,
        "groups": list(user.groups),
        "resourceAttributes": {
            "verb": query.verb,
            "group": query.group,
            "resource": query.resource,
            "name": query.name,
        },
    }
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = dict(user.extra)
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def access_check(client: Client) -> AccessCheck:
    """Checks with the API server, which needs `create` on subjectaccessreviews."""

    async def check(query: AccessQuery) -> bool:
        answer = msgspec.json.decode(await client.raw("POST", _PATH, body=msgspec.json.encode(review_body(query))))
        return bool((answer.get("status") or {}).get("allowed"))

    return check
