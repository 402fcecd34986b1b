"""The faults: every place in a module's syntax tree where one may be put, and the tree with one of them.

Text, types and signatures are left alone: what is not decided cannot be decided wrongly.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


class Fault(NamedTuple):
    """One fault. `apply` changes the tree that it was found in."""

    line: int
    what: str
    apply: Callable[[], None]


def faults(tree: ast.Module) -> list[Fault]:
    """All faults that may be put into a module, in an order that does not change."""
    found: list[Fault] = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                found += _of(statement)
    known: dict[tuple[int, str], Fault] = {}  # functions within functions are seen twice
    for fault in found:
        known.setdefault((fault.line, fault.what), fault)
    return sorted(known.values(), key=lambda f: (f.line, f.what))


def _of(statement: ast.stmt) -> Iterator[Fault]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Compare):
            for i, op in enumerate(node.ops):
                yield _fault(node, f"{_name(op)} for {_name(_COMPARISONS[type(op)]())}", _set_op(node, i))
        elif isinstance(node, ast.BoolOp):
            other = ast.Or if isinstance(node.op, ast.And) else ast.And
            yield _fault(node, f"{_name(other())} at {node.col_offset}", _setter(node, "op", other()))
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            new = _ARITHMETIC[type(node.op)]()
            yield _fault(node, f"{_name(new)} at {node.col_offset}", _setter(node, "op", new))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield _fault(node, f"{not node.value} at {node.col_offset}", _setter(node, "value", not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield _fault(node, f"{node.value + 1} at {node.col_offset}", _setter(node, "value", node.value + 1))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield _fault(
                node, f"no not at {node.col_offset}", _setter(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
            )
        elif isinstance(node, ast.If | ast.While):
            never = ast.Constant(False, lineno=node.lineno, col_offset=node.col_offset)
            yield _fault(node, f"never at {node.col_offset}", _setter(node, "test", never))


def _fault(node: ast.expr | ast.stmt, what: str, apply: Callable[[], None]) -> Fault:
    return Fault(node.lineno, what, apply)


def _set_op(node: ast.Compare, i: int) -> Callable[[], None]:
    return lambda: node.ops.__setitem__(i, _COMPARISONS[type(node.ops[i])]())


def _setter(node: ast.AST, field: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, field, value)


def _name(node: ast.AST) -> str:
    return type(node).__name__
