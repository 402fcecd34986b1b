"""Exceptions of the Python client: each has the object, the field if one is known, and the remedy.

No exception of the HTTP library reaches the caller: `translating` converts those of `volcano_py.kube`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from volcano_py.kube import errors as kube
from volcano_py.kube import remedies

if TYPE_CHECKING:
    from volcano_py.client.views import Job
    from volcano_py.kube.client import Client

_FIELD = re.compile(r"\b((?:spec|metadata|status)(?:\.[A-Za-z]\w*|\[\d+\])+)")
_WEBHOOK = "admission webhook"


class ClientError(Exception):
    """Base of all exceptions of this package.

    `object`: what the call was about, such as `job default/train`. `field`: the path of the invalid field, or an empty
    string. `remedy`: what to do.
    """

    def __init__(self, message: str, *, object: str = "", field: str = "", remedy: str = "") -> None:
        text = f"{object}: {message}" if object and object not in message else message
        super().__init__(f"{text}; {remedy}" if remedy and remedy not in text else text)
        self.object = object
        self.field = field
        self.remedy = remedy


class ConfigurationError(ClientError):
    """The client has no usable kubeconfig or service account."""


class Unreachable(ClientError):
    """No response from the API server."""


class Unauthorized(ClientError):
    """The API server does not accept the credentials."""


class Forbidden(ClientError):
    """The user lacks a permission; the remedy grants it."""


class NotFound(ClientError):
    """The object, or its kind, does not exist."""


class AlreadyExists(ClientError):
    """An object with this name exists."""


class Conflict(ClientError):
    """Another client has changed the object at the same time."""


class Invalid(ClientError):
    """The object was rejected, by the client, the API server or a webhook; `field` is the first invalid one."""


class TooManyRequests(ClientError):
    """The API server is overloaded, also after retries."""


class ServerError(ClientError):
    """Any other failure that the API server reports."""


class JobFailed(ClientError):
    """A job cannot reach the phase that `wait` waits for. `job` is its last state, None if it was deleted."""

    def __init__(self, message: str, *, object: str = "", remedy: str = "", job: Job | None = None) -> None:
        super().__init__(message, object=object, field="status.state.phase", remedy=remedy)
        self.job = job


class WaitTimeout(ClientError, TimeoutError):
    """`wait` has reached its time limit; the message contains the state and the reason."""


class LogsInterrupted(ClientError):
    """The log of a pod broke off, and cannot be continued. All lines before were returned."""


class TaskError(ClientError):
    """A function cannot run as a task; `field` is the name in it that is not available in the pod."""


class MissingExtra(ClientError):
    """An optional package is not installed."""


_KINDS: dict[type[kube.KubeError], type[ClientError]] = {
    kube.Unreachable: Unreachable,
    kube.Unauthorized: Unauthorized,
    kube.Forbidden: Forbidden,
    kube.NotFound: NotFound,
    kube.AlreadyExists: AlreadyExists,
    kube.Conflict: Conflict,
    kube.Invalid: Invalid,
    kube.TooManyRequests: TooManyRequests,
}
_REMEDIES: dict[type[ClientError], str] = {
    Unreachable: "check that the API server runs, and its address in the kubeconfig",
    Unauthorized: "check the user's token or certificate in the kubeconfig",
    AlreadyExists: "delete it, or use another name",
    Conflict: "read the object again and repeat the change",
    TooManyRequests: "repeat the call later",
    ServerError: "see the log of the API server",
    NotFound: "list existing ones with client.jobs() or client.queues()",
    Invalid: "correct the field",
}


def translated(error: kube.KubeError, object: str = "", client: Client | None = None) -> ClientError:
    """The exception of this package for one of `volcano_py.kube`."""
    kind: type[ClientError] = next((own for of, own in _KINDS.items() if isinstance(error, of)), ServerError)
    text = " ".join(str(error).split())
    if _WEBHOOK in text and kind in (ServerError, Forbidden):
        kind = Invalid
    remedy = _REMEDIES.get(kind, "")
    if kind is Forbidden:
        remedy = remedies.for_denied(text).removeprefix("; ")
        remedy = remedy or "grant the permission: docs/security.md"
    if kind in (Unreachable, Unauthorized) and client is not None and client.credentials.tls is not None:
        remedy = client.credentials.tls.problem() or remedy
    if kind is NotFound and "could not find the requested resource" in text:
        remedy = f"install the CRDs of Volcano: {remedies.UPDATE_CRDS}"
    field = _field(error, text) if kind is Invalid else ""
    if kind is Invalid:
        # the sentence of an admission rule ends with its own remedy
        head, separator, own = text.rpartition("; ")
        remedy = own if separator and _WEBHOOK in head else remedy
    return kind(text, object=object, field=field, remedy=remedy)


def _field(error: kube.KubeError, text: str) -> str:
    """The first invalid field of a rejected object."""
    details = error.details if isinstance(error, kube.ApiError) else {}
    for cause in details.get("causes") or ():
        if cause.get("field"):
            return str(cause["field"])
    found = _FIELD.search(text)
    return found[1] if found else ""


@contextmanager
def translating(object: str = "", client: Client | None = None) -> Iterator[None]:
    """Convert exceptions of `volcano_py.kube` in a block."""
    try:
        yield
    except ClientError:
        raise  # a WaitTimeout is an OSError, too
    except kube.KubeError as error:
        raise translated(error, object, client) from None
    except OSError as error:
        raise Unreachable(str(error), object=object, remedy=_REMEDIES[Unreachable]) from None
