"""The schema of the chart's values: helm reports unknown keys, and values of an invalid type.

All keys of Volcano's chart are there, whether or not they have an effect.
"""

from __future__ import annotations

from typing import Any

from volcano_py.controllers.job.run_limit import ACTIONS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
SWITCH: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": ["number", "null"], "minimum": 0}
MAP: Schema = {"type": ["object", "null"]}
LIST: Schema = {"type": ["array", "null"], "items": {"type": "object"}}
RULES: Schema = {
    "type": ["array", "null"],
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["apiGroups", "resources", "verbs"],
        "properties": {
            key: {"type": "array", "items": TEXT} for key in ("apiGroups", "resources", "verbs", "resourceNames")
        },
    },
}
TEXTS: Schema = {"type": ["object", "null"], "additionalProperties": {"type": ["string", "number", "boolean"]}}
GATES: Schema = {"type": ["string", "object", "null"], "additionalProperties": {"type": "boolean"}}
DURATION: Schema = {"type": ["string", "null"], "pattern": r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"}
PATHS: Schema = {"type": "string", "pattern": r"^(\s*/[a-z]+/(mutate|validate)\s*(,|$))*$"}


def _each(value: Schema, names: str) -> dict[str, Schema]:
    """The same schema for several keys."""
    return dict.fromkeys(names.split(), value)


_COMPONENTS = "default|admission|controller|hypernode_controller|scheduler|agent_scheduler|agent|kube_state_metrics"
_PER_COMPONENT = {
    "affinity|ns|sc|csc|main_csc|init_csc|resources": MAP,
    "tolerations": LIST,
    "labels|podLabels": TEXTS,
}
_CUSTOM: dict[str, Schema] = {
    **_each(
        SWITCH,
        """
        admission_enable admission_init_enable agent_scheduler_enable agent_scheduler_metrics_enable
        scheduler_custom_metrics_enable scheduler_device_locks_enable
        agent_scheduler_pprof_enable bind_to_pod_ip colocation_enable controller_enable
        controller_metrics_enable go_memlimit_enable grafana_dashboard_enable
        controller_pod_groups_of_single_pods
        hypernode_controller_metrics_enable job_network_policies_enable keep_edited_config leader_elect_enable
        map_enable metrics_enable namespace_queue_enable network_policies_enable pod_disruption_budgets_enable
        prometheus_rule_enable scheduler_enable scheduler_metrics_enable scheduler_pprof_enable
        service_monitor_enable sharding_configmap_enable ssh_secrets_enable svc_configmaps_enable topology_spread_enable
        vap_enable
        """,
    ),
    **_each(
        COUNT,
        """
        admission_replicas agent_scheduler_replicas controller_replicas hypernode_controller_replicas
        scheduler_replicas admission_log_level agent_scheduler_log_level controller_log_level
        hypernode_controller_log_level scheduler_log_level
        """,
    ),
    **_each(
        NUMBER,
        """
        admission_init_ttl agent_scheduler_kube_api_burst agent_scheduler_kube_api_qps
        agent_scheduler_node_worker_threads agent_scheduler_percentage_nodes_to_find
        agent_scheduler_worker_count controller_kube_api_burst controller_kube_api_qps controller_worker_threads
        controller_worker_threads_for_gc controller_worker_threads_for_podgroup
        hypernode_controller_kube_api_burst hypernode_controller_kube_api_qps scheduler_kube_api_burst
        scheduler_kube_api_qps scheduler_node_worker_threads scheduler_percentage_nodes_to_find
        """,
    ),
    **_each(
        MAYBE_TEXT,
        """
        admission_config_override agent_cni_config_path agent_extend_resource_cpu_name
        agent_extend_resource_memory_name agent_kube_cgroup_root agent_scheduler_name
        agent_scheduler_sharding_mode agent_scheduler_sharding_name agent_supported_features
        controller_config_override controller_enabled_controllers ignored_provisioners priority_class_name
        scheduler_config_override scheduler_name scheduler_plugins_dir scheduler_profiles_config
        scheduler_sharding_name sharding_configmap_data
        """,
    ),
    **_each(
        GATES,
        """
        admission_feature_gates agent_scheduler_feature_gates controller_feature_gates scheduler_feature_gates
        """,
    ),
    "controller_on_max_run_time": {"enum": ["", *ACTIONS, None]},
    "scheduler_schedule_period": DURATION,
    "agent_scheduler_schedule_period": DURATION,
    "scheduler_sharding_mode": {"enum": ["none", "hard", "soft", "", None]},
    "hypernode_controller_mode": {"enum": ["controller-manager", "standalone", "disabled"]},
    "map_version": {"enum": ["v1", "v1beta1", "v1alpha1"]},
    "enabled_admissions": PATHS,
    "webhooks_namespace_selector_expressions": LIST,
    "scheduler_extra_rules": RULES,
    "network_policies_webhooks_from": LIST,
    "network_policies_metrics_from": LIST,
    "common_labels": TEXTS,
    "aggregationRule_labels": TEXTS,
}
_BASIC: dict[str, Schema] = {
    **_each(
        MAYBE_TEXT,
        """
        admission_config_file admission_image_name admission_image_tag_version admission_secret_name
        agent_image_name agent_image_tag_version agent_scheduler_config_file agent_scheduler_image_name
        agent_scheduler_image_tag_version controller_image_name controller_image_tag_version
        hypernode_controller_image_name hypernode_controller_image_tag_version image_pull_secret image_registry
        image_tag_version scheduler_config_file scheduler_image_name scheduler_image_tag_version
        """,
    ),
    "image_pull_policy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "admission_port": {"type": "integer", "minimum": 1, "maximum": 65535},
}


def schema() -> Schema:
    """The schema as JSON."""
    families = ((f"^({_COMPONENTS})_({names})$", value) for names, value in _PER_COMPONENT.items())
    parts = {
        "image": _closed(dict.fromkeys(("registry", "repository", "tag", "digest"), TEXT)),
        "basic": _closed(_BASIC),
        "custom": {**_closed(_CUSTOM), "patternProperties": dict(families)},
        "service": _closed(
            {"ipFamilyPolicy": TEXT, "ipFamilies": {"type": "array", "items": {"enum": ["IPv4", "IPv6"]}}}
        ),
        "test": _closed({"queue": TEXT}),
        "global": {"type": "object"},
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Values", **_closed(parts)}


def _closed(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": dict(sorted(properties.items()))}
