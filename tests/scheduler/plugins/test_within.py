"""What fits below a limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as s

from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.plugins.queue_shares.within import exceeded, within

AMOUNTS = s.builds(
    Resource,
    s.sampled_from((0.0, 1.0, 500.0, 1000.0)),
    s.sampled_from((0.0, 1.0, 4096.0)),
    s.one_of(
        s.none(), s.dictionaries(s.sampled_from(("pods", "nvidia.com/gpu", "a.b/c")), s.sampled_from((0.0, 1.0, 2.0)))
    ),
)


@given(AMOUNTS, AMOUNTS, s.lists(AMOUNTS, max_size=2), s.one_of(s.none(), AMOUNTS))
def test_exceeded_compares_as_the_sum_does(
    request: Resource, limit: Resource, held: list[Resource], free: Resource | None
) -> None:
    total = request.clone()
    for part in held:
        total.add(part)
    if free is not None:
        total.sub_unchecked(free)
    assert exceeded(request, limit, held, free) == total.less_equal_dimension(limit, request)[1]


@given(s.integers(0, 9), s.integers(1, 4), s.integers(0, 20), s.integers(0, 12))
def test_within_counts_the_tasks_that_fit_one_after_the_other(held: int, each: int, limit: int, count: int) -> None:
    fits = 0
    while fits < count and held + (fits + 1) * each <= limit:
        fits += 1
    found = within(Resource(held), [("cpu", float(each))], Resource(limit), count)
    assert found == fits
