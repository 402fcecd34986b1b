"""What keeps a pod or a container from being started for now."""

from __future__ import annotations


class NotReady(Exception):
    """It is retried. reason: the container's waiting reason; event: the reason of the Event."""

    def __init__(self, reason: str, event: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.event = event


def config_error(message: str) -> NotReady:
    """A container refers to something that is not there."""
    return NotReady("CreateContainerConfigError", "Failed", message)


def failed_mount(volume: str, message: str) -> NotReady:
    """A pod's volume cannot be set up."""
    return NotReady("ContainerCreating", "FailedMount", f'MountVolume.SetUp failed for volume "{volume}" : {message}')
