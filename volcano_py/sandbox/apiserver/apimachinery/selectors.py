"""Label and field selectors: parses their text and matches them against the indexed fields of the store.

Kubernetes: the packages labels and fields of apimachinery.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from volcano_py.api.selector import LABEL_OPERATORS, holds
from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import bad_request

Labels = Mapping[str, str]
Match = Callable[[Labels], bool]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector; the operator is that of the API: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: frozenset[str]

    def matches(self, labels: Labels) -> bool:
        return holds(self.operator, labels.get(self.key), self.values)


_TOKEN = re.compile(r"\s*(?:(==|!=|=|!|\(|\)|,|<|>)|([^\s=!(),<>]+))")


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        at = 0
        stripped = text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None:
                raise self.error(stripped[at:])
            self.tokens.append(match.group(1) or match.group(2))
            at = match.end()
        self.at = 0

    def error(self, found: str, expected: str = "an identifier") -> ValueError:
        comma = "" if expected == "'('" else ","
        return ValueError(f"found '{found}'{comma} expected: {expected}")

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def parse(self) -> list[Requirement]:
        out: list[Requirement] = []
        if not self.tokens:
            return out
        while True:
            out.append(self.requirement())
            token = self.next()
            if not token:
                return out
            if token != ",":
                raise self.error(token, "',' or 'end of string'")
            if not self.peek() or self.peek() == ",":
                raise self.error(self.peek(), "identifier after ','")

    def requirement(self) -> Requirement:
        token = self.next()
        if token == "!":
            return Requirement(self.key(self.next()), "DoesNotExist", frozenset())
        key = self.key(token)
        operator = self.peek()
        if operator in ("", ","):
            return Requirement(key, "Exists", frozenset())
        self.next()
        if operator in ("=", "=="):
            return Requirement(key, "In", frozenset([self.value()]))
        if operator == "!=":
            return Requirement(key, "NotIn", frozenset([self.value()]))
        if operator in ("<", ">"):
            value = self.value()
            if not re.fullmatch(r"-?\d+", value):
                raise ValueError(f"for 'Gt', 'Lt' operators, the value must be an integer: {value}")
            return Requirement(key, "Gt" if operator == ">" else "Lt", frozenset([value]))
        if operator in ("in", "notin"):
            return Requirement(key, "In" if operator == "in" else "NotIn", self.values())
        raise self.error(operator, "in, notin, =, ==, !=, gt, lt")

    def key(self, token: str) -> str:
        if token in ("", ",", "(", ")", "=", "==", "!=", "!", "<", ">"):
            raise self.error(token, "!, identifier, or 'end of string'")
        errors = metadata.qualified_errors(token)
        if errors:
            raise ValueError(f'key: Invalid value: "{token}": {"; ".join(errors)}')
        return token

    def value(self) -> str:
        token = self.peek()
        if token in ("", ","):
            return ""
        if token in ("(", ")", "=", "==", "!=", "!", "<", ">"):
            raise self.error(token, "identifier")
        return self.checked(self.next())

    def values(self) -> frozenset[str]:
        if self.next() != "(":
            raise self.error(self.tokens[self.at - 1] if self.at <= len(self.tokens) else "", "'('")
        values: list[str] = []
        while True:
            token = self.peek()
            if token == ")":
                self.next()
                values.append("") if not values or self.tokens[self.at - 2] == "," else None
                return frozenset(values)
            if token == ",":
                self.next()
                if self.peek() == ",":
                    values.append("")
                continue
            if not token or token in ("(", "=", "==", "!=", "!", "<", ">"):
                raise self.error(token, "',', ')' or identifier")
            values.append(self.checked(self.next()))

    def checked(self, value: str) -> str:
        errors = metadata.label_value_errors(value)
        if errors:
            raise ValueError(f'values[0][value]: Invalid value: "{value}": {"; ".join(errors)}')
        return value


def parse_labels(text: str) -> Match | None:
    """The predicate of a labelSelector parameter; None selects everything. Raises the server's 400."""
    if not text.strip():
        return None
    try:
        requirements = _Parser(text).parse()
    except ValueError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None
    return matcher(requirements)


def matcher(requirements: list[Requirement]) -> Match | None:
    """One predicate of several requirements, all of which must hold; None without requirements."""
    if not requirements:
        return None
    if len(requirements) == 1:
        return requirements[0].matches
    return lambda labels: all(requirement.matches(labels) for requirement in requirements)


def from_label_selector(selector: Mapping[str, object] | None) -> Match | None:
    """The predicate of a LabelSelector object; None if it selects everything."""
    requirements = []
    for key, value in (selector or {}).get("matchLabels", {}).items():  # type: ignore[attr-defined]
        requirements.append(Requirement(key, "In", frozenset([value])))
    for row in (selector or {}).get("matchExpressions", []):  # type: ignore[attr-defined]
        operator = row.get("operator") if row.get("operator") in LABEL_OPERATORS else "Exists"
        requirements.append(Requirement(row.get("key", ""), operator, frozenset(row.get("values") or [])))
    return matcher(requirements)


def parse_fields(text: str) -> list[tuple[str, str, bool]]:
    """The terms of a fieldSelector parameter: (field, value, equal). Raises ValueError."""
    terms: list[tuple[str, str, bool]] = []
    for part in _split_escaped(text):
        if not part:
            continue
        match = re.match(r"((?:[^=!\\]|\\.)*)(!=|==|=)(.*)\Z", part, re.DOTALL)
        if match is None:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{part}'")
        value = re.sub(r"\\([\\,=])", r"\1", match.group(3))
        terms.append((match.group(1), value, match.group(2) != "!="))
    return terms


def _split_escaped(text: str) -> list[str]:
    return re.split(r"(?<!\\),", text)


def field_matcher(terms: list[tuple[str, str, bool]]) -> Match | None:
    """One predicate over the indexed fields; a field that an object does not have counts as empty."""
    if not terms:
        return None
    if len(terms) == 1:
        field, value, equal = terms[0]
        if equal:
            return lambda fields: fields.get(field, "") == value
        return lambda fields: fields.get(field, "") != value
    return lambda fields: all((fields.get(field, "") == value) is equal for field, value, equal in terms)
