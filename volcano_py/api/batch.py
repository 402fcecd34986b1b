"""Job and CronJob (batch.volcano.sh/v1alpha1).

Pod templates and claim specs are plain JSON: they are passed to the API server unchanged.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import field

from volcano_py.api.meta import ApiObject, ApiType, ObjectReference
from volcano_py.api.scheduling import DEFAULT_QUEUE, NetworkTopology

API_VERSION = "batch.volcano.sh/v1alpha1"

# Job phases
PENDING: Final = "Pending"
ABORTING: Final = "Aborting"
ABORTED: Final = "Aborted"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
COMPLETING: Final = "Completing"
COMPLETED: Final = "Completed"
TERMINATING: Final = "Terminating"
TERMINATED: Final = "Terminated"
FAILED: Final = "Failed"

PHASES = (
    PENDING,
    ABORTING,
    ABORTED,
    RUNNING,
    RESTARTING,
    COMPLETING,
    COMPLETED,
    TERMINATING,
    TERMINATED,
    FAILED,
)

DEFAULT_MAX_RETRY = 3
"""Default restarts of a job, and of a task's containers."""

DEFAULT_TASK_NAME = "default"
"""Default name of a task; the mutating webhook appends the index."""

# dependsOn.iteration
ITERATION_ANY: Final = "any"
ITERATION_ALL: Final = "all"


class LifecyclePolicy(ApiType):
    """On `event` (or one of `events`), or on an exit code, execute `action`, after `timeout`."""

    action: str = ""
    event: str = ""
    events: list[str] | None = None
    exit_code: int | None = None
    timeout: str | None = None


class DependsOn(ApiType):
    name: list[str] | None = None
    iteration: str = ""


class PartitionPolicy(ApiType):
    total_partitions: int = 0
    partition_size: int = 0
    network_topology: NetworkTopology | None = None
    min_partitions: int = 0


class Task(ApiType):
    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    template: dict[str, Any] | None = None
    policies: list[LifecyclePolicy] | None = None
    topology_policy: str = ""
    max_retry: int = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class JobVolume(ApiType):
    """A claim that is mounted in all containers of a job: an existing one, or one to create."""

    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: dict[str, Any] | None = None


class JobSpec(ApiType):
    scheduler_name: str = ""
    min_available: int = 0
    volumes: list[JobVolume] | None = None
    tasks: list[Task] | None = None
    policies: list[LifecyclePolicy] | None = None
    plugins: dict[str, list[str] | None] | None = None
    running_estimate: str | None = None
    queue: str = DEFAULT_QUEUE
    max_retry: int = DEFAULT_MAX_RETRY
    ttl_seconds_after_finished: int | None = None
    priority_class_name: str = ""
    min_success: int | None = None
    network_topology: NetworkTopology | None = None


class JobState(ApiType):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class TaskState(ApiType):
    phase: dict[str, int] | None = None
    """Pods per pod phase."""


class JobCondition(ApiType):
    status: str = ""
    """A job phase."""
    last_transition_time: str | None = None


class JobStatus(ApiType):
    state: JobState = field(default_factory=JobState)
    min_available: int = 0
    task_status_count: dict[str, TaskState] | None = None
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str | None = None
    controlled_resources: dict[str, str] | None = None
    conditions: list[JobCondition] | None = None


class Job(ApiObject):
    api_version: str = API_VERSION
    kind: str = "Job"
    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = field(default_factory=JobStatus)


class JobTemplateSpec(ApiType):
    """The Job that a CronJob creates: metadata (labels and annotations are used) and spec."""

    metadata: dict[str, Any] | None = None
    spec: JobSpec = field(default_factory=JobSpec)


class CronJobSpec(ApiType):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool | None = False
    job_template: JobTemplateSpec = field(default_factory=JobTemplateSpec)
    successful_jobs_history_limit: int | None = 3
    failed_jobs_history_limit: int | None = 1


class CronJobStatus(ApiType):
    active: list[ObjectReference] | None = None
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(ApiObject):
    api_version: str = API_VERSION
    kind: str = "CronJob"
    spec: CronJobSpec = field(default_factory=CronJobSpec)
    status: CronJobStatus = field(default_factory=CronJobStatus)
