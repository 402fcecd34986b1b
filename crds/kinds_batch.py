"""Schemas of the kinds that run work: Job, CronJob, JobFlow, JobTemplate, Command."""

from __future__ import annotations

from podspec import core_type
from schema import (
    DNS_LABEL,
    Schema,
    atomic_list,
    boolean,
    enum,
    int32,
    int64,
    integer,
    list_of,
    map_of,
    object_reference,
    string,
    struct,
    subdomain,
    template_metadata,
    time,
)

EVENTS = (
    "*",
    "PodPending",
    "PodRunning",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "OutOfSync",
    "CommandIssued",
    "JobUpdated",
    "TaskFailed",
)
JOB_PHASES = (
    "Pending",
    "Aborting",
    "Aborted",
    "Running",
    "Restarting",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
)


def network_topology(description: str) -> Schema:
    return struct(
        description,
        highestTierAllowed=integer("The highest tier of HyperNodes that pods may spread over."),
        highestTierName=string("The same, by the tier's name.", maxLength=253),
        mode=enum("hard: must; soft: should.", "hard", "soft", default="hard"),
    )


def pod_template() -> Schema:
    return struct(
        "The pods of this task.",
        metadata=template_metadata("Metadata of the pods; the name is chosen by the controller."),
        spec=core_type("PodSpec"),
    )


def policies(description: str) -> Schema:
    return list_of(
        struct(
            "What to do when something happens to a pod.",
            action=string("The action, such as RestartJob or TerminateJob."),
            event=enum("The event that leads to the action.", *EVENTS),
            events=list_of(enum("", *EVENTS), "Several events that lead to the action."),
            exitCode=int32("The exit code of a container that leads to the action.", minimum=None),
            timeout=string("How long to wait before the action is carried out."),
        ),
        description,
    )


def task() -> Schema:
    return struct(
        "Pods that are alike.",
        dependsOn=struct(
            "Tasks that must have got somewhere before the pods of this one are made.",
            iteration=string("any or all of the named tasks."),
            name=list_of(string(), "Names of tasks."),
        ),
        maxRetry=int32("Container restarts after which the task counts as failed."),
        minAvailable=int32("Pods the gang needs of this task."),
        name=string("The task's name, unique in the job.", maxLength=63, pattern=DNS_LABEL),
        partitionPolicy=struct(
            "Divides the pods into groups that are placed together.",
            required=("partitionSize", "totalPartitions"),
            minPartitions=int32("Partitions the gang needs.", default=0),
            networkTopology=network_topology("How close together the pods of one partition are placed."),
            partitionSize=int32("Pods in a partition.", minimum=1),
            totalPartitions=int32("Number of partitions.", minimum=1),
        ),
        policies=policies("Policies of this task; they win over the job's."),
        replicas=int32("Number of pods."),
        template=pod_template(),
        topologyPolicy=enum("NUMA policy of the pods.", "none", "best-effort", "restricted", "single-numa-node"),
    )


def job_spec(description: str) -> Schema:
    volume = struct(
        "A volume that all pods of the job mount; name one claim or describe one.",
        required=("mountPath",),
        mountPath=string("Where the containers find it.", minLength=1, pattern="^[^:]+$"),
        volumeClaim=core_type("PersistentVolumeClaimSpec"),
        volumeClaimName=string("An existing PersistentVolumeClaim.", maxLength=253),
    )
    return struct(
        description,
        maxRetry=int32("How often the job may be restarted.", default=3),
        minAvailable=int32("Pods that must be able to run together."),
        minSuccess=int32("Succeeded pods that make the job complete.", minimum=1),
        networkTopology=network_topology("How close together the pods of the job are placed."),
        plugins=map_of(list_of(string()), "Job plugins with their arguments."),
        policies=policies("Policies of all tasks."),
        priorityClassName=subdomain("PriorityClass of the job and of pods without one."),
        queue=subdomain("The queue the job is submitted to.", default="default"),
        runningEstimate=string("How long the job is expected to run."),
        schedulerName=string("The scheduler of pods whose template names none.", maxLength=63),
        tasks=list_of(task(), "The tasks of the job.", minItems=1),
        ttlSecondsAfterFinished=int32("Seconds after which a finished job is deleted."),
        volumes=list_of(volume, "Volumes of all pods."),
    )


def task_status_count() -> Schema:
    return map_of(
        struct("Pods of a task.", phase=map_of(int32(minimum=None), "Number of pods in each pod phase.")),
        "Pods of each task, by phase.",
    )


def job() -> Schema:
    status = struct(
        "Where the job stands.",
        conditions=list_of(
            struct(
                "When the job entered a phase.",
                required=("status",),
                lastTransitionTime=time(),
                status=enum("The phase.", *JOB_PHASES),
            ),
            "The phases the job went through, newest last.",
        ),
        controlledResources=map_of(string(), "What plugins and volumes have made for the job."),
        failed=int32("Failed pods."),
        minAvailable=int32("The gang size last seen."),
        pending=int32("Pending pods."),
        retryCount=int32("Restarts so far."),
        running=int32("Running pods."),
        runningDuration=string("How long the job has existed until its pods were last ended."),
        state=struct(
            "The state of the job.",
            lastTransitionTime=time(),
            message=string(),
            phase=enum("The phase.", *JOB_PHASES),
            reason=string(),
        ),
        succeeded=int32("Succeeded pods."),
        taskStatusCount=task_status_count(),
        terminating=int32("Pods that are being deleted."),
        unknown=int32("Pods in an unknown phase."),
        version=int32("Grows whenever all pods are ended."),
    )
    return struct("A batch job: tasks whose pods start together.", spec=job_spec("What to run."), status=status)


def cronjob() -> Schema:
    spec = struct(
        "When to make Jobs, and which.",
        required=("jobTemplate", "schedule"),
        concurrencyPolicy=enum("What if the last Job still runs.", "Allow", "Forbid", "Replace", default="Allow"),
        failedJobsHistoryLimit=int32("Failed Jobs to keep.", default=1),
        jobTemplate=struct(
            "The Job to make.",
            metadata=template_metadata("Labels and annotations of the Jobs."),
            spec=job_spec("The spec of the Jobs."),
        ),
        schedule=string("Five cron fields, or a descriptor such as @hourly."),
        startingDeadlineSeconds=int64("How late a Job may still be started."),
        successfulJobsHistoryLimit=int32("Completed Jobs to keep.", default=3),
        suspend=boolean("Make no new Jobs.", default=False),
        timeZone=string("IANA name of the zone of the schedule."),
    )
    status = struct(
        "What has been made.",
        active=atomic_list(object_reference("A running Job."), "Jobs that have not finished."),
        lastScheduleTime=time("When a Job was last made."),
        lastSuccessfulTime=time("When a Job last completed."),
    )
    return struct("Makes Jobs on a schedule.", spec=spec, status=status)


def jobtemplate() -> Schema:
    return struct(
        "The spec of a Job under a name, for JobFlows.",
        spec=job_spec("The spec of the Jobs."),
        status=struct(
            "What has been made from it.",
            jobDependsOnList=list_of(string(), "Jobs made from this template."),
        ),
    )


def probe() -> Schema:
    header = struct("A header.", required=("name", "value"), name=string("Its name."), value=string("Its value."))
    task_name = string("The task that is probed.", maxLength=253)
    return struct(
        "Accepted, but not evaluated.",
        httpGetList=list_of(
            struct(
                "An HTTP request.",
                httpHeader=header,
                path=string("The path."),
                port=integer("The port.", maximum=65535),
                taskName=task_name,
            )
        ),
        taskStatusList=list_of(
            struct("A phase of a task.", phase=string("The phase.", maxLength=63), taskName=task_name)
        ),
        tcpSocketList=list_of(
            struct(
                "A connection.",
                required=("port",),
                port=integer("The port.", maximum=65535),
                taskName=task_name,
            )
        ),
    )


def jobflow() -> Schema:
    flow = struct(
        "One Job of the flow.",
        required=("name",),
        dependsOn=struct(
            "What must be done before.",
            probe=probe(),
            targets=list_of(string(), "Flows that must have completed."),
        ),
        name=string("The JobTemplate the Job is made from.", minLength=1),
        patch=struct("Accepted, but not applied.", jobSpec=job_spec("Changes to the template.")),
    )
    history = struct(
        "A span of time in one phase.",
        endTimestamp=time(),
        startTimestamp=time(),
        state=string("The phase."),
    )
    job_status = struct(
        "One Job of the flow.",
        endTimestamp=time(),
        name=string(),
        restartCount=int32(),
        runningHistories=list_of(history),
        startTimestamp=time(),
        state=string("The phase of the Job."),
    )
    job_condition = struct(
        "One Job of the flow.",
        createTime=time(),
        phase=string("The phase of the Job."),
        runningDuration=string(),
        taskStatusCount=task_status_count(),
    )
    names = {
        f"{state}Jobs": list_of(string())
        for state in ("completed", "failed", "pending", "running", "terminated", "unKnow")
    }
    status = struct(
        "Where the flow stands.",
        conditions=map_of(job_condition, "The Jobs of the flow, by name."),
        jobStatusList=list_of(job_status),
        state=struct(
            "The state of the flow.",
            phase=enum("The phase.", "Succeed", "Terminating", "Failed", "Running", "Pending"),
        ),
        **names,
    )
    spec = struct(
        "What to run in which order.",
        flows=list_of(flow, "The Jobs of the flow."),
        jobRetainPolicy=enum("What becomes of the Jobs when the flow has succeeded.", "retain", "delete"),
    )
    return struct("Jobs that depend on each other.", spec=spec, status=status)


def command() -> Schema:
    target = struct(
        "The object that is to act: a Job or a Queue.",
        required=("apiVersion", "kind", "name", "uid"),
        apiVersion=string(),
        blockOwnerDeletion=boolean(),
        controller=boolean(),
        kind=string(),
        name=string(),
        uid=string(),
    )
    target["x-kubernetes-map-type"] = "atomic"
    return struct(
        "Asks a controller for an action; it is deleted before it is carried out.",
        action=string("The action, such as AbortJob, ResumeJob, OpenQueue or CloseQueue."),
        message=string("For people."),
        reason=string("Why, in one word."),
        target=target,
    )
