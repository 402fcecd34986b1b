"""Translates CEL that creates objects (`Object{spec: Object.spec{replicas: 1}}`) to plain CEL that creates maps.

The CEL library has no types of the cluster, so a typed literal becomes a map literal with quoted keys.

Kubernetes: k8s.io/apiserver/pkg/cel/mutation.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<string>[rR]?(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|\'\'\'(?:\\.|[^\\])*?\'\'\'
        |"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))
    |(?P<typed>(?:Object(?:\.\w+)*|JSONPatch)\s*\{)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {")": "(", "]": "[", "}": "{"}


def plain(expression: str) -> str:
    """The expression without typed literals."""
    out: list[str] = []
    open_: list[str] = []  # open brackets: "object", or the bracket
    last = ""  # the last token that is not a space
    tokens = [(match.lastgroup, match.group()) for match in _TOKEN.finditer(expression)]
    for at, (kind, text) in enumerate(tokens):
        if kind == "space":
            out.append(text)
            continue
        if kind == "typed":
            open_.append("object")
            out.append("{")
            last = "{"
            continue
        if kind == "name" and open_ and open_[-1] == "object" and last in ("{", ","):
            following = next((token for group, token in tokens[at + 1 :] if group != "space"), "")
            out.append(f'"{text}"' if following == ":" else text)
        else:
            out.append(text)
            if kind == "other" and text in "([{":
                open_.append(text)
            elif kind == "other" and text in _CLOSING and open_:
                open_.pop()
        last = text
    return "".join(out)
