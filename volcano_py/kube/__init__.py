"""Talking to a Kubernetes API: client, list and watch, informer, work queue, Lease election, event recorder.

Knows nothing of scheduling. A real cluster and the sandbox's API server are the same to it.
"""

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

__all__ = [
    "AlreadyExists",
    "ApiError",
    "Client",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "KubeError",
    "NotFound",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
]
