"""Checks of the installation: versions, clock, rights, CRDs, programs with their images, leaders, webhooks."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from volcano_py import __version__
from volcano_py.api import selector
from volcano_py.api.kinds import (
    CUSTOMRESOURCEDEFINITION,
    DEPLOYMENT,
    MUTATINGWEBHOOKCONFIGURATION,
    POD,
    SERVICE,
    VALIDATINGWEBHOOKCONFIGURATION,
    VOLCANO,
)
from volcano_py.api.meta import LabelSelector, parse_time
from volcano_py.doctor.facts import Facts, Right, programs_of
from volcano_py.doctor.finding import Finding
from volcano_py.kube.definitions import MOST_NAMED
from volcano_py.kube.remedies import UPDATE_CRDS
from volcano_py.webhooks.registration import PREFIX

Manifest = dict[str, Any]
SUPPORTED = ((1, 31), (1, 37))
"""The oldest and the newest version of Kubernetes that the tests run on."""
MAX_SKEW = 5.0
"""Seconds; Leases, back-offs and `sla` compare times of several machines."""
PROGRAMS = {"scheduler": "volcano", "controller-manager": "vc-controller-manager"}
"""Programs that every installation has, with their Leases."""
_LATE = 2.0
_SECONDS_OF_A_MONTH = 30 * 86400.0
_PULLING = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
HOW = "docs/installation.md#the-image"


def installation_findings(facts: Facts) -> Iterator[Finding]:
    """The problems of an installation."""
    yield from _version(facts)
    yield from _clock(facts)
    yield from _rights(facts)
    yield from _crds(facts)
    if not facts.sandbox:  # its programs are processes of the machine
        yield from _programs(facts)
        yield from _leaders(facts)
    yield from _webhooks(facts)


def _version(facts: Facts) -> Iterator[Finding]:
    found = re.match(r"v?(\d+)\.(\d+)", facts.version)
    if found is None:
        return
    number = (int(found[1]), int(found[2]))
    oldest, newest = (".".join(map(str, one)) for one in SUPPORTED)
    if number < SUPPORTED[0]:
        yield Finding(
            "error", "version", f"the API server is {facts.version}", f"upgrade Kubernetes to {oldest} or later"
        )
    elif number > SUPPORTED[1]:
        yield Finding(
            "warning",
            "version",
            f"the API server is {facts.version}; volcano-py {__version__} is tested with {oldest} to {newest}",
            "upgrade volcano-py (docs/releases.md)",
        )


def _clock(facts: Facts) -> Iterator[Finding]:
    remedy = "synchronize the clocks: timedatectl set-ntp true"
    if facts.skew is not None and abs(facts.skew) > MAX_SKEW:
        order = "ahead of" if facts.skew > 0 else "behind"
        what = f"the clock of this machine is {abs(facts.skew):.0f} s {order} that of the API server"
        yield Finding("warning", "clock", what, remedy)
    if facts.skew is None:
        return
    for lease in facts.node_leases:
        renewed = (lease.get("spec") or {}).get("renewTime")
        ahead = parse_time(str(renewed)) - facts.now if renewed else 0.0
        if ahead > MAX_SKEW:
            what = f"the clock of node {lease['metadata']['name']} is {ahead:.0f} s ahead of that of the API server"
            yield Finding("warning", "clock", what, f"on the node, {remedy}")


def _rights(facts: Facts) -> Iterator[Finding]:
    if facts.denied:
        who = facts.user or "USER"
        what = f"user {who} may not {_listed(facts.denied)}"
        yield Finding("warning", "rights", what, _grant("volcano-user", facts.denied, f"--user={who}"))
    for (program, account), denied in facts.denied_programs.items():
        what = f"service account {account} of the {program} may not {_listed(denied)}"
        subject = f"--serviceaccount={facts.namespace}:{account}"
        yield Finding("error", "rights", what, f"{_grant(f'{account}-more', denied, subject)}, or helm upgrade")


def _listed(rights: list[Right]) -> str:
    return ", ".join(f"{verb} {resource}{f'.{group}' if group else ''}" for verb, group, resource in rights)


def _grant(name: str, rights: list[Right], subject: str) -> str:
    verbs = ",".join(sorted({verb for verb, _, _ in rights}))
    named = []
    for _, group, resource in rights:
        plural, slash, subresource = resource.partition("/")
        named.append(f"{plural}{f'.{group}' if group else ''}{slash}{subresource}")
    resources = ",".join(dict.fromkeys(named))
    return (
        f"kubectl create clusterrole {name} --verb={verbs} --resource={resources} && "
        f"kubectl create clusterrolebinding {name} --clusterrole={name} {subject}"
    )


def _crds(facts: Facts) -> Iterator[Finding]:
    there = {crd["metadata"]["name"]: crd for crd in facts.of(CUSTOMRESOURCEDEFINITION)}
    missing = [f"{rt.plural}.{rt.group}" for rt in VOLCANO if f"{rt.plural}.{rt.group}" not in there]
    if missing and facts.read(CUSTOMRESOURCEDEFINITION):
        yield Finding("error", "crds", f"CRDs are missing: {', '.join(missing)}", f"install them: {UPDATE_CRDS}")
    for name, parts in facts.older.items():
        more = f" and {len(parts) - MOST_NAMED} more" if len(parts) > MOST_NAMED else ""
        what = f"CRD {name} is older than volcano-py {__version__}: it lacks {', '.join(parts[:MOST_NAMED])}{more}"
        yield Finding("error", "crds", what, f"update it: {UPDATE_CRDS}")
    for name, crd in there.items():
        conditions = (crd.get("status") or {}).get("conditions") or ()
        rejected = [c for c in conditions if c.get("type") == "NamesAccepted" and c.get("status") == "False"]
        if name.endswith(".volcano.sh") and rejected:
            what = f"CRD {name} is not served: {rejected[0].get('message')}"
            yield Finding("error", "crds", what, "delete the CRD that has the same names")


def _programs(facts: Facts) -> Iterator[Finding]:
    if not facts.read(DEPLOYMENT):
        return
    running = {program: d for d in facts.of(DEPLOYMENT) for program in programs_of(d)}
    for program in PROGRAMS:
        if program not in running:
            what = f"no Deployment in namespace {facts.namespace} runs `volcano-py {program}`"
            remedy = "install the chart (docs/installation.md), or set --namespace to that of the installation"
            yield Finding("error", "programs", what, remedy)
    for program, deployment in running.items():
        yield from _deployment(facts, program, deployment)
    images = {str(_containers(d)[0].get("image")): d["metadata"]["name"] for d in running.values()}
    if len(images) > 1:
        what = "the programs have different images: " + ", ".join(f"{of} {image}" for image, of in images.items())
        yield Finding("warning", "image", what, "helm upgrade with one image.tag for all of them")
    for image, of in images.items():
        tag = image.rpartition(":")[2]
        if re.fullmatch(r"v?\d+\.\d+\.\d+", tag) and tag.removeprefix("v") != __version__:
            what = f"Deployment {of} runs {tag}, and this is volcano-py {__version__}"
            yield Finding("note", "version", what, f"pip install 'volcano-py=={tag.removeprefix('v')}', or upgrade it")
    for deployment in facts.of(DEPLOYMENT):
        image = str(_containers(deployment)[0].get("image"))
        if "vc-scheduler" in image and "scheduler" in running and (deployment["spec"].get("replicas", 1) or 0) > 0:
            what = f"Deployment {deployment['metadata']['name']} runs Volcano's scheduler beside that of volcano-py"
            yield Finding("error", "programs", what, "scale one of them to 0 (docs/migration.md)")


def _containers(deployment: Manifest) -> list[Manifest]:
    return deployment["spec"]["template"]["spec"].get("containers") or [{}]


def _deployment(facts: Facts, program: str, deployment: Manifest) -> Iterator[Finding]:
    name = f"Deployment {deployment['metadata']['name']}"
    wanted = deployment["spec"].get("replicas")
    wanted = 1 if wanted is None else wanted
    if wanted == 0:
        remedy = f"kubectl scale -n {facts.namespace} deployment/{deployment['metadata']['name']} --replicas=1"
        yield Finding("error", "programs", f"{name} of the {program} has no replicas", remedy)
        return
    ready = (deployment.get("status") or {}).get("readyReplicas") or 0
    if ready >= wanted:
        return
    found = list(_pods(facts, deployment))
    yield from found
    if not found:
        what = f"{name} of the {program}: {ready} of {wanted} replicas are ready"
        remedy = f"kubectl describe -n {facts.namespace} deployment/{deployment['metadata']['name']}"
        yield Finding("error" if ready == 0 else "warning", "programs", what, remedy)


def _pods(facts: Facts, deployment: Manifest) -> Iterator[Finding]:
    """Why the pods of a Deployment are not ready."""
    labels = (deployment["spec"].get("selector") or {}).get("matchLabels") or {}
    chosen = LabelSelector(match_labels=labels)
    for pod in facts.of(POD):
        metadata = pod["metadata"]
        if metadata.get("namespace") != facts.namespace or not selector.matches(chosen, metadata.get("labels") or {}):
            continue
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            waiting = (status.get("state") or {}).get("waiting") or {}
            reason, why = str(waiting.get("reason", "")), str(waiting.get("message", ""))
            if reason in _PULLING:
                what = f"pod {metadata['name']}: image {status.get('image')} cannot be pulled: {reason} {why}".strip()
                remedy = f"build it, and load it into the nodes or push it to a registry ({HOW})"
                yield Finding("error", "image", what, remedy)
            elif reason == "CrashLoopBackOff":
                what = f"pod {metadata['name']} ends again and again: {why}"
                remedy = f"kubectl logs -n {facts.namespace} {metadata['name']} --previous"
                yield Finding("error", "programs", what, remedy)
        for c in (pod.get("status") or {}).get("conditions") or ():
            if c.get("type") == "PodScheduled" and c.get("status") == "False":
                what = f"pod {metadata['name']} is not scheduled: {c.get('message')}"
                remedy = "its schedulerName must be one that runs (default-scheduler), and a node must have capacity"
                yield Finding("error", "programs", what, remedy)


def _leaders(facts: Facts) -> Iterator[Finding]:
    leases = {lease["metadata"]["name"]: lease.get("spec") or {} for lease in facts.leases}
    for program, name in PROGRAMS.items():
        deployment = next((d for d in facts.of(DEPLOYMENT) if program in programs_of(d)), None)
        if deployment is None:
            continue
        words = [word for c in _containers(deployment) for word in c.get("args") or ()]
        if "--leader-elect=false" in words:
            continue
        where = f"Lease {facts.namespace}/{name} of the {program}"
        logs = f"kubectl logs -n {facts.namespace} deployment/{deployment['metadata']['name']}"
        spec = leases.get(name)
        if spec is None or not spec.get("holderIdentity"):
            state = "does not exist" if spec is None else "has no holder"
            yield Finding("error", "leader", f"{where} {state}: no replica leads", f"see why: {logs}")
            continue
        renewed = spec.get("renewTime")
        late = facts.now - parse_time(str(renewed)) if renewed else 0.0
        if late > _LATE * float(spec.get("leaseDurationSeconds") or 15):
            what = f"{where} was renewed {late:.0f} s ago by {spec['holderIdentity']}: its holder does not run"
            yield Finding(
                "error",
                "leader",
                what,
                f"restart it: kubectl rollout restart -n {facts.namespace} deployment/{deployment['metadata']['name']}",
            )


def _webhooks(facts: Facts) -> Iterator[Finding]:
    for rt in (MUTATINGWEBHOOKCONFIGURATION, VALIDATINGWEBHOOKCONFIGURATION):
        for configuration in facts.of(rt):
            name = configuration["metadata"]["name"]
            if name.startswith(PREFIX):
                for webhook in configuration.get("webhooks") or ():
                    yield from _webhook(facts, f"{rt.kind} {name}", webhook)


def _webhook(facts: Facts, where: str, webhook: Manifest) -> Iterator[Finding]:
    level: Any = "error" if webhook.get("failurePolicy", "Fail") == "Fail" else "warning"
    config = webhook.get("clientConfig") or {}
    yield from _bundle(facts, where, str(config.get("caBundle") or ""), level)
    service = config.get("service")
    if service is None:
        return
    name = f"Service {service.get('namespace')}/{service.get('name')}"
    deny = f"kubectl delete {where.split()[0].lower()} {where.split()[1]}"
    if service.get("namespace") != facts.namespace:
        what = f"{where} calls {name}, which is not in namespace {facts.namespace}"
        yield Finding(level, "webhooks", what, f"if it is left over from another installation: {deny}")
        return
    found = next((s for s in facts.of(SERVICE) if s["metadata"]["name"] == service.get("name")), None)
    if found is None:
        if facts.read(SERVICE):
            yield Finding(level, "webhooks", f"{where} calls {name}, which does not exist", f"helm upgrade, or {deny}")
        return
    chosen = LabelSelector(match_labels=(found.get("spec") or {}).get("selector") or {})
    behind = [
        pod
        for pod in facts.of(POD)
        if pod["metadata"].get("namespace") == facts.namespace
        and selector.matches(chosen, pod["metadata"].get("labels") or {})
        and any(c.get("type") == "Ready" and c.get("status") == "True" for c in pod["status"].get("conditions") or ())
    ]
    if facts.read(POD) and not behind:
        what = f"{where} calls {name}, behind which no pod is ready: Jobs cannot be created"
        remedy = f"kubectl rollout status -n {facts.namespace} deployment/volcano-admission; until it runs, {deny}"
        yield Finding(level, "webhooks", what, remedy)


def _bundle(facts: Facts, where: str, bundle: str, level: Any) -> Iterator[Finding]:
    remedy = f"restart the webhook manager, which writes it: kubectl rollout restart -n {facts.namespace} "
    remedy += "deployment/volcano-admission"
    if not bundle:
        yield Finding(level, "webhooks", f"{where} has no caBundle: the API server cannot call it", remedy)
        return
    from cryptography import x509

    try:
        certificates = x509.load_pem_x509_certificates(base64.b64decode(bundle))
        ends = max(one.not_valid_after_utc.timestamp() for one in certificates)
    except ValueError:
        yield Finding(level, "webhooks", f"{where}: caBundle contains no certificate", remedy)
        return
    if ends < facts.now:
        yield Finding(level, "webhooks", f"{where}: its CA has expired", remedy)
    elif ends < facts.now + _SECONDS_OF_A_MONTH:
        days = int((ends - facts.now) / 86400)
        yield Finding("warning", "webhooks", f"{where}: its CA expires in {days} days", remedy)
