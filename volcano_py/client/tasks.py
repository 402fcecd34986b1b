"""Python functions as tasks: `@task(cpus=4, gpus=1, image=…)`.

The source of the function is the pod's program (`python3 -c`), so the image needs Python and the modules that the
function imports, but not volcano_py, and nothing is uploaded. What the function uses of its module must be a module,
a literal or another such function; all else is an error that contains the name.
"""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import inspect
import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import CodeType, FunctionType, ModuleType
from typing import Any, Generic, ParamSpec, TypeVar

from volcano_py.client.errors import TaskError
from volcano_py.client.jobs import Task

P = ParamSpec("P")
R = TypeVar("R")
IMAGE = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
"""The default image: the version of Python that runs the client."""
MAX_PROGRAM = 100_000
"""Bytes of a program; the kernel of Linux accepts 128 KiB for one argument."""
_LITERALS = (str, int, float, bool, type(None))


class TaskFunction(Generic[P, R]):
    """A function that is decorated with `@task`. A call returns a Task; `local` runs the function in this process."""

    def __init__(self, function: Callable[P, R], task: Task) -> None:
        self.function = function
        self.task = task
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """The name of the task."""
        return self.task.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Task:
        """The task for these arguments, which must be JSON. Raises TaskError."""
        try:
            inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError as error:
            raise TaskError(
                str(error), object=f"task {self.name}", remedy="pass the arguments of the function"
            ) from None
        return replace(self.task, command=("python3", "-c", program(self.function, args, kwargs)))

    def local(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here."""
        return self.function(*args, **kwargs)

    def options(self, **changes: Any) -> TaskFunction[P, R]:
        """The same function with other options: `train.options(replicas=8)`."""
        return TaskFunction(self.function, self.task.options(**changes))

    def __repr__(self) -> str:
        return f"<task {self.name}>"


def task(
    *,
    image: str = IMAGE,
    name: str = "",
    replicas: int = 1,
    minimum: int | None = None,
    cpus: float | str = 1,
    memory: str = "",
    gpus: int = 0,
    env: dict[str, str] | None = None,
    **options: Any,
) -> Callable[[Callable[P, R]], TaskFunction[P, R]]:
    """Decorate a function whose calls are tasks. `options`: further fields of Task."""

    def decorate(function: Callable[P, R]) -> TaskFunction[P, R]:
        called = name or function.__name__.replace("_", "-").lower().strip("-")
        made = Task(
            name=called,
            image=image,
            replicas=replicas,
            minimum=minimum,
            cpus=cpus,
            memory=memory,
            gpus=gpus,
            env=env or {},
        )
        return TaskFunction(function, made.options(**options) if options else made)

    return decorate


def program(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The program that calls a function with arguments. Raises TaskError."""
    about = f"task {function.__name__}"
    for place, value in (*enumerate(args), *kwargs.items()):
        if not _is_json(value):
            raise TaskError(
                f"argument {place!r} is {type(value).__name__}, which is not JSON",
                object=about,
                field=str(place),
                remedy="pass text, numbers, lists and dicts with text keys, or the path of a file",
            )
    parts: dict[str, str] = {}
    _collect(function, about, parts)
    call = f"{function.__name__}(*json.loads({json.dumps(list(args))!r}), **json.loads({json.dumps(kwargs)!r}))"
    text = "\n".join(["from __future__ import annotations", "import json", *parts.values(), call]) + "\n"
    if len(text.encode()) > MAX_PROGRAM:
        raise TaskError(
            f"the program has {len(text.encode())} bytes, more than {MAX_PROGRAM}",
            object=about,
            remedy="pass large arguments as files on a volume, and put large code into the image",
        )
    return text


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(one) for key, one in value.items())
    return isinstance(value, _LITERALS)


def _collect(function: Callable[..., Any], about: str, parts: dict[str, str]) -> None:
    """Add a function and all that it uses, in the order of their definition."""
    if not isinstance(function, FunctionType):
        raise TaskError(f"{function!r} is no plain function", object=about, remedy="decorate a function of a module")
    if function.__code__.co_freevars:
        free = function.__code__.co_freevars[0]
        raise TaskError(
            f"the function uses the variable {free!r} of the function around it",
            object=about,
            field=free,
            remedy="pass it as an argument",
        )
    key = f"def {function.__name__}"
    if key in parts:
        return
    parts[key] = ""  # a recursive function uses itself
    source = _source(function, about)
    for used in dict.fromkeys(_globals(function.__code__)):
        if used in function.__globals__:
            _add(used, function.__globals__[used], about, parts)
        elif not hasattr(builtins, used):
            raise TaskError(
                f"the function uses {used!r}, which is not defined", object=about, field=used, remedy="define it"
            )
    del parts[key]
    parts[key] = source


def _add(name: str, value: Any, about: str, parts: dict[str, str]) -> None:
    """Add what a function uses by a name of its module."""
    if isinstance(value, ModuleType):
        parts[name] = f"import {name}" if value.__name__ == name else f"import {value.__name__} as {name}"
    elif isinstance(value, TaskFunction):
        _collect(value.function, about, parts)
    elif _is_json(value) or (isinstance(value, tuple) and all(map(_is_json, value))):
        parts[name] = f"{name} = {value!r}"
    elif origin := _installed(value):
        parts[name] = f"{origin} as {name}"
    elif isinstance(value, FunctionType) and value.__name__ == name:
        _collect(value, about, parts)
    else:
        raise TaskError(
            f"the function uses {name!r}, a {type(value).__name__} that the pod does not have",
            object=about,
            field=name,
            remedy=f"create {name} inside of the function, pass it as an argument, or put its module into the image",
        )


def _installed(value: Any) -> str:
    """The import of a class or function of an installed module, which an image can have; empty for code of the user."""
    module, called = str(getattr(value, "__module__", None)), str(getattr(value, "__name__", None))
    if module == "__main__" or getattr(sys.modules.get(module), called, None) is not value:
        return ""
    file = getattr(sys.modules[module], "__file__", None) or ""
    standard = module.partition(".")[0] in sys.stdlib_module_names
    installed = standard or "site-packages" in file or "dist-packages" in file
    return f"from {module} import {called}" if installed else ""


def _globals(code: CodeType) -> Iterator[str]:
    """The names that a function and the functions in it read from their module."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)


def _source(function: FunctionType, about: str) -> str:
    """The source of a function without its decorators."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        [found] = ast.parse(text).body
    except (OSError, SyntaxError, ValueError):
        raise TaskError(
            "the source of the function is not available",
            object=about,
            remedy="define it with def in a file or a notebook cell",
        ) from None
    if not isinstance(found, ast.FunctionDef):
        raise TaskError("the function is not defined with def", object=about, remedy="define it with def")
    found.decorator_list = []
    return ast.unparse(found)
