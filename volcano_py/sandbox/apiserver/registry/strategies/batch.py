"""Kubernetes' own Jobs and CronJobs (not Volcano's): defaults, the generated selector, immutable fields."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, invalid_value, required, unsupported
from volcano_py.sandbox.apiserver.registry import declared
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.declared import Declared
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategies.pod_validation import pod_spec_causes
from volcano_py.sandbox.apiserver.registry.strategies.podspec import default_template
from volcano_py.sandbox.apiserver.registry.strategies.root_groups import CLAIM, CONSTRAINTS, MODE
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


_GANG = (Declared("minCount", least=1),)
_POLICY = (Declared("basic", member=True), Declared("gang", lambda: _GANG, member=True))
_SCHEDULING = (
    Declared("schedulingPolicy", lambda: _POLICY, fixed=True),
    Declared("schedulingConstraints", lambda: CONSTRAINTS, immutable=True),
    Declared("disruptionMode", lambda: MODE, immutable=True),
    Declared("resourceClaims", lambda: CLAIM, key="name", most=4, immutable=True),
)
_DECLARED = (Declared("scheduling", lambda: _SCHEDULING, fixed=True),)


def _job(obj: Object, request: Request) -> list[Cause]:
    spec = obj["spec"]
    return [*_job_spec(spec, "spec"), *_minimum(spec), *declared.causes(_DECLARED, spec, None, "spec")]


def _minimum(spec: Object) -> list[Cause]:
    least = _policy(spec).get("gang", {}).get("minCount")
    most = spec.get("parallelism", 1)
    if least is None or least <= most:
        return []
    text = f"must not be greater than parallelism ({most})"
    return [invalid_value("spec.scheduling.schedulingPolicy.gang.minCount", least, text)]


def _policy(spec: Object) -> Object:
    return (spec.get("scheduling") or {}).get("schedulingPolicy") or {}


def _scheduling_update(now: Object, before: Object) -> list[Cause]:
    kinds = [_policy(spec) for spec in (now, before)]
    if all(kinds) and ("basic" in kinds[0]) != ("basic" in kinds[1]):
        text = "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be "
        text += "updated"
        return [invalid_value("spec.scheduling.schedulingPolicy", None, text)]
    return []


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
    now, before = new["spec"], old["spec"]
    out = [*_job_spec(now, "spec"), *_minimum(now), *_scheduling_update(now, before)]
    out += declared.causes(_DECLARED, now, before, "spec")
    for key in ("completions", "selector", "template", "completionMode", "podFailurePolicy"):
        if now.get(key) != before.get(key):
            if key == "template" and before.get("suspend") and not (old.get("status") or {}).get("startTime"):
                continue
            out.append(invalid_value(f"spec.{key}", now.get(key), "field is immutable"))
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
