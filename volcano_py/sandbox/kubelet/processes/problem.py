"""Errors that prevent the start of a pod or a container for now.

Kubernetes: the kubelet's errors such as CreateContainerConfigError.
"""

from __future__ import annotations


class NotReady(Exception):
    """The start is retried. reason: the container's waiting reason; event: the reason of the Event."""

    def __init__(self, reason: str, event: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.event = event


def config_error(message: str) -> NotReady:
    """A container refers to an object that does not exist."""
    return NotReady("CreateContainerConfigError", "Failed", message)


def failed_mount(volume: str, message: str) -> NotReady:
    """A pod's volume cannot be set up."""
    return NotReady("ContainerCreating", "FailedMount", f'MountVolume.SetUp failed for volume "{volume}" : {message}')
