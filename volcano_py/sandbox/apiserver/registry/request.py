"""A request to a resource, parsed from path, query and headers. Kubernetes: RequestInfo, and the options of meta/v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    StatusError,
    bad_request,
    details,
    field_forbidden,
    invalid_value,
    required,
    unsupported,
)

if TYPE_CHECKING:
    from volcano_py.sandbox.apiserver.registry.resources import Resource


@dataclass(slots=True)
class User:
    """The user of a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Request:
    """One call of a verb on a resource; `options` are the decoded DeleteOptions of a deletion."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    user: User = field(default_factory=lambda: User("system:anonymous", ("system:unauthenticated",)))
    body: bytes = b""
    content_type: str = "application/json"
    user_agent: str = ""
    dry_run: bool = False
    field_validation: str = "Warn"
    manager: str = ""
    warnings: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    status: int = 200

    def warn(self, text: str) -> None:
        """Add a Warning header to the response; the same text is sent once."""
        if text not in self.warnings:
            self.warnings.append(text)


_OPTION_KINDS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


def read_write_options(request: Request, patch_type: str = "") -> None:
    """Validate and set dryRun, fieldValidation, fieldManager and force of a write request."""
    query = request.query
    causes: list[Cause] = []
    dry_run = query.get("dryRun", "")
    if dry_run:
        if dry_run != "All":
            causes.append(unsupported("dryRun", [dry_run], ["All"]))
            causes[-1].message = 'Unsupported value: ["' + dry_run + '"]: supported values: "All"'
        request.dry_run = True
    validation = query.get("fieldValidation", "")
    if validation:
        if validation not in ("Ignore", "Warn", "Strict"):
            choices = ["", "Ignore", "Strict", "Warn"]
            causes.append(unsupported("fieldValidation", validation, choices))
        request.field_validation = validation
    manager = query.get("fieldManager", "")
    if len(manager) > 128:
        causes.append(Cause("FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager"))
    elif manager and not manager.isprintable():
        causes.append(invalid_value("fieldManager", manager, "should not contain non-printable characters"))
    if patch_type == "apply":
        if not manager:
            causes.append(required("fieldManager", "is required for apply patch"))
    elif patch_type and "force" in query:
        causes.append(field_forbidden("force", "may not be specified for non-apply patch"))
    if causes:
        kind = _OPTION_KINDS[request.verb]
        texts = [f"{cause.field}: {cause.message}" for cause in causes]
        listing = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
        rows = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
        message = f'{kind}.meta.k8s.io "" is invalid: {listing}'
        raise StatusError(422, "Invalid", message, details("meta.k8s.io", kind, causes=rows))
    request.manager = manager or default_manager(request.user_agent)


def default_manager(user_agent: str) -> str:
    """The field manager of a client that sets none: its user agent up to the first slash."""
    return user_agent.split("/", 1)[0][:128] or "unknown"


def flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean query parameter as Kubernetes reads it: present and neither false nor 0."""
    value = query.get(name)
    return value is not None and value.lower() not in ("false", "0")


def integer(query: Mapping[str, str], name: str) -> int:
    """An integer query parameter, 0 when absent; raises the server's 400."""
    value = query.get(name, "")
    if not value:
        return 0
    try:
        return int(value)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None
