"""Nothing is created in a missing or terminating namespace. Kubernetes: the NamespaceLifecycle admission plugin."""

from __future__ import annotations

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import Request


def check_create(api: Api, request: Request, name: str = "") -> None:
    """NamespaceLifecycle: 404 for a namespace that does not exist, 403 for a terminating one."""
    collection = api.store.collections["namespaces"]
    entry = collection.entries.get(request.namespace)
    if entry is None:
        raise errors.not_found("", "namespaces", request.namespace)
    if entry.fields.get("status.phase") == "Terminating":
        resource = request.resource
        why = f"unable to create new content in namespace {request.namespace} because it is being terminated"
        error = errors.forbidden(resource.group, resource.plural, name, why)
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {request.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        assert error.details is not None
        error.details["causes"] = [cause]
        raise error
