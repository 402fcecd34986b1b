"""Configurations of admission webhooks and policies: defaults and validation.

Kubernetes: pkg/apis/admissionregistration.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, duplicate, invalid_value, required, unsupported
from volcano_py.sandbox.apiserver.cel import expressions
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategies.workloads import selector_causes
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

GROUP = "admissionregistration.k8s.io"
_OPERATIONS = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]


def _default(mutating: bool) -> Any:
    def default(obj: Object) -> None:
        for hook in obj.get("webhooks") or ():
            hook.setdefault("failurePolicy", "Fail")
            hook.setdefault("matchPolicy", "Equivalent")
            hook.setdefault("namespaceSelector", {})
            hook.setdefault("objectSelector", {})
            hook.setdefault("timeoutSeconds", 10)
            if mutating:
                hook.setdefault("reinvocationPolicy", "Never")
            for rule in hook.get("rules") or ():
                rule.setdefault("scope", "*")
            service = (hook.get("clientConfig") or {}).get("service")
            if service is not None:
                service.setdefault("port", 443)

    return default


def _first_generation(obj: Object, request: Request) -> None:
    obj["metadata"]["generation"] = 1


def validate(obj: Object, request: Request) -> list[Cause]:
    """The errors of a webhook configuration."""
    out: list[Cause] = []
    names: set[str] = set()
    for index, hook in enumerate(obj.get("webhooks") or []):
        at = f"webhooks[{index}]"
        name = hook.get("name", "")
        if metadata.subdomain_errors(name):
            out.extend(invalid_value(f"{at}.name", name, m) for m in metadata.subdomain_errors(name))
        elif name.count(".") < 2:
            text = "should be a domain with at least three segments separated by dots"
            out.append(invalid_value(f"{at}.name", name, text))
        if name in names:
            out.append(duplicate(f"{at}.name", name))
        names.add(name)
        for number, rule in enumerate(hook.get("rules") or []):
            rule_causes(rule, f"{at}.rules[{number}]", out)
        _hook(hook, at, out)
    return out


def rule_causes(rule: Object, at: str, out: list[Cause]) -> None:
    """The errors of the rule of a webhook or policy."""
    for key in ("apiGroups", "apiVersions", "resources", "operations"):
        values = rule.get(key) or []
        if not values:
            out.append(required(f"{at}.{key}"))
        elif "*" in values and len(values) > 1 and key != "resources":
            text = "if '*' is present, must not specify other values"
            out.append(invalid_value(f"{at}.{key}", values, text))
    for number, operation in enumerate(rule.get("operations") or []):
        if operation not in _OPERATIONS:
            out.append(unsupported(f"{at}.operations[{number}]", operation, _OPERATIONS))
    if rule.get("scope") not in ("*", "Cluster", "Namespaced", None):
        out.append(unsupported(f"{at}.scope", rule["scope"], ["*", "Cluster", "Namespaced"]))


def _hook(hook: Object, at: str, out: list[Cause]) -> None:
    versions = hook.get("admissionReviewVersions") or []
    if not versions:
        out.append(required(f"{at}.admissionReviewVersions", "must specify one of v1, v1beta1"))
    elif not {"v1", "v1beta1"} & set(versions):
        text = "must include at least one of v1, v1beta1"
        out.append(invalid_value(f"{at}.admissionReviewVersions", versions, text))
    for key, choices in (
        ("failurePolicy", ["Fail", "Ignore"]),
        ("matchPolicy", ["Equivalent", "Exact"]),
        ("reinvocationPolicy", ["IfNeeded", "Never"]),
    ):
        if key in hook and hook[key] not in choices:
            out.append(unsupported(f"{at}.{key}", hook[key], choices))
    effects = hook.get("sideEffects")
    if effects is None:
        out.append(required(f"{at}.sideEffects", "must specify one of None, NoneOnDryRun"))
    elif effects not in ("None", "NoneOnDryRun"):
        out.append(unsupported(f"{at}.sideEffects", effects, ["None", "NoneOnDryRun"]))
    if not 1 <= hook.get("timeoutSeconds", 10) <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        out.append(invalid_value(f"{at}.timeoutSeconds", hook["timeoutSeconds"], text))
    for key in ("namespaceSelector", "objectSelector"):
        out.extend(selector_causes(hook.get(key), f"{at}.{key}"))
    _client(hook.get("clientConfig") or {}, f"{at}.clientConfig", out)
    conditions_causes(hook.get("matchConditions") or [], f"{at}.matchConditions", out)


def conditions_causes(conditions: list[Object], at: str, out: list[Cause]) -> None:
    """The errors of match conditions."""
    for number, condition in enumerate(conditions):
        text = condition.get("expression", "")
        if not text.strip():
            out.append(required(f"{at}[{number}].expression"))
            continue
        fault = expressions.fault(text)
        if fault:
            out.append(invalid_value(f"{at}[{number}].expression", text, fault))


def _client(config: Object, at: str, out: list[Cause]) -> None:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        out.append(required(at, "exactly one of url or service is required"))
    elif url is not None:
        parts = urlsplit(url)
        form = "desired format: https://host[/path]"
        if parts.scheme != "https":
            text = f"'https' is the only allowed URL scheme; {form}"
            out.append(invalid_value(f"{at}.url", parts.scheme, text))
        if not parts.hostname:
            out.append(invalid_value(f"{at}.url", "", f"host must be specified; {form}"))
    else:
        for key in ("name", "namespace"):
            if not (service or {}).get(key):
                out.append(required(f"{at}.service.{key}", f"service {key} is required"))


def _configuration(mutating: bool) -> Strategy:
    return Strategy(
        default=_default(mutating),
        prepare_create=_first_generation,
        validate_create=validate,
        validate_update=lambda new, old, request: validate(new, request),
        has_generation=True,
    )


STRATEGIES = {
    f"mutatingwebhookconfigurations.{GROUP}": _configuration(True),
    f"validatingwebhookconfigurations.{GROUP}": _configuration(False),
}
