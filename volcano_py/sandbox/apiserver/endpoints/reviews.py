"""Kinds that are returned and not stored: access reviews, token reviews, self subject reviews; and bindings by
collection. Kubernetes: pkg/registry/authorization and pkg/registry/authentication."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.auth import authorization
from volcano_py.sandbox.apiserver.auth.authentication import AUDIENCE, Authenticator, InvalidToken
from volcano_py.sandbox.apiserver.auth.authorization import Access
from volcano_py.sandbox.apiserver.endpoints import subresources
from volcano_py.sandbox.apiserver.endpoints.ownership import tracked
from volcano_py.sandbox.apiserver.registry.api import Api, Plain
from volcano_py.sandbox.apiserver.registry.request import Request, User
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.serializer.bodies import read_object

Object = dict[str, Any]

AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"


def _body(request: Request) -> Object:
    resource = request.resource
    raw = read_object(request.body, request.content_type, resource.kind, None)
    try:
        obj: Object = codec.normalise(resource.type, raw, codec.Unknown())
        return obj
    except codec.DecodeError as error:
        kind = resource.kind
        raise errors.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from None


def _answer(request: Request, obj: Object) -> Plain:
    resource = request.resource
    if "selfsubjectr" not in resource.plural:
        tracked(request, resource.type.go_name, obj, resource.api_version)
    return Plain({"kind": resource.kind, "apiVersion": resource.api_version, **obj}, 201)


def user_info(user: User) -> Object:
    out: Object = {"username": user.name}
    if user.uid:
        out["uid"] = user.uid
    if user.groups:
        out["groups"] = list(user.groups)
    if user.extra:
        out["extra"] = user.extra
    return out


async def who_am_i(api: Api, request: Request) -> Plain:
    obj = _body(request)
    obj["metadata"] = {"creationTimestamp": metadata.now()}
    obj["status"] = {"userInfo": user_info(request.user)}
    return _answer(request, obj)


async def token(api: Api, request: Request) -> Plain:
    """The user of a token for the audiences of the review, else for those of the API server."""
    obj = _body(request)
    spec = obj["spec"]
    if not spec.get("token"):
        raise errors.bad_request("token is required for TokenReview in authentication")
    authenticator: Authenticator = api.extensions["authenticator"]
    try:
        found = authenticator.authenticate(spec["token"], spec.get("audiences") or (AUDIENCE,))
    except InvalidToken as error:
        obj["status"] = {"user": {}, "error": str(error)}
    else:
        obj["status"] = {"authenticated": True, "user": user_info(found.user), "audiences": list(found.audiences)}
    return _answer(request, obj)


def _access(spec: Object, user: User) -> Access:
    about = spec.get("resourceAttributes")
    if about is not None:
        return Access(
            user,
            about.get("verb", ""),
            about.get("group", ""),
            about.get("version", ""),
            about.get("resource", ""),
            about.get("subresource", ""),
            about.get("namespace", ""),
            about.get("name", ""),
        )
    other = spec.get("nonResourceAttributes") or {}
    return Access(user, other.get("verb", ""), path=other.get("path", ""))


def _check(spec: Object) -> None:
    both = spec.get("resourceAttributes") is not None, spec.get("nonResourceAttributes") is not None
    if both[0] == both[1]:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = errors.invalid_value("spec.resourceAttributes", spec.get("resourceAttributes"), text)
        raise errors.invalid(AUTHORIZATION, "", "", [cause])


async def review_self_access(api: Api, request: Request) -> Plain:
    obj = _body(request)
    _check(obj["spec"])
    allowed = authorization.allowed(api, _access(obj["spec"], request.user))
    obj["status"] = {"allowed": allowed}
    return _answer(request, obj)


async def may_they(api: Api, request: Request) -> Plain:
    obj = _body(request)
    spec = obj["spec"]
    _check(spec)
    user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
    allowed = authorization.allowed(api, _access(spec, user))
    obj["status"] = {"allowed": allowed}
    return _answer(request, obj)


async def my_rules(api: Api, request: Request) -> Plain:
    obj = _body(request)
    rules: list[Object] = []
    paths: list[Object] = []
    if authorization.MASTERS in request.user.groups:
        rules.append({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
        paths.append({"verbs": ["*"], "nonResourceURLs": ["*"]})
    for lister in api.extensions.get("rule_listers", []):
        more, more_paths = lister(request.user, obj["spec"].get("namespace", ""))
        rules += more
        paths += more_paths
    obj["spec"] = {}
    obj["status"] = {"resourceRules": rules, "nonResourceRules": paths, "incomplete": False}
    return _answer(request, obj)


async def bind(api: Api, request: Request) -> Plain:
    """POST bindings: the Binding itself contains the name of the pod."""
    obj = _body(request)
    inner = Request(
        "create",
        api.resource("", "pods"),
        request.namespace,
        obj["metadata"].get("name", ""),
        "binding",
        request.query,
        request.user,
        dry_run=request.dry_run,
    )
    return await subresources.bind(api, inner, obj)


HANDLERS = {
    f"selfsubjectreviews.{AUTHENTICATION}": who_am_i,
    f"tokenreviews.{AUTHENTICATION}": token,
    f"selfsubjectaccessreviews.{AUTHORIZATION}": review_self_access,
    f"subjectaccessreviews.{AUTHORIZATION}": may_they,
    f"localsubjectaccessreviews.{AUTHORIZATION}": may_they,
    f"selfsubjectrulesreviews.{AUTHORIZATION}": my_rules,
    "bindings": bind,
}
