"""What kind of request a component makes: two requests of one kind differ only in the object."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from volcano_py.api.kinds import COMPOSITE_PODGROUP, NATIVE_PODGROUP

NATIVE_PLURALS = (NATIVE_PODGROUP.plural, COMPOSITE_PODGROUP.plural)
"""Kinds that informers name with their API group."""

Request = tuple[str, str, str, bool]
"""HTTP method (LIST for the GET of a list), resource (plural), subresource, whether it is a watch."""
PATH = re.compile(
    r"^/(?:api/[^/]+|apis/[^/]+/[^/]+)(?:/namespaces/[^/]+(?=/.))?/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>.+))?)?$"
)


def describe(method: str, target: str) -> Request:
    """What kind of request it is; a path that is no resource's stands for itself."""
    parts = urlsplit(target)
    query = parse_qs(parts.query)
    found = PATH.match(parts.path)
    watch = query.get("watch", [""])[0] in ("true", "1")
    if found is None:
        return method, parts.path, "", watch
    if method == "GET" and not watch and found["name"] is None:
        method = "LIST"
    resource = found["resource"]
    if parts.path.startswith(f"/apis/{NATIVE_PODGROUP.group}/") and resource in NATIVE_PLURALS:
        resource = f"{resource}.{NATIVE_PODGROUP.group}"  # Volcano's are called podgroups, too
    return method, resource, found["sub"] or "", watch
