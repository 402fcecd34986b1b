"""JobFlow and JobTemplate (flow.volcano.sh/v1alpha1)."""

from __future__ import annotations

from typing import Any

from msgspec import field

from volcano_py.api.batch import JobSpec, TaskState
from volcano_py.api.meta import ApiObject, ApiType

API_VERSION = "flow.volcano.sh/v1alpha1"

# JobFlow phases
SUCCEED = "Succeed"
TERMINATING = "Terminating"
FAILED = "Failed"
RUNNING = "Running"
PENDING = "Pending"

# jobRetainPolicy
RETAIN = "retain"
DELETE = "delete"


class HTTPHeader(ApiType):
    name: str = ""
    value: str = ""


class HTTPGet(ApiType):
    """A GET request to the pods of a task; status 200 to 399 is a success."""

    task_name: str = ""
    path: str = ""
    port: int = 0
    http_header: HTTPHeader | None = None


class TCPSocket(ApiType):
    """A port of the pods of a task that must accept connections."""

    task_name: str = ""
    port: int = 0


class TaskStatus(ApiType):
    """A phase of pods that a task must have reached."""

    task_name: str = ""
    phase: str = ""


class Probe(ApiType):
    """Conditions for the targets' tasks, instead of the targets being Completed."""

    http_get_list: list[HTTPGet] | None = None
    tcp_socket_list: list[TCPSocket] | None = None
    task_status_list: list[TaskStatus] | None = None


class FlowDependsOn(ApiType):
    targets: list[str] | None = None
    probe: Probe | None = None


class Patch(ApiType):
    """The differences from the JobTemplate: plain JSON, because a missing field differs from zero."""

    job_spec: dict[str, Any] | None = None


class Flow(ApiType):
    name: str = ""
    depends_on: FlowDependsOn | None = None
    patch: Patch | None = None


class JobFlowSpec(ApiType):
    flows: list[Flow] | None = None
    job_retain_policy: str = ""


class RunningHistory(ApiType):
    start_timestamp: str | None = None
    end_timestamp: str | None = None
    state: str = ""


class FlowJobStatus(ApiType):
    name: str = ""
    state: str = ""
    start_timestamp: str | None = None
    end_timestamp: str | None = None
    restart_count: int = 0
    running_histories: list[RunningHistory] | None = None


class FlowJobCondition(ApiType):
    phase: str = ""
    create_time: str | None = None
    running_duration: str | None = None
    task_status_count: dict[str, TaskState] | None = None


class JobFlowState(ApiType):
    phase: str = ""


class JobFlowStatus(ApiType):
    pending_jobs: list[str] | None = None
    running_jobs: list[str] | None = None
    failed_jobs: list[str] | None = None
    completed_jobs: list[str] | None = None
    terminated_jobs: list[str] | None = None
    unknown_jobs: list[str] | None = field(default=None, name="unKnowJobs")
    job_status_list: list[FlowJobStatus] | None = None
    conditions: dict[str, FlowJobCondition] | None = None
    state: JobFlowState = field(default_factory=JobFlowState)


class JobFlow(ApiObject):
    api_version: str = API_VERSION
    kind: str = "JobFlow"
    spec: JobFlowSpec = field(default_factory=JobFlowSpec)
    status: JobFlowStatus = field(default_factory=JobFlowStatus)


class JobTemplateStatus(ApiType):
    job_depends_on_list: list[str] | None = None


class JobTemplate(ApiObject):
    """A named Job spec."""

    api_version: str = API_VERSION
    kind: str = "JobTemplate"
    spec: JobSpec = field(default_factory=JobSpec)
    status: JobTemplateStatus = field(default_factory=JobTemplateStatus)
