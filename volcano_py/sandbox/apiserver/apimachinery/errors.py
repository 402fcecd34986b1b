"""Error responses: Status objects with reason, details and causes, with the texts of kube-apiserver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Cause:
    """An error in a field: `reason` is FieldValueInvalid or another one, `field` a path such as spec.ports[0]."""

    reason: str
    message: str
    field: str


class StatusError(Exception):
    """A response other than success; `body` is the Status object, `headers` are those of the HTTP response."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}
        self.continue_token = ""

    @property
    def body(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


class PageNotFound(Exception):
    """A path that is not served: plain text, not a Status."""


def details(group: str, kind: str, name: str = "", **more: Any) -> dict[str, Any]:
    """The details of a Status: empty parts are left out, as by Go's encoder."""
    out: dict[str, Any] = {}
    if name:
        out["name"] = name
    if group:
        out["group"] = group
    if kind:
        out["kind"] = kind
    out.update(more)
    return out


def qualified(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> StatusError:
    message = f'{qualified(group, resource)} "{name}" not found'
    return StatusError(404, "NotFound", message, details(group, resource, name))


def no_such_path() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(group: str, resource: str, name: str) -> StatusError:
    message = f'{qualified(group, resource)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details(group, resource, name))


def conflict(group: str, resource: str, name: str, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {qualified(group, resource)} "{name}": {why}'
    return StatusError(409, "Conflict", message, details(group, resource, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def forbidden(group: str, resource: str, name: str, why: str) -> StatusError:
    message = f'{qualified(group, resource)} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, details(group, resource, name))


def method_not_allowed() -> StatusError:
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def method_not_supported(group: str, resource: str, verb: str) -> StatusError:
    message = f'{verb} is not supported on resources of kind "{qualified(group, resource)}"'
    return StatusError(405, "MethodNotAllowed", message, details(group, resource))


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def internal(message: str) -> StatusError:
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def invalid(group: str, kind: str, name: str, causes: list[Cause]) -> StatusError:
    """422 with every cause; the kind is qualified by its group, as in kube-apiserver."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    listing = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    rows = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return StatusError(
        422,
        "Invalid",
        f'{qualified(group, kind)} "{name}" is invalid: {listing}',
        details(group, kind, name, causes=rows),
    )


# --- causes, in the texts of field.Error -----------------------------------------------------------------------------


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    import orjson

    return orjson.dumps(value).decode()


def required(path: str, why: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", path)


def invalid_value(path: str, value: Any, why: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {_shown(value)}: {why}", path)


def unsupported(path: str, value: Any, allowed: list[str]) -> Cause:
    listing = ", ".join(_shown(choice) for choice in allowed)
    return Cause("FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {listing}", path)


def duplicate(path: str, value: Any) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", path)


def field_not_found(path: str, value: Any) -> Cause:
    return Cause("FieldValueNotFound", f"Not found: {_shown(value)}", path)


def field_forbidden(path: str, why: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {why}", path)


def too_long(path: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path)


def too_many(path: str, count: int, limit: int) -> Cause:
    items = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} {items}", path)


def type_invalid(path: str, value: Any, why: str) -> Cause:
    return Cause("FieldValueTypeInvalid", f"Invalid value: {_shown(value)}: {why}", path)
