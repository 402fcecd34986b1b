"""Python client: submit jobs, wait for them, read their logs, and ask why they wait. Volcano has no counterpart.

    from volcano_py.client import Client, job, task

    @task(cpus=4, gpus=1, image="pytorch/pytorch:2.8.0-cuda12.6-cudnn9-runtime")
    def train(rate: float) -> None:
        print("training with", rate)

    with Client() as client:
        client.submit(job("train", train(rate=0.1)))
        client.wait("train")

`Client` for programs and notebooks, `AsyncClient` with the same methods as coroutines, `sandbox` for a cluster in one
line. docs/client.md is the guide.
"""

from __future__ import annotations

from volcano_py.client.aio import AsyncClient
from volcano_py.client.errors import (
    AlreadyExists,
    ClientError,
    ConfigurationError,
    Conflict,
    Forbidden,
    Invalid,
    JobFailed,
    LogsInterrupted,
    MissingExtra,
    NotFound,
    ServerError,
    TaskError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    WaitTimeout,
)
from volcano_py.client.explanations import Explanation, WhatIf
from volcano_py.client.jobs import Task, from_yaml, job, to_yaml
from volcano_py.client.log_lines import LogLine
from volcano_py.client.sandbox import SandboxCluster, sandbox
from volcano_py.client.sync import Client
from volcano_py.client.tasks import TaskFunction, task
from volcano_py.client.views import Job, Pod, Queue

__all__ = [
    "AlreadyExists",
    "AsyncClient",
    "Client",
    "ClientError",
    "ConfigurationError",
    "Conflict",
    "Explanation",
    "Forbidden",
    "Invalid",
    "Job",
    "JobFailed",
    "LogLine",
    "LogsInterrupted",
    "MissingExtra",
    "NotFound",
    "Pod",
    "Queue",
    "SandboxCluster",
    "ServerError",
    "Task",
    "TaskError",
    "TaskFunction",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "WaitTimeout",
    "WhatIf",
    "from_yaml",
    "job",
    "sandbox",
    "task",
    "to_yaml",
]
