"""Which requests each path of admission is asked about. Volcano: the rules of its webhook configurations."""

from __future__ import annotations

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"

OPERATIONS = {
    "/jobs/mutate": (CREATE,),
    "/jobs/validate": (CREATE, UPDATE),
    "/queues/mutate": (CREATE,),
    "/queues/validate": (CREATE, UPDATE, DELETE),
    "/podgroups/mutate": (CREATE,),
    "/podgroups/validate": (CREATE,),
    "/pods/mutate": (CREATE,),
    "/pods/validate": (CREATE,),
    "/hypernodes/validate": (CREATE, UPDATE),
    "/cronjobs/validate": (CREATE, UPDATE),
    "/jobflows/validate": (CREATE, UPDATE),
}


def check_operation(path: str, operation: str) -> str:
    """Why a path has no answer to an operation, or an empty text. It is asked only if the configuration is wrong."""
    expected = OPERATIONS[path]
    if operation in expected:
        return ""
    *first, last = (f"`{name}`" for name in expected)
    listed = f"{', '.join(first)} or {last}" if first else last
    return f"invalid operation `{operation}`, expect operation to be {listed}: look at the rules of {path}'s webhook"
