"""Admission policies in CEL, compared with what Volcano's webhooks answered to each recorded request.

A policy must reject nothing that the webhook allowed, and fill in the same defaults. What CEL cannot express is listed
by the recorded reason in `INEXPRESSIBLE`; a policy must reject every other case that the webhook rejected.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.outcome import DEVIATION, FAIL, NO_COUNTERPART, PASS, Outcome
from tests.conformance.webhooks import plain
from volcano_py.sandbox.apiserver.apply.patch import json_patch
from volcano_py.sandbox.apiserver.cel import objects
from volcano_py.sandbox.apiserver.cel.expressions import evaluate_with
from volcano_py.webhooks.job_defaults import defaulted_job
from volcano_py.webhooks.paths import PATHS
from volcano_py.webhooks.policy_documents import documents

Data = dict[str, Any]
AREA = "policies"

_OTHERS = "a policy sees one other queue at a time: "
INEXPRESSIBLE = {
    "queue-not-found": "a policy cannot reject what is missing: the controllers report it",
    "parent-not-found": "a policy cannot reject what is missing: the controllers report it",
    "queue-too-deep": _OTHERS + "it cannot count levels",
    "parent-has-pods": _OTHERS + "whether the parent has children already needs a third",
    "siblings-exceed-parent-deserved": _OTHERS + "no sums over siblings",
    "siblings-exceed-parent-guarantee": _OTHERS + "no sums over siblings",
    "children-exceed-queue": _OTHERS + "no sums over children",
    "jobflow-not-dag": "CEL has no recursion: circles of two or more flows",
    "pod-template-resources-invalid": "whole pod templates: the API server rejects the pods, and the Job reports it",
    "pod-template-invalid": "whole pod templates: the API server rejects the pods, and the Job reports it",
    "cronjob-schedule-invalid": "cron expressions: the CronJob reports it",
    "queue-has-pods": "an option of the webhook manager that is off by default",
    "operation-not-supported": "the API server sends no such operation",
}
"""Recorded reason to why no policy rejects it."""

_SCHEMA = "the CRD or the API server's own rules reject it before any webhook: "
BEFORE = {
    "Derived/job-name-slash": _SCHEMA + "metadata.name",
    "Derived/task-name-dot": _SCHEMA + "spec.tasks[].name",
    "Derived/negative-values": _SCHEMA + "minimum: 0",
}
"""Recorded cases that the webhook allows, but that never reach it."""


def run_folder(folder: Path) -> Iterator[Outcome]:
    """All recorded requests below a folder."""
    policies = list(documents("volcano", mutating="v1"))
    for path in sorted(folder.glob("*.json")):
        for case in json.loads(path.read_text()):
            if "request" in case:
                yield _run(policies, path.stem, case)


def _run(policies: list[Data], file: str, case: Data) -> Outcome:
    name = f"{file}: {case['id']}"
    webhook = PATHS[case["webhook"]]
    kind = "Mutating" if webhook.mutates else "Validating"
    chosen = [
        policy
        for policy in policies
        if policy["kind"] == f"{kind}AdmissionPolicy" and _plural(policy) == webhook.rt.plural
    ]
    if not chosen:
        return Outcome(AREA, name, NO_COUNTERPART, "policies touch no pods")
    try:
        return _mutated(name, chosen, case) if webhook.mutates else _validated(name, chosen, case)
    except Exception as error:
        return Outcome(AREA, name, FAIL, f"{type(error).__name__}: {error}")


def _plural(policy: Data) -> str:
    [rule] = policy["spec"]["matchConstraints"]["resourceRules"]
    plural: str = rule["resources"][0]
    return plural


def _validated(name: str, policies: list[Data], case: Data) -> Outcome:
    rejected = list(rejections(policies, case))
    response = case["response"]
    if response["allowed"] == (not rejected):
        return Outcome(AREA, name, PASS)
    if not rejected:
        reasons = response.get("reason_key", "").split("+")
        why = [INEXPRESSIBLE[reason] for reason in reasons if reason in INEXPRESSIBLE]
        if len(why) == len(reasons):
            return Outcome(AREA, name, NO_COUNTERPART, "; ".join(dict.fromkeys(why)))
        return Outcome(AREA, name, FAIL, f"no policy rejects it: {response.get('observed_message')}")
    if case["id"] in BEFORE:
        return Outcome(AREA, name, NO_COUNTERPART, BEFORE[case["id"]])
    if all("would be a cycle" in message for message in rejected):
        return Outcome(AREA, name, DEVIATION, "queue-cycles: a queue cannot be moved below itself")
    return Outcome(AREA, name, FAIL, f"the webhook allows it, but: {rejected}")


def rejections(policies: list[Data], case: Data) -> Iterator[str]:
    """The messages of the validations that do not hold."""
    request = case["request"]
    existing = [row for row in case.get("existing") or () if row["metadata"].get("name")]
    old = request.get("oldObject")
    if old is None and request["operation"] == "DELETE":
        stored = [row for row in existing if row["metadata"]["name"] == request["name"]]
        old = stored[0] if stored else {"metadata": {"name": request["name"]}}
    data = {"object": request.get("object"), "oldObject": old, "request": {"operation": request["operation"]}}
    for policy in policies:
        spec = policy["spec"]
        [rule] = spec["matchConstraints"]["resourceRules"]
        if request["operation"] not in rule["operations"]:
            continue
        params: list[Data | None] = [None]
        if "paramKind" in spec:
            params = [row for row in existing if row.get("kind") == spec["paramKind"]["kind"]]
        for one in params:
            for validation in spec["validations"]:
                try:
                    holds = evaluate_with(validation["expression"], {**data, "params": one})
                except ValueError as error:
                    yield f"{validation['message']}: {error}"
                    continue
                if holds is not True:
                    yield validation["message"]


def _mutated(name: str, policies: list[Data], case: Data) -> Outcome:
    """Only what is allowed is compared: a policy that mutates rejects nothing."""
    if not case["response"]["allowed"]:
        return Outcome(AREA, name, NO_COUNTERPART, INEXPRESSIBLE["operation-not-supported"])
    namespaces = [row for row in case.get("existing") or () if row.get("kind") == "Namespace"]
    made = copy.deepcopy(case["request"]["object"])
    for policy in policies:
        for mutation in policy["spec"]["mutations"]:
            data = {
                "object": made,
                "request": {"operation": case["request"]["operation"]},
                "namespaceObject": namespaces[0] if namespaces else {"metadata": {}},
            }
            made = json_patch(made, evaluate_with(objects.plain(mutation["jsonPatch"]["expression"]), data))
    wanted = case["response"].get("resulting_object", case["request"]["object"])
    if plain(made) == plain(wanted):
        return Outcome(AREA, name, PASS)
    if case["webhook"] == "/jobs/mutate" and plain(defaulted_job(made)) == plain(defaulted_job(wanted)):
        return Outcome(AREA, name, DEVIATION, "unchanged-applies: defaults of tasks are not stored")
    return Outcome(AREA, name, FAIL, f"made {json.dumps(made)[:400]}, expected {json.dumps(wanted)[:400]}")
