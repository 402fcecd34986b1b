"""Quantities: exact amounts, rounding, and the texts the API server writes."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.api import quantity as q


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("-1.5", Fraction(-3, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("100m", Fraction(1, 10)),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1.5Gi", 1536 * 2**20),
        ("1E", 10**18),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("2e+2", 200),
        ("0.1n", Fraction(1, 10**9)),
        ("1e99", q.MAX),
        ("1e-999999", Fraction(1, 10**9)),
        (2, 2),
        (0.5, Fraction(1, 2)),
    ],
)
def test_parse(text, amount):
    assert q.parse(text) == amount


@pytest.mark.parametrize("text", ["", "m", "1 Gi", "1KB", "1gi", "e3", "1e", "--1", "1m1", "0x10", " 1", "1Gi\n", "٣"])
def test_parse_rejects(text):
    with pytest.raises(ValueError, match="invalid quantity"):
        q.parse(text)


@pytest.mark.parametrize(
    ("text", "milli", "whole"),
    [("1", 1000, 1), ("100u", 1, 1), ("1500m", 1500, 2), ("-1500m", -1500, -2), ("1Mi", 2**20 * 1000, 2**20)],
)
def test_values_are_rounded_away_from_zero(text, milli, whole):
    assert q.milli_value(text) == milli
    assert q.value(text) == whole


def test_values_saturate():
    assert q.milli_value("8Ei") == q.MAX
    assert q.value("9E") == 9 * 10**18
    assert q.value("-1e30") == -q.MAX


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1500", "1500"),
        ("2000", "2k"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("1e3", "1e3"),
        ("1000e0", "1e3"),
        ("1500e-3", "1500e-3"),
        ("1.0", "1"),
        ("1000000000n", "1"),
        ("1025", "1025"),
        ("1Ei", "1Ei"),
    ],
)
def test_canonical(text, canonical):
    assert q.canonical(text) == canonical


def test_format():
    assert q.format_milli(500) == "500m"
    assert q.format_milli(2000) == "2"
    assert q.format_milli(-1) == "-1m"
    assert q.format_binary(2**30) == "1Gi"
    assert q.format_binary(1536) == "1536"
    assert q.format_binary(1000) == "1k"
    assert q.format_binary(0) == "0"


@given(st.integers(min_value=-q.MAX, max_value=q.MAX))
def test_canonical_text_keeps_the_amount(nanos):
    amount = Fraction(nanos, 10**9)
    assert q.parse(q.format_amount(amount, "DecimalSI")) == amount
    assert q.parse(q.format_amount(amount, "DecimalExponent")) == amount
    assert q.parse(q.format_binary(nanos)) == nanos
    for form in ("DecimalSI", "DecimalExponent"):
        once = q.format_amount(amount, form)
        assert q.canonical(once) == once
