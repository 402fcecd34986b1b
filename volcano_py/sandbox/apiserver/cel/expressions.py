"""x-kubernetes-validations: the CEL rules of a schema, through cel-expr-python.

A rule is compiled when first needed. A rule that this library cannot compile is left out and logged once, so that it
never rejects an object that kube-apiserver accepts.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import Any

from volcano_py.api.cel import declared, environment
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause

LOG = logging.getLogger(__name__)
Schema = dict[str, Any]

_REASONS = {
    "FieldValueInvalid": "FieldValueInvalid",
    "FieldValueForbidden": "FieldValueForbidden",
    "FieldValueRequired": "FieldValueRequired",
    "FieldValueDuplicate": "FieldValueDuplicate",
}


def _has_rules(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    if schema.get("x-kubernetes-validations"):
        return True
    inner = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(_has_rules(item) for item in inner)


@dataclass(slots=True)
class Rules:
    """The rules of a schema; `present` is False without rules, which is the common case."""

    schema: Schema
    present: bool = False
    _marked: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.present = _has_rules(self.schema)

    def check(self, new: Any, old: Any) -> list[Cause]:
        """The causes of all rules that do not hold; transition rules require the old object."""
        out: list[Cause] = []
        self._walk(new, old, self.schema, "", out)
        return out

    def _needs(self, schema: Any) -> bool:
        key = id(schema)
        found = self._marked.get(key)
        if found is None:
            found = self._marked[key] = _has_rules(schema)
        return found

    def _walk(self, new: Any, old: Any, schema: Any, path: str, out: list[Cause]) -> None:
        if not isinstance(schema, dict) or not self._needs(schema) or new is None:
            return
        for rule in schema.get("x-kubernetes-validations") or ():
            _apply(rule, new, old, path, out)
        if isinstance(new, dict):
            olds = old if isinstance(old, dict) else {}
            for key, inner in (schema.get("properties") or {}).items():
                if key in new:
                    self._walk(new[key], olds.get(key), inner, f"{path}.{key}" if path else key, out)
            extra = schema.get("additionalProperties")
            if isinstance(extra, dict):
                for key, item in new.items():
                    self._walk(item, olds.get(key), extra, f"{path}.{key}" if path else key, out)
        elif isinstance(new, list):
            keys = schema.get("x-kubernetes-list-map-keys") or []
            for index, item in enumerate(new):
                self._walk(item, _counterpart(item, old, keys), schema.get("items"), f"{path}[{index}]", out)


def _counterpart(item: Any, old: Any, keys: list[str]) -> Any:
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return None
    for row in old:
        if isinstance(row, dict) and all(row.get(key) == item.get(key) for key in keys):
            return row
    return None


_COMPILED: dict[str, Any] = {}
_BROKEN = object()


def fault(text: str) -> str:
    """Why an expression is invalid as a rule; empty if it is valid (or uses what this library does not support).

    A function that is called as a method without being one (`quantity('1').sign()`) is an error, and vice versa.
    """
    try:
        environment(("self", "oldSelf", *_REQUEST_VARIABLES)).compile(text)
    except Exception as error:
        shown = str(error)
        unknown = re.search(r"undeclared reference to '(\w+)'", shown)
        wrong = "Syntax error" in shown or (unknown is not None and unknown[1] in declared())
        return f"compilation failed: {shown}" if wrong else ""
    return ""


def _program(text: str) -> Any:
    found = _COMPILED.get(text)
    if found is None:
        try:
            env = _COMPILED.get("")
            if env is None:
                env = _COMPILED[""] = environment(("self", "oldSelf"))
            found = env.compile(text)
        except Exception as error:  # the library raises several types
            LOG.warning("CEL rule %r is not checked: %s", text, str(error).splitlines()[0])
            found = _BROKEN
        _COMPILED[text] = found
    return None if found is _BROKEN else found


_REQUEST_VARIABLES = ("object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables")


def evaluate_with(text: str, data: Schema) -> Any:
    """The value of an expression over the variables of admission; ValueError when it fails."""
    from cel_expr_python import cel  # type: ignore[import-untyped]

    key = "admission:" + text
    program = _COMPILED.get(key)
    if program is None:
        env = _COMPILED.get("admission")
        if env is None:
            env = _COMPILED["admission"] = environment(_REQUEST_VARIABLES)
        try:
            program = _COMPILED[key] = env.compile(text)
        except Exception as error:  # the library raises several types
            raise ValueError(str(error).splitlines()[0]) from None
    given = {name: data.get(name) for name in _REQUEST_VARIABLES}
    try:
        result = program.eval(data=given)
    except Exception as error:
        raise ValueError(str(error)) from None
    if result.type() == cel.Type.ERROR:
        raise ValueError(_cel_go_text(str(result)))
    return result.plain_value()


def _cel_go_text(text: str) -> str:
    """The library's errors in the texts of cel-go."""
    missing = re.search(r'Key not found in map : "?([^"]+)"?', text)
    return f"no such key: {missing.group(1)}" if missing else text


def evaluate(text: str, new: Any, old: Any) -> Any:
    """The value of an expression over self and oldSelf; raises ValueError when it fails."""
    program = _program(text)
    if program is None:
        return True
    try:
        result = program.eval(data={"self": new, "oldSelf": old})
    except Exception as error:
        raise ValueError(str(error)) from None
    if result.type() == _error_type():
        raise ValueError(_cel_go_text(str(result)))
    return result.plain_value()


def _error_type() -> Any:
    from cel_expr_python import cel

    return cel.Type.ERROR


def _apply(rule: Schema, new: Any, old: Any, path: str, out: list[Cause]) -> None:
    text = rule.get("rule", "")
    if "oldSelf" in text and old is None and not rule.get("optionalOldSelf"):
        return
    try:
        holds = evaluate(text, new, old)
    except ValueError as error:
        out.append(Cause("FieldValueInvalid", f"Invalid value: {_kind(new)}: {error} evaluating rule: {text}", path))
        return
    if holds is True:
        return
    message = rule.get("message", "") or f"failed rule: {text}"
    expression = rule.get("messageExpression")
    if expression:
        try:
            made = evaluate(expression, new, old)
            if isinstance(made, str) and made.strip():
                message = made
        except ValueError:
            pass
    at = path + rule.get("fieldPath", "") if rule.get("fieldPath") else path
    reason = _REASONS.get(rule.get("reason", ""), "FieldValueInvalid")
    shown = "" if isinstance(new, dict | list) else f"{_kind(new)}: "
    prefix = {
        "FieldValueInvalid": f"Invalid value: {shown}",
        "FieldValueForbidden": "Forbidden: ",
        "FieldValueRequired": "Required value: ",
        "FieldValueDuplicate": f"Duplicate value: {shown}",
    }[reason]
    out.append(Cause(reason, prefix + message, at.removeprefix(".")))


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return '"object"'
    if isinstance(value, list):
        return '"array"'
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)
