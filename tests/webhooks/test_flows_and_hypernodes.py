"""Admission of JobFlows and HyperNodes, the graph rule, and which operations are answered."""

import pytest

from volcano_py.webhooks.dependencies import check_graph, order
from volcano_py.webhooks.hypernodes import validate_hypernode
from volcano_py.webhooks.jobflows import validate_jobflow
from volcano_py.webhooks.paths import PATHS, check_operation


def jobflow(**targets):
    flows = [{"name": name} | ({"dependsOn": {"targets": names}} if names else {}) for name, names in targets.items()]
    return {"metadata": {"name": "etl"}, "spec": {"flows": flows}}


@pytest.mark.parametrize(
    "allowed",
    [
        {"metadata": {"name": "none"}},
        jobflow(a=[], b=["a"], c=["a", "b"]),
        jobflow(a=[], b=["a", "a"]),
        {"spec": {"flows": [{"name": "a"}, {"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]}},
    ],
)
def test_flows_that_can_run(allowed):
    assert validate_jobflow(allowed) == []


@pytest.mark.parametrize(
    ("denied", "message"),
    [
        (jobflow(a=["ghost"]), "vertex is not defined: ghost, on which a depends"),
        (jobflow(a=["a"]), "a depends on a"),
        (jobflow(a=["c"], b=["a"], c=["b"]), "depends on"),
    ],
)
def test_flows_that_never_end(denied, message):
    (problem,) = validate_jobflow(denied)
    assert problem.startswith("jobflow etl: spec.flows: jobflow Flow is not DAG: ")
    assert message in problem


def test_a_cycle_is_reported_in_the_order_of_dependencies():
    assert check_graph({"a": ["b"], "b": ["c"], "c": ["a"]}) in (
        "a depends on b depends on c depends on a",
        "b depends on c depends on a depends on b",
        "c depends on a depends on b depends on c",
    )


def test_order_leaves_out_what_waits_in_vain():
    assert order({"a": ["b"], "b": [], "c": ["ghost"], "d": ["c"], "e": ["b", "b"]}) == ["b", "a"]


def hypernode(*selectors):
    return {
        "metadata": {"name": "rack"},
        "spec": {"members": [{"type": "Node", "selector": selector} for selector in selectors]},
    }


def test_hypernode_members():
    assert validate_hypernode(hypernode({"exactMatch": {"name": "n"}}, {"regexMatch": {"pattern": "^n[0-9]+$"}})) == []
    assert "spec.members: Required value" in validate_hypernode(hypernode())[0]


def test_every_pattern_is_looked_at():
    patterns = ["n", "a(b", "(?=x)"]
    problems = validate_hypernode(hypernode(*({"regexMatch": {"pattern": pattern}} for pattern in patterns)))
    assert ["members[1]" in problems[0], "members[2]" in problems[1], len(problems)] == [True, True, 2]
    assert "hypernode rack: " in problems[0] and "'a(b'" in problems[0] and "missing )" in problems[0]


def test_operations():
    assert check_operation(PATHS["/queues/validate"], "DELETE") == ""
    assert "`CONNECT`, expect operation to be `CREATE`, `UPDATE` or `DELETE`" in check_operation(
        PATHS["/queues/validate"], "CONNECT"
    )
    assert "expect operation to be `CREATE`:" in check_operation(PATHS["/podgroups/mutate"], "UPDATE")


def test_a_long_chain_is_ordered_in_one_pass():
    """Written from its end: the first to be ready comes last."""
    names = [f"t{number}" for number in range(5000)]
    chain = {name: names[index + 1 : index + 2] for index, name in enumerate(names)}
    looked_at = 0

    class Needs(list):
        def __iter__(self):
            nonlocal looked_at
            looked_at += 1
            return super().__iter__()

    assert order({name: Needs(needs) for name, needs in chain.items()}) == names[::-1]
    assert looked_at <= 2 * len(names)


def test_hypernode_patterns_that_cost_too_much():
    """The time of the request does not grow with the number of costly patterns."""
    costly = [{"regexMatch": {"pattern": f"\\pL{{1,{500 + i % 400}}}{i}"}} for i in range(5_000)]
    problems = validate_hypernode(hypernode(*costly))
    assert len(problems) == 6 and "more than 20000 instructions" in problems[0]
    assert "spec.members: Too many: the HyperNode has patterns that cost more than 100000 instructions" in problems[-1]
    many = [{"regexMatch": {"pattern": f"^n{i}$"}} for i in range(1_001)]
    assert validate_hypernode(hypernode(*many[:1_000])) == []
    assert "has more than 1000 different patterns" in validate_hypernode(hypernode(*many))[0]
