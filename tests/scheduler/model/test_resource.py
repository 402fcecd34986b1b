"""Amounts: the meaning of a missing scalar, and when one amount is less than another."""

from __future__ import annotations

import pytest

from volcano_py.scheduler.model.resource import (
    INFINITY,
    MAX,
    MAX_INT,
    ZERO,
    Resource,
    exceeded_part,
    intersection,
    maximum,
    minimum,
    share,
)
from volcano_py.scheduler.model.resource_names import is_scalar_name

GPU = "nvidia.com/gpu"


def amount(cpu: float = 0, memory: float = 0, **scalars: float) -> Resource:
    """Scalars by their first letter: g for GPUs, p for pods."""
    names = {"g": GPU, "p": "pods"}
    return Resource(cpu, memory, {names[k]: v for k, v in scalars.items()} or None)


# ---- reading --------------------------------------------------------------------------------------------------


def test_units_are_milli_cores_bytes_whole_pods_and_thousandths() -> None:
    read = Resource.parse({"cpu": "1500m", "memory": "1Ki", "pods": 3, GPU: "2", "count/jobs.batch": "7"})
    assert read == Resource(1500, 1024, {"pods": 3, GPU: 2000}) and read.max_task_num == 3
    assert Resource.parse({GPU: "2"}, ignored=(GPU,)) == Resource()
    with pytest.raises(ValueError, match=r"cpu: .*lots"):
        Resource.parse({"cpu": "lots"})


@pytest.mark.parametrize(
    ("name", "scalar"),
    [
        ("nvidia.com/gpu", True),
        ("requests.nvidia.com/gpu", False),
        ("hugepages-2Mi", True),
        ("attachable-volumes-x", True),
        ("kubernetes.io/x", True),
        ("storage", False),
        ("Example.com/x", False),
        ("example.com/a/b", False),
        ("example.com/", False),
        ("example.com/a_b.C-3", True),
        ("example.com/" + "x" * 63, True),
        ("example.com/" + "x" * 64, False),
        (".".join(["x" * 60] * 4) + "/x", True),
        (".".join(["x" * 61] * 4) + "/x", False),
    ],
)
def test_names_that_count_as_scalars(name: str, scalar: bool) -> None:
    assert is_scalar_name(name) is scalar


def test_present_resources() -> None:
    a = amount(1, 0.05, g=5)
    assert (a["cpu"], a["memory"], a[GPU], a["other"], Resource()["other"]) == (1, 0.05, 5, 0, 0)
    assert "cpu" in a and GPU in a and "other" not in a and GPU not in Resource()
    assert a.names() == ["cpu", GPU] and a.keys() == ["cpu", "memory", GPU]
    assert not a.is_zero("cpu") and a.is_zero("memory") and Resource().is_zero(GPU)
    with pytest.raises(AssertionError, match="unknown resource other"):
        a.is_zero("other")


def test_a_request_of_nothing_but_a_pod_is_empty() -> None:
    assert amount(p=1).is_empty() and not amount(g=1).is_empty() and not amount(memory=1).is_empty()


def test_texts() -> None:
    assert repr(amount(1, 2, g=3)) == "cpu 1.00, memory 2.00, nvidia.com/gpu 3.00"
    assert repr(Resource(MAX, 0, {"x/y": MAX_INT})) == "cpu maxFloat, memory 0.00, x/y maxInt"
    assert amount() != "nothing" and Resource.infinite().milli_cpu == MAX


# ---- arithmetic -----------------------------------------------------------------------------------------------


def test_subtracted_amounts_must_be_contained() -> None:
    assert amount(3, 2, g=1).sub(amount(1, 2, g=1)) == amount(2, 0, g=0)
    with pytest.raises(AssertionError, match="not sufficient"):
        amount(1).sub(amount(2))


def test_scalars_are_subtracted_only_from_an_amount_that_has_some() -> None:
    assert amount(1).sub_unchecked(amount(2, g=1)) == amount(-1)
    assert amount(1, p=1).sub_unchecked(amount(g=1)) == amount(1, p=1, g=-1)


def test_sums_products_and_bounds() -> None:
    assert amount(1).add(amount(1, 1, g=2)) == amount(2, 1, g=2)
    assert amount(2, 4, g=6).multi(0.5) == amount(1, 2, g=3)
    assert amount(1).set_max(amount(0, 1, g=2)) == amount(1, 1, g=2)
    assert amount(1, g=5, p=1).set_max(amount(2, g=2, p=3)) == amount(2, g=5, p=3)
    assert amount(3, g=0).set_max(amount(g=-1, p=0)) == amount(3, g=0, p=0)
    assert amount(5, 5, g=5, p=5).min_dimension(amount(1, 9, g=2), ZERO) == amount(1, 5, g=2, p=0)
    assert amount(5, 5, g=5, p=5).min_dimension(amount(1, 9, g=2), INFINITY) == amount(1, 5, g=2, p=5)
    assert amount(5).min_dimension(amount(9, 9, g=1), ZERO) == amount(5)


def test_differences() -> None:
    more, less = amount(3, 1, g=2).diff(amount(1, 4, p=1), ZERO)
    assert more.as_dict() == {"cpu": 2, "memory": 0, GPU: 2}
    assert less.as_dict() == {"cpu": 0, "memory": 3, "pods": 1}


def test_differences_to_an_infinite_scalar_are_infinite() -> None:
    more, less = amount(g=2).diff(amount(p=1), INFINITY)
    assert more["pods"] == INFINITY and less[GPU] == INFINITY


def test_parts() -> None:
    assert exceeded_part(amount(3), None) == amount(3)
    assert exceeded_part(amount(3, 1), amount(1, 2)).as_dict() == {"cpu": 2, "memory": 0}
    assert minimum(amount(3, 1, g=2), amount(1, 2)) == amount(1, 1)
    assert minimum(amount(g=2, p=1), amount(g=1)) == amount(g=1, p=0)
    assert maximum(amount(3), amount(1, 2)) == amount(3, 2)
    assert maximum(amount(g=2, p=0), amount(p=-1)) == amount(g=2)
    assert intersection(amount(1, 1, p=1), amount(1, p=1)) == ["cpu", "pods"]
    assert intersection(amount(1, 1, p=1), amount(1, p=1), ignore_pods=True) == ["cpu"]
    assert (share(1, 4), share(0, 0), share(1, 0)) == (0.25, 0, 1)


# ---- comparisons ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "zero", "infinity"),
    [
        (amount(1, 1), amount(2, 2), True, True),
        (amount(2, 1), amount(2, 2), False, False),
        (amount(1, 1, g=1), amount(2, 2, g=2), True, True),
        (amount(1, 1, g=2), amount(2, 2, g=2), False, False),
        (amount(1, 1, g=1), amount(2, 2), False, True),
        (amount(1, 1), amount(2, 2, g=1), True, False),
    ],
)
def test_strictly_less(left: Resource, right: Resource, zero: bool, infinity: bool) -> None:
    assert left.less(right, ZERO) is zero and left.less(right, INFINITY) is infinity


@pytest.mark.parametrize(
    ("left", "right", "zero", "infinity"),
    [
        (amount(2.05, 2), amount(2, 2), True, True),
        (amount(2.1, 2), amount(2, 2), False, False),
        (amount(1, 3), amount(2, 2), False, False),
        (amount(g=1), amount(), False, True),
        (amount(), amount(g=1), True, False),
        (amount(g=2), amount(g=1), False, False),
    ],
)
def test_less_or_equal(left: Resource, right: Resource, zero: bool, infinity: bool) -> None:
    assert left.less_equal(right, ZERO) is zero and left.less_equal(right, INFINITY) is infinity


def test_names_of_resources_that_are_too_large() -> None:
    assert amount(2, 1, g=1).less_equal_names(amount(1, 1), ZERO) == (False, ["cpu", GPU])
    assert amount(1, 1, g=1).less_equal_names(amount(1, 1), INFINITY) == (True, [])
    assert amount(2).greater_partly(amount(1), ZERO) and not amount(1).greater_partly(amount(1), ZERO)


def test_only_requested_dimensions_are_compared() -> None:
    much = amount(9, 9, g=9, p=9)
    assert much.less_equal_dimension(amount(1, 1), amount(1, g=1, p=1)) == (False, ["cpu", GPU])
    assert much.less_equal_dimension(amount(9.0, 1), amount(1)) == (True, [])
    assert amount(9).less_equal_dimension(amount(9), amount(1, g=1)) == (True, [])
    assert much.less_equal_dimension(None, amount(1)) == (False, ["cpu", "memory", GPU, "pods"])
    assert amount(2).less_equal_dimension(amount(1), None) == (False, ["cpu"])


@pytest.mark.parametrize(
    ("left", "right", "default", "less", "less_equal"),
    [
        (amount(1, 9), amount(2, 2), ZERO, True, True),
        (amount(2, 9), amount(2, 2), ZERO, False, True),
        (amount(9, 9), amount(2, 2), ZERO, False, False),
        (amount(9, 9), amount(2, 2, g=1), ZERO, True, True),
        (amount(9, 9), amount(2, 2, g=1), INFINITY, False, False),
        (amount(9, 9, g=1), amount(2, 2, g=1), ZERO, False, True),
        (amount(9, 9, g=1), amount(2, 2, g=2), ZERO, True, True),
        (amount(9, 9, g=1), amount(2, 2), INFINITY, True, True),
        (amount(9, 9, g=0), amount(2, 2), ZERO, False, True),
    ],
)
def test_less_in_part(left: Resource, right: Resource, default: float, less: bool, less_equal: bool) -> None:
    assert left.less_partly(right, default) is less and left.less_equal_partly(right, default) is less_equal


def test_requested_dimensions_that_are_not_larger() -> None:
    held, may = amount(2, 0, g=5, p=9), amount(2, 0, g=1, p=9)
    assert held.less_equal_partly_dimension(may, amount(1, 1, g=1, p=1)) == (True, ["cpu", "memory"])
    assert held.less_equal_partly_dimension(may, amount(1, 1), drop_zero=True) == (True, ["cpu"])
    assert held.less_equal_partly_dimension(may, amount(g=1)) == (False, [])
    assert held.less_equal_partly_dimension(may, None) == (False, [])


def test_requested_dimensions_that_are_larger() -> None:
    held = amount(2, 0, g=5, p=9)
    assert held.greater_partly_dimension(amount(1, 1), amount(1, 1, g=1, p=1)) == (True, ["cpu", GPU])
    assert held.greater_partly_dimension(None, amount(1)) == (True, ["cpu"])
    assert held.greater_partly_dimension(amount(9), amount(1)) == (False, [])
    assert held.greater_partly_dimension(amount(), None) == (False, [])


def test_larger_in_dimensions_of_the_other() -> None:
    held = amount(2, 5, g=5, p=9)
    assert held.greater_partly_relevant(amount(1, 0, g=0), amount(1, 1, g=1, p=1)) == (True, ["cpu", GPU])
    assert held.greater_partly_relevant(None, amount(1)) == (False, [])
    assert held.greater_partly_relevant(amount(1), None) == (False, [])


def test_equal_within_a_tenth() -> None:
    assert (
        amount(1.05, 1).equal(amount(1, 1, g=1))
        and not amount(1.1).equal(amount(1))
        and not amount(g=1).equal(amount())
    )
