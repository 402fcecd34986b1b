"""Client library for a Kubernetes API: client, list and watch, informer, work queue, Lease election, event recorder.

Independent of scheduling; it works with any Kubernetes API server and with the sandbox's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from volcano_py.kube.backoff import Backoff
    from volcano_py.kube.client import Client
    from volcano_py.kube.errors import (
        AlreadyExists,
        ApiError,
        Conflict,
        Forbidden,
        Gone,
        Invalid,
        KubeError,
        NotFound,
        TooManyRequests,
        Unauthorized,
        Unreachable,
    )
    from volcano_py.kube.events import EventRecorder
    from volcano_py.kube.informer import Informer
    from volcano_py.kube.leader import LeaderElection
    from volcano_py.kube.wire import Items, Undecodable
    from volcano_py.kube.workqueue import ShutDown, WorkQueue

__all__ = [
    "AlreadyExists",
    "ApiError",
    "Backoff",
    "Client",
    "Conflict",
    "EventRecorder",
    "Forbidden",
    "Gone",
    "Informer",
    "Invalid",
    "Items",
    "KubeError",
    "LeaderElection",
    "NotFound",
    "ShutDown",
    "TooManyRequests",
    "Unauthorized",
    "Undecodable",
    "Unreachable",
    "WorkQueue",
]

_HOMES = {
    "AlreadyExists": "errors",
    "ApiError": "errors",
    "Backoff": "backoff",
    "Client": "client",
    "Conflict": "errors",
    "EventRecorder": "events",
    "Forbidden": "errors",
    "Gone": "errors",
    "Informer": "informer",
    "Invalid": "errors",
    "Items": "wire",
    "KubeError": "errors",
    "LeaderElection": "leader",
    "NotFound": "errors",
    "Undecodable": "wire",
    "ShutDown": "workqueue",
    "TooManyRequests": "errors",
    "Unauthorized": "errors",
    "Unreachable": "errors",
    "WorkQueue": "workqueue",
}


def __getattr__(name: str) -> Any:
    """Import a name on use: a command line that only needs flags starts immediately."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
