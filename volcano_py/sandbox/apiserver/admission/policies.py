"""Admission policies in CEL. Kubernetes: ValidatingAdmissionPolicy and MutatingAdmissionPolicy with their bindings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from volcano_py.sandbox.apiserver.admission.matching import (
    EXEMPT,
    GROUP,
    Scope,
    conditions_hold,
    expression_data,
    scope_of,
    seen_as,
)
from volcano_py.sandbox.apiserver.apimachinery import errors, selectors
from volcano_py.sandbox.apiserver.apply import patch, server_side
from volcano_py.sandbox.apiserver.cel import expressions, objects
from volcano_py.sandbox.apiserver.registry.api import Api, Attributes
from volcano_py.sandbox.apiserver.registry.resources import Resource

Object = dict[str, Any]

CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


@dataclass(slots=True)
class Pair:
    """A policy with one of its bindings."""

    policy: str
    binding: str
    spec: Object
    binding_spec: Object
    scope: Scope
    narrowed: Scope | None

    @property
    def fails(self) -> bool:
        return bool(self.spec.get("failurePolicy", "Fail") == "Fail")


@dataclass(slots=True)
class Policies:
    """The policies of a cluster; read again when a policy or a binding changes."""

    api: Api
    mutating: list[Pair] = field(default_factory=list)
    validating: list[Pair] = field(default_factory=list)

    def __post_init__(self) -> None:
        for kind in ("mutating", "validating"):
            for suffix in ("policies", "policybindings"):
                resource = self.api.registry.find(GROUP, f"{kind}admission{suffix}")
                if resource is not None:
                    resource.collection.observers.append(self._reload)
        self._reload(None)

    def _reload(self, event: Any) -> None:
        self.mutating = list(self._pairs("mutating"))
        self.validating = list(self._pairs("validating"))

    def _pairs(self, kind: str) -> Iterator[Pair]:
        if self.api.registry.find(GROUP, f"{kind}admissionpolicies") is None:
            return  # Kubernetes before 1.36 has only validating ones
        policies = self.api.resource(GROUP, f"{kind}admissionpolicies").collection
        for entry in self.api.resource(GROUP, f"{kind}admissionpolicybindings").collection.select():
            binding_spec = entry.load().get("spec") or {}
            policy = policies.get("", binding_spec.get("policyName", ""))
            if policy is None:
                continue
            spec = policy.load().get("spec") or {}
            constraints = spec.get("matchConstraints") or {}
            narrowed = binding_spec.get("matchResources")
            yield Pair(
                policy.name,
                entry.name,
                spec,
                binding_spec,
                scope_of(constraints, constraints.get("resourceRules") or []),
                scope_of(narrowed, narrowed.get("resourceRules")) if narrowed else None,
            )

    async def close(self) -> None:
        """Close the plugin; it has no resources."""

    def handles(self, resource: Resource) -> bool:
        return bool(self.mutating or self.validating) and resource.qualified not in EXEMPT

    # --- variables of the expressions --------------------------------------------------------------------------------

    def _covers(self, pair: Pair, attributes: Attributes) -> bool:
        if seen_as(self.api, pair.scope, attributes) is None:
            return False
        return pair.narrowed is None or seen_as(self.api, pair.narrowed, attributes) is not None

    def _inputs(self, pair: Pair, attributes: Attributes) -> Iterator[Object]:
        """The variables for every parameter object; ValueError when one is missing or has no value."""
        data = expression_data(attributes)
        namespace = self.api.store.collections["namespaces"].get("", attributes.request.namespace)
        data["namespaceObject"] = namespace.load() if namespace is not None else None
        for params in self._params(pair, attributes):
            seen = {**data, "params": params}
            holds, fault = conditions_hold(pair.spec.get("matchConditions") or [], seen)
            if fault:
                raise ValueError(fault)
            if not holds:
                continue
            variables: Object = {}
            for row in pair.spec.get("variables") or ():
                try:
                    value = expressions.evaluate_with(row["expression"], {**seen, "variables": variables})
                except ValueError:
                    continue  # an expression that uses the variable reports the error
                variables[row["name"]] = value
            yield {**seen, "variables": variables}

    def _params(self, pair: Pair, attributes: Attributes) -> list[Object | None]:
        kind, reference = pair.spec.get("paramKind"), pair.binding_spec.get("paramRef")
        if kind is None or reference is None:
            return [None]
        resource = self.api.registry.by_kind.get((kind.get("apiVersion", ""), kind.get("kind", "")))
        if resource is None:
            version, name = kind.get("apiVersion", ""), kind.get("kind", "")
            raise ValueError(f"failed to find resource referenced by paramKind: '{version}, Kind={name}'")
        namespace = ""
        if resource.namespaced:
            namespace = reference.get("namespace") or attributes.request.namespace
        entries = list(resource.collection.select(namespace))
        if reference.get("name"):
            entries = [entry for entry in entries if entry.name == reference["name"]]
        else:
            match = selectors.from_label_selector(reference.get("selector"))
            entries = [entry for entry in entries if match is None or match(entry.labels)]
        if not entries and reference.get("parameterNotFoundAction") == "Deny":
            raise ValueError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return [entry.load() for entry in entries]

    # --- mutating ----------------------------------------------------------------------------------------------------

    async def mutate(self, attributes: Attributes) -> None:
        """Apply the changes of the policies to the object, one after the other."""
        for pair in self.mutating:
            if attributes.obj is None or not self._covers(pair, attributes):
                continue
            try:
                for data in self._inputs(pair, attributes):
                    for mutation in pair.spec.get("mutations") or ():
                        _change(attributes, mutation, data)
            except (ValueError, errors.StatusError) as error:
                if pair.fails:
                    text = f"policy '{pair.policy}' with binding '{pair.binding}' denied request: {error}"
                    raise _denied(attributes, text, "Invalid") from None

    # --- validating --------------------------------------------------------------------------------------------------

    async def validate(self, attributes: Attributes) -> None:
        """Deny, or warn about, objects for which a policy's expression is false."""
        denial: errors.StatusError | None = None
        for pair in self.validating:
            if not self._covers(pair, attributes):
                continue
            actions = pair.binding_spec.get("validationActions") or ()
            for message, reason in self._failures(pair, attributes):
                of = f"ValidatingAdmissionPolicy '{pair.policy}' with binding '{pair.binding}'"
                if "Warn" in actions:
                    attributes.request.warn(f"Validation failed for {of}: {message}")
                if "Deny" in actions and denial is None:
                    denial = _denied(attributes, f"{of} denied request: {message}", reason)
        if denial is not None:
            raise denial

    def _failures(self, pair: Pair, attributes: Attributes) -> Iterator[tuple[str, str]]:
        try:
            for data in self._inputs(pair, attributes):
                for row in pair.spec.get("validations") or ():
                    yield from _check(pair, row, data)
        except ValueError as error:
            if pair.fails:
                yield str(error), "Invalid"


def _check(pair: Pair, row: Object, data: Object) -> Iterator[tuple[str, str]]:
    text = row.get("expression", "")
    try:
        holds = expressions.evaluate_with(text, data)
    except ValueError as error:
        if pair.fails:
            yield f"expression '{text}' resulted in error: {error}", "Invalid"
        return
    if holds is True:
        return
    message = row.get("message") or f"failed expression: {text}"
    if row.get("messageExpression"):
        try:
            made = expressions.evaluate_with(row["messageExpression"], data)
        except ValueError:
            made = None
        if isinstance(made, str) and made.strip() and "\n" not in made:
            message = made
    yield message, row.get("reason") or "Invalid"


def _change(attributes: Attributes, mutation: Object, data: Object) -> None:
    obj = attributes.obj
    assert obj is not None
    seen = {**data, "object": obj}
    if mutation.get("patchType") == "JSONPatch":
        made = expressions.evaluate_with(objects.plain((mutation.get("jsonPatch") or {}).get("expression", "")), seen)
        attributes.obj = patch.json_patch(obj, made)
        return
    made = expressions.evaluate_with(
        objects.plain((mutation.get("applyConfiguration") or {}).get("expression", "")), seen
    )
    if not isinstance(made, dict):
        raise ValueError("an apply configuration must be an object")
    attributes.obj = server_side.merge(attributes.request.resource.type, obj, made)


def _denied(attributes: Attributes, text: str, reason: str) -> errors.StatusError:
    request = attributes.request
    shown = attributes.obj or attributes.old or {}
    name = request.name or (shown.get("metadata") or {}).get("name", "")
    error = errors.forbidden(request.resource.group, request.resource.plural, name, text)
    details = {**(error.details or {}), "causes": [{"message": text}]}
    return errors.StatusError(CODES.get(reason, 422), reason, error.message, details)


def install(api: Api) -> None:
    """Evaluate policies for every write."""
    api.hooks.append(Policies(api))
