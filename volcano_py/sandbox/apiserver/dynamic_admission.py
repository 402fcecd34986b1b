"""Admission webhooks that are configured as objects: which of them a request concerns, and what they answer.

Kubernetes: the MutatingAdmissionWebhook and ValidatingAdmissionWebhook plugins.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from typing import Any

import orjson

from volcano_py.sandbox.apiserver import cel, codec, errors, metadata, patch, selectors
from volcano_py.sandbox.apiserver.api import Api, Attributes
from volcano_py.sandbox.apiserver.resources import Resource
from volcano_py.sandbox.apiserver.reviews import user_info
from volcano_py.sandbox.apiserver.selectors import Match
from volcano_py.sandbox.apiserver.webhook_client import CallError, WebhookClient

Object = dict[str, Any]

GROUP = "admissionregistration.k8s.io"
_KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_EXEMPT = frozenset(
    f"{plural}.{GROUP}"
    for plural in (
        *_KINDS,
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)


@dataclass(slots=True)
class Hook:
    """One webhook of one configuration."""

    name: str
    client: Object
    rules: list[Object]
    fail: bool
    equivalent: bool
    namespaces: Match | None
    objects: Match | None
    conditions: list[Object]
    timeout: int
    side_effects: bool
    again: bool


def hook_of(row: Object) -> Hook:
    """A webhook from its (defaulted) row in a configuration."""
    return Hook(
        row["name"],
        row["clientConfig"],
        row.get("rules") or [],
        row.get("failurePolicy", "Fail") == "Fail",
        row.get("matchPolicy", "Equivalent") == "Equivalent",
        selectors.from_label_selector(row.get("namespaceSelector")),
        selectors.from_label_selector(row.get("objectSelector")),
        row.get("matchConditions") or [],
        row.get("timeoutSeconds", 10),
        row.get("sideEffects") not in ("None", "NoneOnDryRun"),
        row.get("reinvocationPolicy") == "IfNeeded",
    )


@dataclass(slots=True)
class DynamicAdmission:
    """The webhooks of a cluster; read again when a configuration changes."""

    api: Api
    client: WebhookClient = field(default_factory=WebhookClient)
    mutating: list[Hook] = field(default_factory=list)
    validating: list[Hook] = field(default_factory=list)

    def __post_init__(self) -> None:
        for plural in _KINDS:
            self.api.resource(GROUP, plural).collection.observers.append(self._reload)

    def _reload(self, event: Any) -> None:
        lists = []
        for plural in _KINDS:
            rows = []
            for entry in self.api.resource(GROUP, plural).collection.select():
                rows.extend(hook_of(row) for row in entry.load().get("webhooks") or [])
            lists.append(rows)
        self.mutating, self.validating = lists

    async def close(self) -> None:
        await self.client.close()

    def wants(self, resource: Resource) -> bool:
        """Whether any webhook may want to see writes of a resource."""
        return bool(self.mutating or self.validating) and resource.qualified not in _EXEMPT

    async def mutate(self, attributes: Attributes) -> None:
        """Call the mutating webhooks in order; those that ask for it are called again after later changes."""
        called: list[tuple[Hook, Any]] = []
        for hook in self.mutating:
            view = self._view(hook, attributes)
            if view is None:
                continue
            before = orjson.dumps(attributes.obj)
            await self._mutate_by(hook, view, attributes)
            if orjson.dumps(attributes.obj) != before:
                for earlier, seen in called:
                    if earlier.again and seen != orjson.dumps(attributes.obj):
                        again = self._view(earlier, attributes)
                        if again is not None:
                            await self._mutate_by(earlier, again, attributes)
            called.append((hook, orjson.dumps(attributes.obj)))

    async def _mutate_by(self, hook: Hook, view: Resource, attributes: Attributes) -> None:
        response = await self._call(hook, view, attributes)
        if response is None or not response.get("patch"):
            return
        try:
            if response.get("patchType") != "JSONPatch":
                raise CallError(
                    "received invalid webhook response: webhook returned response.patch but not response.patchType"
                )
            operations = orjson.loads(base64.b64decode(response["patch"]))
        except (CallError, ValueError) as error:
            if hook.fail:
                raise errors.internal(f'failed calling webhook "{hook.name}": {error}') from None
            return
        obj = self._converted(attributes.request.resource, view, attributes.obj)
        try:
            patched = patch.json_patch(obj, operations)
        except errors.StatusError as error:
            raise errors.internal(error.message.rpartition("our request: ")[2]) from None
        resource = attributes.request.resource
        if resource.custom is None and not attributes.request.subresource:
            try:
                codec.normalise(resource.type, patched, codec.Unknown())
            except codec.DecodeError as error:
                raise errors.internal(str(error)) from None
        attributes.obj = {**patched, "apiVersion": (attributes.obj or {}).get("apiVersion")}

    async def validate(self, attributes: Attributes) -> None:
        """Call the validating webhooks side by side; the first no counts."""
        calls = []
        for hook in self.validating:
            view = self._view(hook, attributes)
            if view is not None:
                calls.append(self._call(hook, view, attributes))
        if len(calls) == 1:
            await calls[0]
        elif calls:
            for result in await asyncio.gather(*calls, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

    # --- matching ----------------------------------------------------------------------------------------------------

    def _view(self, hook: Hook, attributes: Attributes) -> Resource | None:
        """The version of the resource in which a webhook wants to see a request; None when it does not."""
        request = attributes.request
        if not self._selected(hook, attributes):
            return None
        view = self._ruled(hook, attributes)
        if view is None or not self._conditions_hold(hook, attributes):
            return None
        if request.dry_run and hook.side_effects:
            text = f'admission webhook "{hook.name}" does not support dry run'
            raise errors.bad_request(text)
        return view

    def _selected(self, hook: Hook, attributes: Attributes) -> bool:
        resource = attributes.request.resource
        if hook.namespaces is not None:
            labels: dict[str, str] | None = None
            if resource.namespaced:
                name = attributes.request.namespace
                entry = self.api.store.collections["namespaces"].get("", name)
                labels = entry.labels if entry is not None else {}
            elif resource.qualified == "namespaces":
                labels = ((attributes.obj or attributes.old or {}).get("metadata") or {}).get("labels") or {}
            if labels is not None and not hook.namespaces(labels):
                return False
        if hook.objects is None:
            return True
        shown = [obj for obj in (attributes.obj, attributes.old) if obj is not None]
        return any(hook.objects((obj.get("metadata") or {}).get("labels") or {}) for obj in shown)

    def _ruled(self, hook: Hook, attributes: Attributes) -> Resource | None:
        resource = attributes.request.resource
        others = [other for other in self.api.registry if other.collection is resource.collection]
        views = [resource, *others] if hook.equivalent else [resource]
        for view in views:
            if any(rule_matches(rule, view, attributes) for rule in hook.rules):
                return view
        return None

    def _conditions_hold(self, hook: Hook, attributes: Attributes) -> bool:
        if not hook.conditions:
            return True
        request = attributes.request
        data = {
            "object": attributes.obj,
            "oldObject": attributes.old,
            "request": review_request(attributes, request.resource, ""),
        }
        fault = ""
        for condition in hook.conditions:
            text = condition.get("expression", "")
            try:
                if cel.evaluate_with(text, data) is not True:
                    return False
            except ValueError as error:
                fault = fault or f"expression '{text}' resulted in error: {error}"
        if fault and hook.fail:
            name = request.name or ((attributes.obj or {}).get("metadata") or {}).get("name", "")
            raise errors.forbidden(request.resource.group, request.resource.plural, name, fault)
        return not fault

    # --- calling -----------------------------------------------------------------------------------------------------

    def _converted(self, own: Resource, view: Resource, obj: Object | None) -> Object | None:
        if obj is None or view is own or obj.get("kind") != own.kind:
            return obj
        bare = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
        if own.to_stored is not None:
            bare = own.to_stored(bare)
        if view.from_stored is not None:
            bare = view.from_stored(bare)
        return {"kind": view.kind, "apiVersion": view.api_version, **bare}

    async def _call(self, hook: Hook, view: Resource, attributes: Attributes) -> Object | None:
        """The response of a webhook that allows the request; None when it failed and may."""
        own = attributes.request.resource
        uid = metadata.new_uid()
        asked = review_request(attributes, view, uid)
        asked["object"] = self._converted(own, view, attributes.obj)
        asked["oldObject"] = self._converted(own, view, attributes.old)
        try:
            response = await self.client.review(hook.client, asked, hook.timeout)
        except CallError as error:
            if not hook.fail:
                return None
            raise errors.internal(f'failed calling webhook "{hook.name}": {error}') from None
        for warning in response.get("warnings") or ():
            attributes.request.warn(str(warning))
        if response.get("allowed") is True:
            return response
        raise denial(hook.name, response.get("status") or {})


def denial(name: str, status: Object) -> errors.StatusError:
    """What the client is told when a webhook says no."""
    message, reason = status.get("message", ""), status.get("reason", "")
    text = f'admission webhook "{name}" denied the request'
    text += f": {message or reason}" if message or reason else " without explanation"
    code = status.get("code") or 400
    details = status.get("details")
    if isinstance(details, dict) and details.get("causes"):
        details = {**details, "causes": [{k: v for k, v in row.items() if v} for row in details["causes"]]}
    return errors.StatusError(code if code >= 400 else 400, reason, text, details)


def rule_matches(rule: Object, view: Resource, attributes: Attributes) -> bool:
    """Whether one rule of a webhook covers a request, seen in a version of its resource."""

    def has(values: list[str] | None, wanted: str) -> bool:
        return bool(values) and ("*" in values or wanted in values)  # type: ignore[operator]

    if not has(rule.get("operations"), attributes.operation):
        return False
    if not has(rule.get("apiGroups"), view.group) or not has(rule.get("apiVersions"), view.version):
        return False
    scope = rule.get("scope", "*")
    if scope != "*" and (scope == "Namespaced") != view.namespaced:
        return False
    sub = attributes.request.subresource
    for spelled in rule.get("resources") or ():
        name, slash, wanted = spelled.partition("/")
        if name not in ("*", view.plural):
            continue
        if (slash and wanted in ("*", sub)) if sub or slash else True:
            return True
    return False


_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def review_request(attributes: Attributes, view: Resource, uid: str) -> Object:
    """The request part of an AdmissionReview, without the objects."""
    request = attributes.request
    own = request.resource
    shown = attributes.obj or attributes.old or {}
    kind = _kind(shown, own)
    view_kind = kind if view is own or kind["kind"] != own.kind else _kind({}, view)
    out: Object = {
        "uid": uid,
        "kind": view_kind,
        "resource": {"group": view.group, "version": view.version, "resource": view.plural},
        "requestKind": kind,
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
    }
    if request.subresource:
        out["subResource"] = out["requestSubResource"] = request.subresource
    name = request.name or (shown.get("metadata") or {}).get("name", "")
    if name and request.verb != "deletecollection":
        out["name"] = name
    namespace = request.namespace if own.namespaced else name if own.qualified == "namespaces" else ""
    if namespace:
        out["namespace"] = namespace
    out["operation"] = attributes.operation
    out["userInfo"] = user_info(request.user)
    out["object"] = out["oldObject"] = None
    out["dryRun"] = request.dry_run
    out["options"] = _options(attributes)
    return out


def _kind(obj: Object, resource: Resource) -> Object:
    version = str(obj.get("apiVersion") or resource.api_version)
    group, _, short = version.rpartition("/")
    return {"group": group, "version": short, "kind": obj.get("kind") or resource.kind}


def _options(attributes: Attributes) -> Object:
    request = attributes.request
    out: Object = {"kind": _OPTIONS.get(attributes.operation, "CreateOptions"), "apiVersion": "meta.k8s.io/v1"}
    if attributes.operation == "DELETE":
        out.update(request.options)
    else:
        query = request.query
        if query.get("dryRun"):
            out["dryRun"] = [query["dryRun"]]
        if query.get("fieldManager"):
            out["fieldManager"] = query["fieldManager"]
        if query.get("fieldValidation"):
            out["fieldValidation"] = query["fieldValidation"]
    return out


def install(api: Api) -> None:
    """Ask configured webhooks about every write."""
    api.hooks.append(DynamicAdmission(api))
