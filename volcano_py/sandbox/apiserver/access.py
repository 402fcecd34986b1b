"""Who is asking (tokens) and whether they may (authorizers in a row; RBAC is added to the row by its own module)."""

from __future__ import annotations

import base64
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from volcano_py.sandbox.apiserver import errors
from volcano_py.sandbox.apiserver.request import Request, User

if TYPE_CHECKING:
    from aiohttp import web

    from volcano_py.sandbox.apiserver.api import Api

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


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


_JWT_HEADER = _base64(b'{"alg":"HS256","typ":"JWT"}')


@dataclass(slots=True)
class Authenticator:
    """Users by bearer token; tokens of service accounts are signed with `key`, so that none has to be remembered."""

    tokens: dict[str, User] = field(default_factory=dict)
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    account_exists: Callable[[str, str, str], bool] = lambda namespace, name, uid: True

    def find(self, token: str) -> User | None:
        """The user of a token that is still good."""
        return self.tokens.get(token) or self._account(token)

    def issue(self, claims: dict[str, Any]) -> str:
        """A token (a JWT, HS256) that says what `_account` reads: sub, exp, uid, groups, extra."""
        signed = f"{_JWT_HEADER}.{_base64(orjson.dumps(claims))}"
        return f"{signed}.{self._signature(signed)}"

    def _signature(self, text: str) -> str:
        return _base64(hmac.digest(self.key, text.encode(), "sha256"))

    def _account(self, token: str) -> User | None:
        """The service account of a token that we have signed, while it lasts and its account is there."""
        signed, _, signature = token.rpartition(".")
        if not signed or not token.isascii() or not hmac.compare_digest(signature, self._signature(signed)):
            return None
        payload = signed.partition(".")[2]
        claims = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        namespace, name = claims["sub"].split(":")[2:]
        if time.time() > claims["exp"] or not self.account_exists(namespace, name, claims["uid"]):
            return None
        return User(claims["sub"], tuple(claims["groups"]), claims["uid"], claims["extra"])

    def user(self, http: web.BaseRequest) -> User:
        """The user of a request; no credentials make an anonymous one, wrong ones are a 401."""
        header = http.headers.get("Authorization", "")
        if not header:
            return ANONYMOUS
        scheme, _, token = header.partition(" ")
        found = self.find(token.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise errors.StatusError(401, "Unauthorized", "Unauthorized")
        return found


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
