"""managedFields of objects that are returned but not stored, such as reviews and bindings.

Kubernetes: the FieldManager of the create handler.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apply import managed
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.schema.types import builtin

Object = dict[str, Any]


def tracked(
    request: Request, go_name: str, obj: Object, api_version: str, parts: tuple[str, ...] = ("spec", "metadata")
) -> None:
    """Record in managedFields which fields the client has set, as for any created object."""
    shape = builtin(go_name)
    given = {key: value for key, value in obj.items() if key in parts}
    managed.update(
        shape,
        codec.normalise(shape, {}, codec.Unknown()),
        given,
        manager=request.manager,
        api_version=api_version,
        subresource=request.subresource,
        time=metadata.now(),
        created=True,
    )
    obj["metadata"] = given["metadata"]
