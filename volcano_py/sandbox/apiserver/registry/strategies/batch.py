"""Kubernetes' own Jobs and CronJobs (not Volcano's): defaults, the generated selector, immutable fields."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, invalid_value, required, too_many, unsupported
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategies.pod_validation import pod_spec_causes
from volcano_py.sandbox.apiserver.registry.strategies.podspec import default_template
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")


def _default_job_spec(spec: Object) -> None:
    default_template(spec.get("template") or {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    if "podReplacementPolicy" not in spec:
        spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    spec.setdefault("manualSelector", False)


def _default_job(obj: Object) -> None:
    _default_job_spec(obj.setdefault("spec", {}))


def _default_cron_job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = spec.get("jobTemplate") or {}
    if template.get("spec") is not None:
        default_template(template["spec"].get("template") or {})


def _prepare_job(obj: Object, request: Request) -> None:
    spec, meta = obj["spec"], obj["metadata"]
    if not spec.get("manualSelector"):
        template = spec.setdefault("template", {})
        labels = template.setdefault("metadata", {}).setdefault("labels", {})
        labels.setdefault("controller-uid", meta["uid"])
        labels.setdefault("batch.kubernetes.io/controller-uid", meta["uid"])
        labels.setdefault("job-name", meta["name"])
        labels.setdefault("batch.kubernetes.io/job-name", meta["name"])
        spec.setdefault("selector", {}).setdefault("matchLabels", {}).setdefault(
            "batch.kubernetes.io/controller-uid", meta["uid"]
        )
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not meta.get("labels"):
        meta["labels"] = dict(labels)


def _admit_job(api: Api, obj: Object, request: Request) -> None:
    if features.JOB not in api.features:
        obj["spec"].pop("scheduling", None)


def _admit_job_update(api: Api, new: Object, old: Object, request: Request) -> None:
    if features.JOB not in api.features and "scheduling" not in old["spec"]:
        new["spec"].pop("scheduling", None)


def _job(obj: Object, request: Request) -> list[Cause]:
    return [*_job_spec(obj["spec"], "spec"), *_scheduling(obj["spec"].get("scheduling") or {}, "spec.scheduling")]


def _scheduling(scheduling: Object, path: str) -> list[Cause]:
    policy = scheduling.get("schedulingPolicy")
    out: list[Cause] = []
    if policy is not None and len(policy) != 1:
        out.append(invalid_value(f"{path}.schedulingPolicy", policy, "must specify exactly one of: `basic`, `gang`"))
    least = ((policy or {}).get("gang") or {}).get("minCount")
    if least is not None and least < 1:
        out.append(invalid_value(f"{path}.schedulingPolicy.gang.minCount", least, "must be greater than or equal to 1"))
    topology = (scheduling.get("schedulingConstraints") or {}).get("topology") or ()
    if len(topology) > 1:
        out.append(too_many(f"{path}.schedulingConstraints.topology", len(topology), 1))
    return out


def _without_minimum(scheduling: Object | None) -> Object | None:
    """What never changes."""
    policy = (scheduling or {}).get("schedulingPolicy") or {}
    if scheduling is None or not policy.get("gang"):
        return scheduling
    return {**scheduling, "schedulingPolicy": {"gang": {}}}


def _job_spec(spec: Object, path: str) -> list[Cause]:
    out: list[Cause] = []
    for key in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        if spec.get(key, 0) < 0:
            out.append(invalid_value(f"{path}.{key}", spec[key], "must be greater than or equal to 0"))
    inner = (spec.get("template") or {}).get("spec") or {}
    out.extend(pod_spec_causes(inner, f"{path}.template.spec"))
    policy = inner.get("restartPolicy", "Always")
    if policy == "Always":
        text = 'valid values: "OnFailure", "Never"'
        out.append(required(f"{path}.template.spec.restartPolicy", text))
    return out


def _job_update(new: Object, old: Object, request: Request) -> list[Cause]:
    out = _job(new, request)
    now, before = new["spec"], old["spec"]
    for key in ("completions", "selector", "template", "completionMode", "podFailurePolicy"):
        if now.get(key) != before.get(key):
            if key == "template" and before.get("suspend") and not (old.get("status") or {}).get("startTime"):
                continue
            out.append(invalid_value(f"spec.{key}", now.get(key), "field is immutable"))
    if _without_minimum(now.get("scheduling")) != _without_minimum(before.get("scheduling")):
        text = "field is immutable, except for schedulingPolicy.gang.minCount"
        out.append(invalid_value("spec.scheduling", now.get("scheduling"), text))
    return out


def _cron_job(obj: Object, request: Request) -> list[Cause]:
    spec = obj["spec"]
    out: list[Cause] = []
    schedule = spec.get("schedule", "")
    if not schedule:
        out.append(required("spec.schedule"))
    elif not schedule.startswith("@") and len(schedule.split()) != 5:
        text = f"expected exactly 5 fields, found {len(schedule.split())}: [{schedule}]"
        out.append(invalid_value("spec.schedule", schedule, text))
    if spec["concurrencyPolicy"] not in ("Allow", "Forbid", "Replace"):
        out.append(unsupported("spec.concurrencyPolicy", spec["concurrencyPolicy"], ["Allow", "Forbid", "Replace"]))
    out.extend(_job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec"))
    return out


def _warn_orphans(request: Request) -> list[str]:
    options = request.options
    if options.get("propagationPolicy") is not None or options.get("orphanDependents") is not None:
        return []
    return [
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove "
        "them or set propagationPolicy=Orphan to suppress this warning"
    ]


STRATEGIES = {
    "jobs.batch": Strategy(
        default=_default_job,
        prepare_create=_prepare_job,
        admit_create=_admit_job,
        admit_update=_admit_job_update,
        validate_create=_job,
        validate_update=_job_update,
        has_status=True,
        has_generation=True,
        reset_fields=("status",),
        default_propagation="Orphan",
        delete_warnings=_warn_orphans,
        fields=lambda obj: {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))},
        field_names=frozenset({"status.successful"}),
    ),
    "cronjobs.batch": Strategy(
        default=_default_cron_job,
        validate_create=_cron_job,
        validate_update=lambda new, old, request: _cron_job(new, request),
        has_status=True,
        has_generation=True,
        reset_fields=("status",),
    ),
}
