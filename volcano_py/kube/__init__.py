"""Talking to a Kubernetes API: client, list and watch, informer, work queue, Lease election, event recorder.

Knows nothing of scheduling. A real cluster and the sandbox's API server are the same to it.
"""

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
from volcano_py.kube.wire import Items, Refused
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
    "Refused",
    "ShutDown",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "WorkQueue",
]
