"""Authentication: users by bearer token or client certificate, and service accounts by signed tokens.

Kubernetes: pkg/serviceaccount (claims, jwt) and the bearer token authenticators. Tokens of service accounts are JWTs
(HS256) with Kubernetes' own claims. A token is valid for its audiences, until it expires, and while its service account
and the object that it is bound to exist with the UIDs in it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.auth.authorization import ANONYMOUS, AUTHENTICATED
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.storage.store import Entry

if TYPE_CHECKING:
    from aiohttp import web

Object = dict[str, Any]

AUDIENCE = "https://kubernetes.default.svc"
"""The audience of the API server itself, and the issuer of its tokens."""
DELETION_LEEWAY = 60.0
"""Seconds for which a token is valid after the deletionTimestamp of its service account or object."""

_EXTRA = "authentication.kubernetes.io/"


class InvalidToken(Exception):
    """A token that is not accepted; the text is that of kube-apiserver."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The user of a token, and the requested audiences that the token is valid for."""

    user: User
    audiences: tuple[str, ...]


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


_JWT_HEADER = _base64(b'{"alg":"HS256","typ":"JWT"}')


def _of_certificate(http: web.BaseRequest) -> User | None:
    """The user of a client certificate that TLS has verified: its common name, with its organizations as groups.

    StatusError 401 when the certificate has expired, also on a connection that was opened earlier.
    """
    found = http.transport.get_extra_info("peercert") if http.transport is not None else None
    if not found:
        return None
    begin, end = (ssl.cert_time_to_seconds(found[key]) for key in ("notBefore", "notAfter"))
    if not begin <= time.time() <= end:
        raise _unauthorized()
    rows = [row for part in found.get("subject", ()) for row in part]
    names = [value for key, value in rows if key == "commonName"]
    groups = tuple(value for key, value in rows if key == "organizationName")
    return User(names[0], (*groups, AUTHENTICATED)) if names else None


def _unauthorized() -> errors.StatusError:
    return errors.StatusError(401, "Unauthorized", "Unauthorized")


def _nothing(plural: str, namespace: str, name: str) -> Entry | None:
    return None


@dataclass(slots=True)
class Authenticator:
    """Users by bearer token; `key` signs the tokens of service accounts, so that none has to be stored.

    stored: returns the object for resource (plural), namespace and name, or None.
    """

    tokens: dict[str, User] = field(default_factory=dict)
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    stored: Callable[[str, str, str], Entry | None] = _nothing

    def authenticate(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> Authenticated:
        """The user of a token for one of the audiences; raises InvalidToken."""
        user = self.tokens.get(token)
        if user is not None:  # such tokens are valid only for the API server
            if AUDIENCE not in audiences:
                raise InvalidToken("invalid bearer token")
            return Authenticated(user, (AUDIENCE,))
        claims = self._claims(token)
        if claims is None:
            raise InvalidToken("invalid bearer token")
        valid = tuple(audience for audience in claims.get("aud") or () if audience in audiences)
        try:
            if not valid:
                shown = _quoted(claims.get("aud") or ()), _quoted(audiences)
                raise InvalidToken(f"token audiences {shown[0]} is invalid for the target audiences {shown[1]}")
            return Authenticated(self._service_account(claims), valid)
        except InvalidToken as error:
            raise InvalidToken(f"[invalid bearer token, {error}]") from None

    def issue(self, claims: Object) -> str:
        """A signed token (a JWT) with these claims."""
        signed = f"{_JWT_HEADER}.{_base64(orjson.dumps(claims))}"
        return f"{signed}.{self._signature(signed)}"

    def user(self, http: web.BaseRequest) -> User:
        """The user of a request: anonymous without credentials; StatusError 401 for invalid ones."""
        header = http.headers.get("Authorization", "")
        if not header:
            return _of_certificate(http) or ANONYMOUS
        scheme, _, token = header.partition(" ")
        if scheme.lower() == "bearer":
            try:
                return self.authenticate(token.strip()).user
            except InvalidToken:
                pass
        raise _unauthorized()

    def _signature(self, text: str) -> str:
        return _base64(hmac.digest(self.key, text.encode(), "sha256"))

    def _claims(self, token: str) -> Object | None:
        """The claims of a token with a valid signature, None for any other text."""
        signed, _, signature = token.rpartition(".")
        if not signed or not token.isascii() or not hmac.compare_digest(signature, self._signature(signed)):
            return None
        payload = signed.partition(".")[2]
        try:
            claims: Object = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        except (ValueError, binascii.Error):
            return None
        return claims

    def _service_account(self, claims: Object) -> User:
        """The user of the claims, if the objects in the claims exist; raises InvalidToken."""
        if time.time() > claims["exp"]:
            raise InvalidToken("service account token has expired")
        about = claims.get("kubernetes.io") or {}  # absent in tokens of older versions
        namespace, account = about.get("namespace", ""), about.get("serviceaccount") or {}
        name, uid = account.get("name", ""), account.get("uid", "")
        entry = self.stored("serviceaccounts", namespace, name)
        if entry is None:
            raise InvalidToken(f'serviceaccounts "{name}" not found')
        if entry.uid != uid:
            raise InvalidToken(f"service account UID ({entry.uid}) does not match claim ({uid})")
        if _deleted(entry):
            raise InvalidToken(f"service account {namespace}/{name} has been deleted")
        pod, node, secret = (about.get(kind) for kind in ("pod", "node", "secret"))
        if secret is not None:
            self._check_bound("secret", namespace, secret)
        if pod is not None:
            self._check_bound("pod", namespace, pod)
        elif node is not None:
            self._check_bound("node", "", node)
        extra: dict[str, list[str]] = {}
        if pod is not None:
            extra |= {_EXTRA + "pod-name": [pod["name"]], _EXTRA + "pod-uid": [pod["uid"]]}
        if claims.get("jti"):
            extra[_EXTRA + "credential-id"] = [f"JTI={claims['jti']}"]
        if node is not None:
            extra |= {_EXTRA + f"node-{key}": [value] for key, value in node.items()}
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        return User(claims["sub"], groups, uid, extra)

    def _check_bound(self, kind: str, namespace: str, reference: Object) -> None:
        entry = self.stored(f"{kind}s", namespace, reference["name"])
        if entry is None:
            raise InvalidToken("service account token has been invalidated")
        if entry.uid != reference["uid"]:
            text = f"does not match service account {kind} ref claim ({reference['uid']})"
            raise InvalidToken(f"{kind} UID ({entry.uid}) {text}")
        if _deleted(entry):
            raise InvalidToken("service account token has been invalidated")


def service_account_claims(namespace: str, name: str, uid: str, expires: float, **bound: Object) -> Object:
    """The claims of a service account's token for the API server; `bound` contains objects: pod, node, secret."""
    now = int(time.time())
    account = {"name": name, "uid": uid}
    return {
        "iss": AUDIENCE,
        "aud": [AUDIENCE],
        "sub": f"system:serviceaccount:{namespace}:{name}",
        "iat": now,
        "nbf": now,
        "exp": int(expires),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": account, **bound},
    }


def _deleted(entry: Entry) -> bool:
    """Whether an object's deletion began earlier than the leeway."""
    if b'"deletionTimestamp"' not in entry.tail:
        return False
    stamp = entry.load()["metadata"].get("deletionTimestamp")
    return bool(stamp) and codec.parse_time(stamp).timestamp() < time.time() - DELETION_LEEWAY


def _quoted(values: Sequence[str]) -> str:
    """A list of strings as Go prints it with %q."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"
