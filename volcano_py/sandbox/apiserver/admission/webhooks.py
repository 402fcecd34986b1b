"""Configured admission webhooks: which of them match a request, and their results.

Kubernetes: the MutatingAdmissionWebhook and ValidatingAdmissionWebhook plugins.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from volcano_py.sandbox.apiserver.admission.matching import (
    EXEMPT,
    GROUP,
    Scope,
    conditions_hold,
    expression_data,
    review_request,
    scope_of,
    seen_as,
)
from volcano_py.sandbox.apiserver.admission.service_endpoints import endpoint
from volcano_py.sandbox.apiserver.admission.webhook_client import CallError, WebhookClient
from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.apply import patch
from volcano_py.sandbox.apiserver.registry.api import Api, Attributes
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.schema import codec

Object = dict[str, Any]

_KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


@dataclass(slots=True)
class Hook:
    """One webhook of one configuration."""

    name: str
    client: Object
    scope: Scope
    fail: bool
    conditions: list[Object]
    timeout: int
    side_effects: bool
    again: bool


def hook_of(row: Object) -> Hook:
    """A webhook from its (defaulted) row in a configuration."""
    return Hook(
        row["name"],
        row["clientConfig"],
        scope_of(row, row.get("rules") or []),
        row.get("failurePolicy", "Fail") == "Fail",
        row.get("matchConditions") or [],
        row.get("timeoutSeconds", 10),
        row.get("sideEffects") not in ("None", "NoneOnDryRun"),
        row.get("reinvocationPolicy") == "IfNeeded",
    )


@dataclass(slots=True)
class DynamicAdmission:
    """The webhooks of a cluster; read again when a configuration changes."""

    api: Api
    client: WebhookClient = field(init=False)
    mutating: list[Hook] = field(default_factory=list)
    validating: list[Hook] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client = WebhookClient(partial(endpoint, self.api))
        for plural in _KINDS:
            self.api.resource(GROUP, plural).collection.observers.append(self._reload)
        self._reload(None)

    def _reload(self, event: Any) -> None:
        lists = []
        for plural in _KINDS:
            rows: list[Hook] = []
            for entry in self.api.resource(GROUP, plural).collection.select():
                rows.extend(hook_of(row) for row in entry.load().get("webhooks") or [])
            lists.append(rows)
        self.mutating, self.validating = lists

    async def close(self) -> None:
        await self.client.close()

    def handles(self, resource: Resource) -> bool:
        """Whether any webhook can match writes of a resource."""
        return bool(self.mutating or self.validating) and resource.qualified not in EXEMPT

    async def mutate(self, attributes: Attributes) -> None:
        """Call the mutating webhooks in order, and those with reinvocationPolicy IfNeeded again after later changes."""
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
            raise errors.internal(str(error.__cause__ or error.message)) from None
        resource = attributes.request.resource
        if resource.custom is None and not attributes.request.subresource:
            try:
                codec.normalise(resource.type, patched, codec.Unknown())
            except codec.DecodeError as error:
                raise errors.internal(str(error)) from None
        attributes.obj = {**patched, "apiVersion": (attributes.obj or {}).get("apiVersion")}

    async def validate(self, attributes: Attributes) -> None:
        """Call the validating webhooks concurrently; the first denial counts."""
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
        """The version of the resource in which a webhook receives a request; None if it does not match."""
        request = attributes.request
        view = seen_as(self.api, hook.scope, attributes)
        if view is None or not self._conditions_hold(hook, attributes):
            return None
        if request.dry_run and hook.side_effects:
            text = f'admission webhook "{hook.name}" does not support dry run'
            raise errors.bad_request(text)
        return view

    def _conditions_hold(self, hook: Hook, attributes: Attributes) -> bool:
        if not hook.conditions:
            return True
        request = attributes.request
        holds, fault = conditions_hold(hook.conditions, expression_data(attributes))
        if fault and hook.fail:
            name = request.name or ((attributes.obj or {}).get("metadata") or {}).get("name", "")
            raise errors.forbidden(request.resource.group, request.resource.plural, name, fault)
        return holds

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
        """The response of a webhook that allows the request; None if it failed and its failurePolicy is Ignore."""
        own = attributes.request.resource
        uid = metadata.new_uid()
        review = review_request(attributes, view, uid)
        review["object"] = self._converted(own, view, attributes.obj)
        review["oldObject"] = self._converted(own, view, attributes.old)
        try:
            response = await self.client.review(hook.client, review, hook.timeout)
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
    """The error for a client whose request a webhook denies."""
    message, reason = status.get("message", ""), status.get("reason", "")
    text = f'admission webhook "{name}" denied the request'
    text += f": {message or reason}" if message or reason else " without explanation"
    code = status.get("code") or 400
    details = status.get("details")
    if isinstance(details, dict) and details.get("causes"):
        details = {**details, "causes": [{k: v for k, v in row.items() if v} for row in details["causes"]]}
    return errors.StatusError(code if code >= 400 else 400, reason, text, details)


def install(api: Api) -> None:
    """Call the configured webhooks for every write."""
    api.hooks.append(DynamicAdmission(api))
