"""What the chart renders: Volcano's object names, safe pods, narrow roles, and clear errors for mistaken values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from charts.generate import files
from tests.chart.cluster import CHART
from tests.chart.rendering import VALUES, named, of_kind, rendered, run_helm
from volcano_py import __version__
from volcano_py.scheduler.cache.kinds import TABLE

DEFAULT, EVERYTHING, POLICIES, VOLCANO = (
    Path(__file__).parent / "values" / f"{name}.yaml" for name in ("default", "everything", "policies", "volcano")
)


def roles(values: Path = EVERYTHING) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Kind, name and rules of every role."""
    found = of_kind(rendered(values), "Role", "ClusterRole")
    return [(role["kind"], role["metadata"]["name"], role["rules"]) for role in found]


def test_generated_files_are_up_to_date() -> None:
    for path, text in files():
        assert path.read_text() == text, f"{path.name} is stale: make manifests"


def test_objects_have_the_names_of_volcanos_chart() -> None:
    names = {(document["kind"], document["metadata"]["name"]) for document in rendered(DEFAULT)}
    for component in ("scheduler", "controllers", "admission"):
        assert {
            ("ServiceAccount", f"volcano-{component}"),
            ("ClusterRole", f"volcano-{component}"),
            ("ClusterRoleBinding", f"volcano-{component}-role"),
            ("Deployment", f"volcano-{component}"),
            ("Service", f"volcano-{component}-service"),
        } <= names
    for name in ("controller", "scheduler", "admission", "sharding"):
        assert ("ConfigMap", f"volcano-{name}-configmap") in names
    assert ("MutatingWebhookConfiguration", "volcano-admission-service-jobs-mutate") in names
    assert ("ClusterRole", "vcjob-editor-role") in names and ("ClusterRole", "vcjob-viewer-role") in names


def test_selectors_are_those_of_volcanos_deployments() -> None:
    """A selector cannot be changed, so an upgrade from Volcano's chart needs the same."""
    found = {
        d["metadata"]["name"]: d["spec"]["selector"]["matchLabels"] for d in of_kind(rendered(DEFAULT), "Deployment")
    }
    assert found == {
        "volcano-scheduler": {"app": "volcano-scheduler"},
        "volcano-controllers": {"app": "volcano-controller"},
        "volcano-admission": {"app": "volcano-admission"},
    }


@pytest.mark.parametrize("values", [DEFAULT, EVERYTHING], ids=lambda path: path.stem)
def test_pods_meet_the_restricted_standard(values: Path) -> None:
    for deployment in of_kind(rendered(values), "Deployment"):
        spec = deployment["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["seccompProfile"]
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"]
            assert {"livenessProbe", "readinessProbe", "startupProbe"} <= container.keys()


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_roles_have_no_wildcards(values: Path) -> None:
    for kind, name, rules in roles(values):
        for rule in rules:
            texts = [text for part in rule.values() for text in part]
            assert "*" not in texts, (kind, name, rule)
            assert not {"escalate", "bind", "impersonate"} & set(texts), (kind, name, rule)
    for binding in of_kind(rendered(values), "ClusterRoleBinding"):
        assert binding["roleRef"]["name"] != "cluster-admin"


def test_only_the_ssh_plugin_reaches_secrets_of_other_namespaces() -> None:
    assert broad("secrets", "custom.ssh_secrets_enable=true") == ["volcano-controllers"]
    assert broad("secrets") == [], "not by default"


def test_only_the_svc_plugin_reaches_configmaps_of_other_namespaces() -> None:
    assert broad("configmaps") == ["volcano-controllers"]
    assert broad("configmaps", "custom.svc_configmaps_enable=false") == []


def broad(resource: str, *settings: str) -> list[str]:
    """The roles that grant a resource without naming its objects, with the default values and these."""
    more = tuple(part for setting in settings for part in ("--set", setting))
    return [
        role["metadata"]["name"]
        for role in of_kind(rendered(DEFAULT, *more), "Role", "ClusterRole")
        for rule in role["rules"]
        if resource in rule["resources"] and not rule.get("resourceNames")
        if role["kind"] == "ClusterRole" or rule["verbs"] != ["create"]
    ]


def test_every_pod_has_requests_and_a_limit_of_memory() -> None:
    for deployment in of_kind(rendered(EVERYTHING), "Deployment"):
        for container in deployment["spec"]["template"]["spec"]["containers"]:
            given = container["resources"]
            assert set(given["requests"]) == {"cpu", "memory"} and "memory" in given["limits"], deployment["metadata"]


def test_network_policies_admit_the_webhooks_and_metrics_only() -> None:
    sources = 'custom.network_policies_webhooks_from=[{"ipBlock": {"cidr": "10.0.0.0/28"}}]'
    policies = {p["metadata"]["name"]: p["spec"] for p in of_kind(rendered(DEFAULT), "NetworkPolicy")}
    pods = [{"namespaceSelector": {}}]
    metrics = {"ports": [{"port": 8080}], "from": pods}
    assert policies["volcano-scheduler"]["ingress"] == [metrics]
    assert policies["volcano-controllers"]["ingress"] == [{"ports": [{"port": 8081}], "from": pods}]
    assert policies["volcano-admission"]["ingress"] == [metrics, {"ports": [{"port": 8443}]}]
    narrow = named(rendered(DEFAULT, "--set-json", sources), "NetworkPolicy", "volcano-admission")["spec"]["ingress"]
    assert narrow[1] == {"ports": [{"port": 8443}], "from": [{"ipBlock": {"cidr": "10.0.0.0/28"}}]}


def test_a_secret_of_the_discovery_is_readable_by_name() -> None:
    role = named(rendered(EVERYTHING), "Role", "volcano-hypernode-controller-ufm-login")
    assert role["metadata"]["namespace"] == "fabric"
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["ufm-login"]}
    ]


def test_the_scheduler_may_watch_every_kind_that_it_watches() -> None:
    [rules] = [rules for _, name, rules in roles(DEFAULT) if name == "volcano-scheduler" and len(rules) > 5]
    allowed = {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    for kind in TABLE:
        for verb in ("list", "watch"):
            assert (kind.rt.group, kind.rt.plural, verb) in allowed, f"add {kind.rt.plural} to scheduler-rbac.yaml"


def test_reports_of_chips_are_readable_if_the_configuration_requires_them() -> None:
    def rules(*argument: str) -> list[dict[str, object]]:
        plugin = json.dumps({"name": "deviceshare", "arguments": dict.fromkeys(argument, True)})
        text = f"tiers: [{{plugins: [{plugin}]}}]"
        documents = rendered(DEFAULT, "--set-literal", f"custom.scheduler_config_override={text}")
        found = named(documents, "ClusterRole", "volcano-scheduler")["rules"]
        return [rule for rule in found if rule["resources"] == ["configmaps"] and "list" in rule["verbs"]]

    assert rules() == []
    read = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
    assert rules("deviceshare.AscendMindClusterVNPUEnable") == [read]


def test_values_of_volcano_are_accepted_unchanged() -> None:
    documents = rendered(VOLCANO)
    scheduler = named(documents, "Deployment", "volcano-scheduler")
    spec = scheduler["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert container["image"] == f"volcano-py/volcano-py:{__version__}", "Volcano's image has none of our programs"
    assert "--kube-api-qps=4000" in container["args"] and "--schedule-period=500ms" in container["args"]
    assert container["resources"] == {"limits": {"cpu": "2", "memory": "4Gi"}}
    assert spec["nodeSelector"] == {"pool": "system"} and spec["imagePullSecrets"] == [{"name": "registry"}]
    assert scheduler["spec"]["template"]["metadata"]["labels"]["team"] == "batch"
    conf = named(documents, "ConfigMap", "volcano-scheduler-configmap")["data"]
    assert list(conf) == ["volcano-scheduler.conf"] and "- name: proportion" in conf["volcano-scheduler.conf"]
    [webhook] = named(documents, "ValidatingWebhookConfiguration", "volcano-admission-service-jobs-validate")[
        "webhooks"
    ]
    assert webhook["namespaceSelector"]["matchExpressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["volcano-system", "kube-system"]},
        {"key": "workload-type", "operator": "In", "values": ["batch"]},
    ]


def test_profiles_have_a_configmap_and_plugins_their_rules() -> None:
    rule = {"apiGroups": ["example.com"], "resources": ["machines"], "verbs": ["list", "watch"]}
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration"
    values = json.dumps([rule])
    documents = rendered(
        DEFAULT, "--set-json", f"custom.scheduler_extra_rules={values}", "--set-literal",
        f"custom.scheduler_profiles_config={text}",
    )  # fmt: skip
    conf = named(documents, "ConfigMap", "volcano-scheduler-profiles-configmap")["data"]
    assert conf == {"profiles.yaml": text}
    spec = named(documents, "Deployment", "volcano-scheduler")["spec"]["template"]["spec"]
    [container] = spec["containers"]
    (path,) = (a.removeprefix("--config=") for a in container["args"] if a.startswith("--config="))
    (mount,) = (m for m in container["volumeMounts"] if path == f"{m['mountPath']}/profiles.yaml")
    assert {"name": mount["name"], "configMap": {"name": "volcano-scheduler-profiles-configmap"}} in spec["volumes"]
    assert rule in named(documents, "ClusterRole", "volcano-scheduler")["rules"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("custom.scheduler_replica=2", "'scheduler_replica' not allowed"),
        ("custom.scheduler_replicas=many", "/custom/scheduler_replicas"),
        ("custom.enabled_admissions=/jobs/mutat", "/custom/enabled_admissions"),
        ("custom.enabled_admissions=/job/mutate", 'there is no path "/job/mutate"; valid paths are /commands/mutate'),
        ("custom.scheduler_extra_rules[0].verb=get", "'verb' not allowed"),
        ("custom.hypernode_controller_mode=on", "/custom/hypernode_controller_mode"),
        ("custom.agent_scheduler_enable=true", "volcano_py has no agent scheduler"),
        ("basic.scheduler_config_file=config/mine.conf", 'the chart has no file "config/mine.conf"'),
        ("costum.scheduler_replicas=2", "'costum' not allowed"),
    ],
)
def test_mistaken_values_are_named(setting: str, message: str) -> None:
    by_schema = "not allowed" in message or message.startswith("/")
    for command in [("template", "volcano"), ("lint",)][: 1 + by_schema]:  # lint ignores what templates reject
        done = run_helm(*command, str(CHART), "--set", setting)
        assert done.returncode != 0 and message in done.stdout + done.stderr


def test_one_replica_is_replaced_and_several_are_rolled() -> None:
    for values, strategy in ((DEFAULT, "Recreate"), (VOLCANO, "RollingUpdate")):
        assert named(rendered(values), "Deployment", "volcano-scheduler")["spec"]["strategy"]["type"] == strategy


def test_several_replicas_elect_a_leader_whatever_the_values_say() -> None:
    more = ("--set", "custom.leader_elect_enable=false,custom.scheduler_replicas=2")
    documents = rendered(DEFAULT, *more)
    args = {
        d["metadata"]["name"]: d["spec"]["template"]["spec"]["containers"][0]["args"]
        for d in of_kind(documents, "Deployment")
    }
    assert "--leader-elect=true" in args["volcano-scheduler"] and "--leader-elect=false" in args["volcano-controllers"]


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_lint(values: Path) -> None:
    done = run_helm("lint", str(CHART), "--strict", "-f", str(values))
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37"])
@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_documents_are_valid_for_kubernetes(values: Path, version: str) -> None:
    import kubernetes_validate

    more = ("--set", "custom.map_enable=false") if values in (EVERYTHING, POLICIES) and version < "1.36" else ()
    for document in rendered(values, *more, version=f"{version}.0"):
        if not document["apiVersion"].startswith("monitoring.coreos.com"):
            kubernetes_validate.validate(document, version, strict=True)
