"""Impersonation: a request with another identity in Impersonate-* headers runs as that identity.

Kubernetes: k8s.io/apiserver/pkg/endpoints/filters/impersonation (1.36: constrained modes first, then the legacy verb
`impersonate`). Every part of the identity is authorized on its own: the user name (or service account, or node), the
UID, each group and each value of each extra key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import unquote

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.auth.authorization import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    UNAUTHENTICATED,
    Access,
    allowed,
    forbidden,
)
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import User

GROUP = "authentication.k8s.io"
PREFIX = "impersonate-"
NODE_PREFIX = "system:node:"
ACCOUNT_PREFIX = "system:serviceaccount:"
NODE_NAME_KEY = "authentication.kubernetes.io/node-name"
"""The extra key of a service account's token with the name of the node that it is bound to."""

_EXTRA_PREFIX = "impersonate-extra-"
_EXTRA_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


class Headers(Protocol):
    """The headers of a request: names and values, in order, with repetitions."""

    def items(self) -> Iterable[tuple[str, str]]: ...


@dataclass(frozen=True, slots=True)
class _Mode:
    """A mode of impersonation; `name` is empty for the legacy verb."""

    name: str

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"

    @property
    def group(self) -> str:
        """The API group of users, groups, nodes and service accounts in this mode's authorization checks."""
        return GROUP if self.name else ""


def impersonate(api: Api, attributes: Access, headers: Headers) -> User:
    """The identity that a request runs as; `attributes` is the access that it requires.

    Raises StatusError: 400 for headers without a user name, 403 for an identity that the sender may not impersonate.
    """
    wanted = _wanted(headers)
    if wanted is None:
        return attributes.user
    first: errors.StatusError | None = None
    for mode in _modes(wanted, attributes.user):
        try:
            return _checked(api, mode, wanted, attributes)
        except errors.StatusError as error:
            first = first or error
    assert first is not None  # the legacy mode always applies
    raise first


def _wanted(headers: Headers) -> User | None:
    """The identity in the headers, unchanged; None without such headers."""
    name = uid = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for key, value in headers.items():
        header = key.lower()
        if not header.startswith(PREFIX):
            continue
        if header == "impersonate-user":
            name = name or value
        elif header == "impersonate-uid":
            uid = uid or value
        elif header == "impersonate-group":
            groups.append(value)
        elif header.startswith(_EXTRA_PREFIX):
            extra.setdefault(_extra_key(header), []).append(value)
    user = User(name, tuple(groups), uid, extra)
    if not name and (groups or uid or extra):
        raise errors.bad_request(f"requested {_go_syntax(user)} without impersonating a user name")
    return user if name else None


def _extra_key(header: str) -> str:
    """The extra key in a header's name, whose special characters are percent-encoded."""
    encoded = header.removeprefix(_EXTRA_PREFIX)
    if re.search(r"%(?![0-9a-f]{2})", encoded):
        return encoded
    return unquote(encoded)


def _modes(wanted: User, requestor: User) -> Iterator[_Mode]:
    """The modes that apply to an identity, in the order in which they are tried."""
    only_name = not (wanted.groups or wanted.uid or wanted.extra)
    node, account = _node(wanted.name), service_account(wanted.name)
    if only_name and node:
        if service_account(requestor.name) and requestor.extra.get(NODE_NAME_KEY) == [node]:
            yield _Mode("associated-node")
        yield _Mode("arbitrary-node")
    if only_name and account:
        yield _Mode("serviceaccount")
    if not node and not account:
        yield _Mode("user-info")
    yield _Mode("")


def _checked(api: Api, mode: _Mode, wanted: User, attributes: Access) -> User:
    """The requested identity in one mode; 403 if the sender may not impersonate all of it in this mode."""
    if mode.name:
        _require(api, replace(attributes, verb=f"impersonate-on:{mode.name}:{attributes.verb}"))
        _validate(mode, wanted, attributes.user)
    sender = attributes.user
    node, account = _node(wanted.name), service_account(wanted.name)
    groups = wanted.groups
    if mode.name and node:
        groups = ("system:nodes",)
        name = "*" if mode.name == "associated-node" else node
        _require(api, Access(sender, mode.verb, mode.group, "v1", "nodes", name=name))
    elif account:
        groups = groups or ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
        _require(
            api, Access(sender, mode.verb, mode.group, "v1", "serviceaccounts", namespace=account[0], name=account[1])
        )
    else:
        _require(api, Access(sender, mode.verb, mode.group, "v1", "users", name=wanted.name))
    if wanted.uid:
        _require(api, Access(sender, mode.verb, GROUP, "v1", "uids", name=wanted.uid))
    for group in wanted.groups:
        _require(api, Access(sender, mode.verb, mode.group, "v1", "groups", name=group))
    for key, values in wanted.extra.items():
        for value in values:
            _require(api, Access(sender, mode.verb, GROUP, "v1", "userextras", key, name=value))
    return User(wanted.name, _with_system_group(wanted.name, groups), wanted.uid, wanted.extra)


def _validate(mode: _Mode, wanted: User, sender: User) -> None:
    """Raise 403 for what the constrained modes never allow."""
    groups = Access(sender, mode.verb, mode.group, "v1", "groups")
    if "" in wanted.groups:
        raise forbidden(groups, "impersonating the empty string group is not allowed")
    if MASTERS in wanted.groups:
        raise forbidden(replace(groups, name=MASTERS), f"impersonating the {MASTERS} group is not allowed")
    extras = Access(sender, mode.verb, GROUP, "v1", "userextras")
    for key, values in wanted.extra.items():
        if not key:
            raise forbidden(extras, "impersonating the empty string key in extra is not allowed")
        domain, slash, path = key.partition("/")
        if not slash or metadata.subdomain_errors(domain) or not _EXTRA_PATH.fullmatch(path):
            text = f'must be a domain-prefixed path (such as "acme.io/foo"): "{key}"'
            raise forbidden(extras, f"impersonating an invalid key in extra is not allowed: {text}")
        if "" in values:
            raise forbidden(extras, "impersonating the empty string value in extra is not allowed")


def _require(api: Api, access: Access) -> None:
    if not allowed(api, access):
        raise forbidden(access)


def _with_system_group(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Groups with the one of every identity: authenticated, or unauthenticated for the anonymous user."""
    if name == ANONYMOUS.name:
        added = UNAUTHENTICATED
    elif UNAUTHENTICATED in groups:
        return groups
    else:
        added = AUTHENTICATED
    return groups if added in groups else (*groups, added)


def service_account(name: str) -> tuple[str, str] | None:
    """Namespace and name of a service account's user name, None for other users."""
    if not name.startswith(ACCOUNT_PREFIX):
        return None
    namespace, _, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
    if metadata.label_errors(namespace) or metadata.subdomain_errors(account):
        return None
    return namespace, account


def _node(name: str) -> str:
    """The node of a node's user name, empty for other users."""
    node = name.removeprefix(NODE_PREFIX)
    return node if node != name and not metadata.subdomain_errors(node) else ""


def _go_syntax(user: User) -> str:
    """An identity as Go prints it with %#v, for a message of the API server."""

    def strings(values: Iterable[str]) -> str:
        listing = ", ".join(_quoted(value) for value in values)
        return f"[]string{{{listing}}}"

    groups = strings(user.groups) if user.groups else "[]string(nil)"
    pairs = ", ".join(f"{_quoted(key)}:{strings(user.extra[key])}" for key in sorted(user.extra))
    extra = f"map[string][]string{{{pairs}}}" if user.extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{_quoted(user.uid)}, Groups:{groups}, Extra:{extra}}}'


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
