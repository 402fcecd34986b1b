"""Cases as lines of JSON: one case per line in, one result per line out. For test data and bug reports."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import orjson

from volcano_py.simulate.manifests import ManifestError

log = logging.getLogger(__name__)


def run_cases(
    lines: Iterable[str | bytes],
    what: str,
    run: Callable[[dict[str, Any]], dict[str, Any]],
    invalid: type[Exception],
) -> Iterator[bytes]:
    """Run every case; an invalid case yields its id and the error, and the others run. `what`: what a line is called.
    `invalid`: the exception for a configuration that is not valid."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name: Any = f"line {number}"
        try:
            case = orjson.loads(line)
            if not isinstance(case, dict):
                raise ManifestError(f"a {what} must be a JSON object")
            name = case.get("id", name)
            yield orjson.dumps({"id": name, **run(case)})
        except (invalid, ManifestError, msgspec.ValidationError) as e:
            yield orjson.dumps({"id": name, "error": str(e)})
        except orjson.JSONDecodeError as e:
            yield orjson.dumps({"id": name, "error": f"not valid JSON: {e}"})
        except Exception as e:
            log.exception("%s %s: internal error of volcano-py", what, name)
            text = f"internal error of volcano-py, please report it: {type(e).__name__}: {e}"
            yield orjson.dumps({"id": name, "error": text})
