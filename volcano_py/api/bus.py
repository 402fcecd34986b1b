"""Command (bus.volcano.sh/v1alpha1), and the actions and events of jobs and queues."""

from __future__ import annotations

from typing import Final

from msgspec import field

from volcano_py.api.meta import ApiObject, OwnerReference

API_VERSION = "bus.volcano.sh/v1alpha1"

# Actions
ABORT_JOB: Final = "AbortJob"
RESTART_JOB: Final = "RestartJob"
RESTART_TASK: Final = "RestartTask"
RESTART_POD: Final = "RestartPod"
RESTART_PARTITION: Final = "RestartPartition"
TERMINATE_JOB: Final = "TerminateJob"
COMPLETE_JOB: Final = "CompleteJob"
RESUME_JOB: Final = "ResumeJob"
SYNC_JOB: Final = "SyncJob"
ENQUEUE_JOB: Final = "EnqueueJob"
SYNC_QUEUE: Final = "SyncQueue"
OPEN_QUEUE: Final = "OpenQueue"
CLOSE_QUEUE: Final = "CloseQueue"

# Events
ANY_EVENT: Final = "*"
POD_PENDING: Final = "PodPending"
POD_RUNNING: Final = "PodRunning"
POD_FAILED: Final = "PodFailed"
POD_EVICTED: Final = "PodEvicted"
JOB_UNKNOWN: Final = "Unknown"
TASK_COMPLETED: Final = "TaskCompleted"
TASK_FAILED: Final = "TaskFailed"
OUT_OF_SYNC: Final = "OutOfSync"
COMMAND_ISSUED: Final = "CommandIssued"
JOB_UPDATED: Final = "JobUpdated"
MAX_RUN_TIME_EXCEEDED: Final = "MaxRunTimeExceeded"  # not in Volcano; policies cannot use it


class Command(ApiObject):
    """Requests an action from the controller of `target` (a Job or a Queue); deleted before the action is executed."""

    api_version: str = API_VERSION
    kind: str = "Command"
    action: str = ""
    target: OwnerReference | None = field(default=None)
    reason: str = ""
    message: str = ""
