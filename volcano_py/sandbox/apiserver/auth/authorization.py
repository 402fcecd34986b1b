"""Authorization: a row of authorizers, one of which must allow a request. RBAC is added by its own module.

Kubernetes: k8s.io/apiserver/pkg/authorization (union) and the 403 answers of its endpoint handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.registry.request import Request, User

if TYPE_CHECKING:
    from volcano_py.sandbox.apiserver.registry.api import Api

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version", "/version/")


@dataclass(slots=True)
class Question:
    """What authorizers are asked: a verb on a resource, or (path set) on a path."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


# True: allowed; None: no opinion (the next one is asked; nobody's yes is a no)
Authorizer = Callable[[Question], bool | None]


def masters(question: Question) -> bool | None:
    """Administrators may do everything."""
    return True if MASTERS in question.user.groups else None


def public(question: Question) -> bool | None:
    """Everyone may ask for health and version, and who is known for discovery."""
    if not question.path or question.verb not in ("get", "head"):
        return None
    if question.path in PUBLIC_PATHS:
        return True
    if AUTHENTICATED not in question.user.groups:
        return None
    head = question.path.split("/")[1]
    return True if head in ("api", "apis", "openapi", "healthz", "livez", "readyz", "version") else None


def self_service(question: Question) -> bool | None:
    """Everyone who is known may ask what they may do."""
    if question.verb == "create" and AUTHENTICATED in question.user.groups:
        reviews = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")
        return True if question.resource in reviews else None
    return None


def allowed(api: Api, question: Question) -> bool:
    """Whether any authorizer says yes."""
    authorizers: list[Authorizer] = api.extensions.get("authorizers", [])
    return any(authorizer(question) for authorizer in (masters, public, self_service, *authorizers))


def everybody(question: Question) -> bool | None:
    """An authorizer that lets do everything whoever has shown who he is."""
    return True if AUTHENTICATED in question.user.groups else None


def question(request: Request) -> Question:
    """What the sender of a request to a resource asks for."""
    resource = request.resource
    return Question(
        request.user,
        request.verb,
        resource.group,
        resource.version,
        resource.plural,
        request.subresource,
        request.namespace,
        request.name,
    )


def require(api: Api, asked: Question) -> None:
    """403 unless an authorizer allows it."""
    if MASTERS not in asked.user.groups and not allowed(api, asked):
        raise forbidden(asked)


def forbidden(asked: Question, reason: str = "") -> errors.StatusError:
    """The 403 for a verb on a resource or path that no authorizer allows, with a reason where there is one."""
    user = asked.user.name
    why = f": {reason}" if reason else ""
    if asked.path:
        message = f'forbidden: User "{user}" cannot {asked.verb} path "{asked.path}"{why}'
        return errors.StatusError(403, "Forbidden", message, {})
    what = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    text = f'User "{user}" cannot {asked.verb} resource "{what}" in API group "{asked.group}" {where}{why}'
    name = f' "{asked.name}"' if asked.name else ""
    message = f"{errors.qualified(asked.group, asked.resource)}{name} is forbidden: {text}"
    return errors.StatusError(403, "Forbidden", message, errors.details(asked.group, asked.resource, asked.name))
