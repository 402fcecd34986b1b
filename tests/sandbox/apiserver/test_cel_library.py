"""The functions that Kubernetes adds to CEL."""

import pytest

from volcano_py.sandbox.apiserver.cel.expressions import evaluate_with, fault


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("object.tasks.map(t, t.?replicas.orValue(0)).sum()", 5),
        ("[3, 1, 2].max() - [3, 1, 2].min()", 2),
        ("[1, 2].isSorted() && ![2, 1].isSorted()", True),
        ("'abca'.indexOf('c') + 'abca'.lastIndexOf('a')", 5),
        ("'a/b'.split('/').size()", 2),
        ("'pod-17'.find('[0-9]+')", "17"),
        ("isQuantity('1Gi') && !isQuantity('much')", True),
        ("quantity('1500m').isGreaterThan(quantity('1'))", True),
        ("quantity('1Gi').compareTo(quantity('1024Mi'))", 0),
        ("quantity('1Gi') == quantity('1024Mi')", True),
        ("quantity('1').add(quantity('500m')).sub(quantity('1')).asApproximateFloat()", 0.5),
        ("quantity('2').isInteger() && sign(quantity('-2')) == -1 && quantity('2k').asInteger() == 2000", True),
        ("object.?metadata.?labels.orValue({}).size()", 0),
        ("math.greatest(1, 2)", 2),
    ],
)
def test_values(expression, value):
    assert evaluate_with(expression, {"object": {"tasks": [{"replicas": 2}, {"replicas": 3}, {}]}}) == value


def test_a_function_that_is_no_method_is_a_fault_as_one():
    """As on kube-apiserver, whose `sign` is no method although its documentation says so."""
    assert "'sign'" in fault("quantity('1').sign() > 0")
    assert "'isGreaterThan'" in fault("isGreaterThan(quantity('1'), quantity('2'))")
    assert not fault("sign(quantity('1')) > 0") and not fault("ip('::1').family() == 6")
