"""Amounts: the operators of Resource, and what a pod requests."""

from __future__ import annotations

from typing import Any

from tests.conformance.functions.adapter import Adapter, Adapters, Function, receiver_after
from tests.conformance.functions.values import default, maybe, pod, resource
from volcano_py.scheduler.model.jobs.pod_request import pod_request, pod_request_without_init
from volcano_py.scheduler.model.resource import Resource, intersection, maximum


def _less(method: str) -> Function:
    return lambda r, a: [getattr(resource(r), method)(resource(a[0]), default(a[1]))]


def _named(method: str, **more: Any) -> Function:
    return lambda r, a: list(getattr(resource(r), method)(maybe(a[0]), maybe(a[1]), **more))


def _greater_partly(r: Any, a: list[Any]) -> list[Any]:
    left, right, missing = resource(r), resource(a[0]), default(a[1])
    fits, names = left.less_equal_names(right, missing)
    assert left.greater_partly(right, missing) is not fits
    return [not fits, names]


def _add_scalar(r: Any, a: list[Any]) -> list[Any]:
    sum_ = resource(r)
    sum_.add_scalar(a[0], float(a[1]))
    return [sum_]


ADAPTERS: Adapters = {
    "api.NewResource": lambda r, a: [Resource.parse(a[0])],
    "api.InfiniteResource": lambda r, a: [Resource.infinite()],
    "api.Resource.Add": lambda r, a: [resource(r).add(resource(a[0]))],
    "api.Resource.AddScalar": Adapter(_add_scalar, receiver_after),
    "api.Resource.Sub": lambda r, a: [resource(r).sub(resource(a[0]))],
    "api.Resource.Diff": lambda r, a: list(resource(r).diff(resource(a[0]), default(a[1]))),
    "api.Resource.Equal": lambda r, a: [resource(r).equal(resource(a[0]))],
    "api.Resource.Less": _less("less"),
    "api.Resource.LessEqual": _less("less_equal"),
    "api.Resource.LessPartly": _less("less_partly"),
    "api.Resource.LessEqualPartly": _less("less_equal_partly"),
    "api.Resource.GreaterPartly": _greater_partly,
    "api.Resource.LessEqualWithResourcesName": lambda r, a: list(
        resource(r).less_equal_names(resource(a[0]), default(a[1]))
    ),
    "api.Resource.LessEqualWithDimensionAndResourcesName": _named("less_equal_dimension"),
    "api.Resource.LessEqualPartlyWithDimension": _named("less_equal_partly_dimension"),
    "api.Resource.LessEqualPartlyWithDimensionZeroFiltered": _named("less_equal_partly_dimension", drop_zero=True),
    "api.Resource.GreaterPartlyWithDimension": _named("greater_partly_dimension"),
    "api.Resource.GreaterPartlyWithRelevantDimensions": _named("greater_partly_relevant"),
    "api.Resource.IsEmpty": lambda r, a: [resource(r).is_empty()],
    "api.Resource.IsZero": lambda r, a: [resource(r).is_zero(a[0])],
    "api.Resource.MinDimensionResource": Adapter(
        lambda r, a: [resource(r).min_dimension(resource(a[0]), default(a[1]))], receiver_after
    ),
    "api.Resource.SetMaxResource": Adapter(lambda r, a: [resource(r).set_max(resource(a[0]))], receiver_after),
    "api.Resource.String": lambda r, a: [repr(resource(r))],
    "api.Intersection": lambda r, a: [intersection(resource(a[0]), resource(a[1]))],
    "api.IntersectionWithIgnoredScalarResources": lambda r, a: [
        intersection(resource(a[0]), resource(a[1]), ignore_pods=True)
    ],
    "helpers.Max": lambda r, a: [maximum(resource(a[0]), resource(a[1]))],
    "api.GetPodResourceRequest": lambda r, a: [pod_request(pod(a[0]))],
    "api.GetPodResourceWithoutInitContainers": lambda r, a: [pod_request_without_init(pod(a[0]))],
}
