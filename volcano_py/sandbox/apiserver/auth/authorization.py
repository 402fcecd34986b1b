"""Authorization: a list of authorizers, one of which must allow a request. RBAC is in its own module.

Kubernetes: k8s.io/apiserver/pkg/authorization (union) and the 403 responses of its endpoint handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from volcano_py.sandbox.apiserver.apimachinery import errors, selectors
from volcano_py.sandbox.apiserver.registry.request import Request, User

if TYPE_CHECKING:
    from volcano_py.sandbox.apiserver.registry.api import Api

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/version/")


@dataclass(slots=True)
class Access:
    """A verb on a resource, or (path set) on a path. Kubernetes: authorizer.Attributes."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


# True: allowed; None: no opinion (the next authorizer decides; without any True the request is forbidden)
Authorizer = Callable[[Access], bool | None]


def masters(access: Access) -> bool | None:
    """Administrators have all permissions."""
    return True if MASTERS in access.user.groups else None


def public(access: Access) -> bool | None:
    """Health and version for all users, discovery for authenticated ones."""
    if not access.path or access.verb not in ("get", "head"):
        return None
    if access.path in PUBLIC_PATHS:
        return True
    if AUTHENTICATED not in access.user.groups:
        return None
    head = access.path.split("/")[1]
    return True if head in ("api", "apis", "openapi", "healthz", "livez", "readyz", "version") else None


def self_service(access: Access) -> bool | None:
    """Authenticated users may review their own access."""
    if access.verb == "create" and AUTHENTICATED in access.user.groups:
        reviews = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")
        return True if access.resource in reviews else None
    return None


def allowed(api: Api, access: Access) -> bool:
    """Whether any authorizer allows the request."""
    authorizers: list[Authorizer] = api.extensions.get("authorizers", [])
    return any(authorizer(access) for authorizer in (masters, public, self_service, *authorizers))


def authenticated(access: Access) -> bool | None:
    """An authorizer that gives authenticated users all permissions."""
    return True if AUTHENTICATED in access.user.groups else None


def access_of(request: Request) -> Access:
    """The permission that a request to a resource requires. A list or watch of one name is access to that object."""
    resource = request.resource
    return Access(
        request.user,
        request.verb,
        resource.group,
        resource.version,
        resource.plural,
        request.subresource,
        request.namespace,
        request.name or _selected_name(request),
    )


def _selected_name(request: Request) -> str:
    """The name that a field selector requires; a selector that cannot be parsed is rejected later."""
    text = request.query.get("fieldSelector", "")
    if not text:
        return ""
    try:
        terms = selectors.parse_fields(text)
    except ValueError:
        return ""
    return next((value for field, value, equal in terms if field == "metadata.name" and equal), "")


def require(api: Api, access: Access) -> None:
    """Raise 403 unless an authorizer allows the request."""
    if MASTERS not in access.user.groups and not allowed(api, access):
        raise forbidden(access)


def require_create(api: Api, access: Access) -> None:
    """Raise 403 unless the user of an update or an apply may create the object, which does not exist.

    Kubernetes: withAuthorization in k8s.io/apiserver/pkg/endpoints/handlers.
    """
    require(api, replace(access, verb="create"))


def forbidden(access: Access, reason: str = "") -> errors.StatusError:
    """The 403 for a verb on a resource or path that no authorizer allows, with the reason if there is one."""
    user = access.user.name
    why = f": {reason}" if reason else ""
    if access.path:
        message = f'forbidden: User "{user}" cannot {access.verb} path "{access.path}"{why}'
        return errors.StatusError(403, "Forbidden", message, {})
    what = f"{access.resource}/{access.subresource}" if access.subresource else access.resource
    where = f'in the namespace "{access.namespace}"' if access.namespace else "at the cluster scope"
    text = f'User "{user}" cannot {access.verb} resource "{what}" in API group "{access.group}" {where}{why}'
    name = f' "{access.name}"' if access.name else ""
    message = f"{errors.qualified(access.group, access.resource)}{name} is forbidden: {text}"
    return errors.StatusError(403, "Forbidden", message, errors.details(access.group, access.resource, access.name))
