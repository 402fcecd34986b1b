"""The rules of a kind: plain functions that the generic verbs call at fixed points.

Kubernetes: the registry's create, update and delete strategies. Objects are dicts without kind and apiVersion,
already normalised to their type; every function may change them in place. Defaults run when a body was decoded,
`prepare_*` after mutating admission, `validate_*` last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause

if TYPE_CHECKING:
    from volcano_py.sandbox.apiserver.registry.request import Request

Object = dict[str, Any]


def _no_causes(*_: Any) -> list[Cause]:
    return []


def _nothing(*_: Any) -> None:
    return None


def no_fields(obj: Object) -> dict[str, str]:
    return {}


@dataclass(slots=True)
class Strategy:
    """The rules of one kind; the default is a plain object with neither status nor special fields."""

    default: Callable[[Object], None] = _nothing
    # kube-apiserver's built-in admission plugins for a new object (priority, tolerations); may raise StatusError
    admit_create: Callable[[Any, Object, Request], None] | None = None
    admit_update: Callable[[Any, Object, Object, Request], None] | None = None
    # whether the sender may write this object (new, old or None), after mutating admission; may raise StatusError
    authorize: Callable[[Any, Object, Object | None, Request], None] | None = None
    # replaces the generic deletion
    delete: Callable[[Any, Request, Any], Any] | None = None
    prepare_create: Callable[[Object, Request], None] = _nothing
    validate_create: Callable[[Object, Request], list[Cause]] = _no_causes
    prepare_update: Callable[[Object, Object, Request], None] = _nothing
    validate_update: Callable[[Object, Object, Request], list[Cause]] = _no_causes
    # for the status subresource: what is copied from the stored object, and what is validated
    prepare_status: Callable[[Object, Object, Request], None] | None = None
    validate_status: Callable[[Object, Object, Request], list[Cause]] = _no_causes
    name_errors: Callable[[str], list[str]] = metadata.subdomain_errors
    # values of field selectors in addition to metadata.name and metadata.namespace
    fields: Callable[[Object], dict[str, str]] = no_fields
    field_names: frozenset[str] = frozenset()
    has_status: bool = False  # status is reset on create and kept on update of the main resource
    has_generation: bool = False  # counts changes of spec
    unconditional_update: bool = True  # PUT without resourceVersion
    create_on_update: bool = False  # PUT creates a missing object
    # the grace period for a deletion: seconds, 0 for at once; None for kinds without grace
    grace: Callable[[Object, int | None, Request], int] | None = None
    returns_deleted: bool = False  # DELETE returns the object instead of a Status
    default_propagation: str = "Background"
    delete_warnings: Callable[[Request], list[str]] = lambda request: []
    before_delete: Callable[[Object, Request], None] = _nothing
    # fields of the main resource and of the status subresource that writers do not become owners of
    reset_fields: tuple[str, ...] = ()
    reset_status_fields: tuple[str, ...] = ("spec",)
    warnings: Callable[[Object, Object | None], list[str]] = field(default=lambda new, old: [])
