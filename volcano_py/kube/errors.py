"""Errors of API calls: the server's Status as exceptions, and unreachable servers.

The reasons are Kubernetes' own (metav1.StatusReason); the class is selected by reason, otherwise by HTTP
status.
"""

from __future__ import annotations

from typing import Any

import msgspec


class KubeError(Exception):
    """Base of all exceptions that this package raises."""

    blame = ""
    """What a caller failed to do, if it has noted it: the reason of an Event."""


class Unreachable(KubeError):
    """No response: connection refused or lost, name not resolved, TLS rejected, timeout.

    `sent` is False only if the request certainly did not reach the server; otherwise it may have been executed.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class Silent(Unreachable):
    """A watch received no data within the time limit; normal if no object changes."""


class InvalidResponse(KubeError):
    """The server reported success, but the body is not the requested object: HTML, empty, a list, other JSON.

    A write that raises it may have been executed.
    """

    def __init__(self, message: str, body: bytes = b"") -> None:
        super().__init__(message)
        self.body = body
        """The body of the response."""


class OlderDefinition(KubeError):
    """The CRD of a kind is older than this program; the text contains the missing parts and the update command."""


class ApiError(KubeError):
    """The server responded with a failure Status."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or reason or f"HTTP {status}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.retry_after = retry_after
        """Seconds of Retry-After, or None."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(status={self.status}, reason={self.reason!r}, message={self.message!r})"


class NotFound(ApiError):
    """404: the object, or the kind, does not exist."""


class Conflict(ApiError):
    """409: the resourceVersion or another precondition failed."""


class AlreadyExists(ApiError):
    """409: an object with the name exists."""


class Invalid(ApiError):
    """422: validation rejected the object; `details["causes"]` lists the fields."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old; list again."""


class Forbidden(ApiError):
    """403."""


class Unauthorized(ApiError):
    """401."""


class TooManyRequests(ApiError):
    """429, after the retries of the client."""


_BY_REASON: dict[str, type[ApiError]] = {
    "NotFound": NotFound,
    "Conflict": Conflict,
    "AlreadyExists": AlreadyExists,
    "Invalid": Invalid,
    "Gone": Gone,
    "Expired": Gone,
    "Forbidden": Forbidden,
    "Unauthorized": Unauthorized,
    "TooManyRequests": TooManyRequests,
}
_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def in_terminating_namespace(error: Exception) -> bool:
    """Whether a write was rejected because its namespace is being deleted, so that a retry cannot succeed."""
    if not isinstance(error, Forbidden):
        return False
    causes = error.details.get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


UNDECODABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
"""Exceptions of msgspec for malformed input; it raises RecursionError even for deep nesting in skipped fields."""


class Status(msgspec.Struct):
    """metav1.Status, with the fields that are used."""

    kind: str | None = "Status"
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None


_status = msgspec.json.Decoder(Status)


def from_status(http_status: int, status: Status, retry_after: float | None = None) -> ApiError:
    """The exception for a Status object (`code` overrides the HTTP status, which is 200 inside a watch)."""
    code = status.code or http_status
    reason = status.reason or ""
    kind = _BY_REASON.get(reason) or _BY_STATUS.get(code, ApiError)
    return kind(code, reason, status.message or "", status.details, retry_after)


def from_response(http_status: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """The exception for a failure response; a body that is not a Status becomes the message."""
    try:
        status = _status.decode(body)
    except UNDECODABLE:
        status = None
    if status is None or status.kind != "Status":
        text = body[:500].decode("utf-8", "replace").strip()
        status = Status(message=text or f"the server responded with HTTP {http_status}")
    return from_status(http_status, status, retry_after)
