"""The form of the scheduler's code, at commits of this repository: sizes, bases, complexity, circles of imports.

Only the text of the modules is read, so that a commit of any age can be measured.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import click

SCHEDULER = "volcano_py.scheduler"
RULES = ("rules", "noderules", "profiles", "framework")
"""The folders of both front ends of the rules, and of what they share."""
MOST_COMPLEX = 15


@click.command()
@click.argument("commits", nargs=-1)
def structure(commits: tuple[str, ...]) -> None:
    """A table with a column for each of COMMITS (default: the working tree).

    \b
    python -m benchmarks structure b691f979 HEAD
    """
    columns = {}
    for commit in commits or ("",):
        with tempfile.TemporaryDirectory() as folder:
            root = _checkout(commit, Path(folder)) if commit else Path(__file__).parents[1]
            columns[commit or "working tree"] = measure(root)
    rows = list(dict.fromkeys(name for column in columns.values() for name in column))
    width = max(map(len, rows))
    print(f"{'':{width}}" + "".join(f"  {name[:14]:>14}" for name in columns))
    for row in rows:
        print(f"{row:{width}}" + "".join(f"  {column.get(row, '-'):>14}" for column in columns.values()))


def measure(root: Path) -> dict[str, str]:
    """The figures of the package below a folder, by name."""
    modules = {_name(path, root): path for path in sorted((root / "volcano_py" / "scheduler").rglob("*.py"))}
    texts = {name: path.read_text() for name, path in modules.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    lines, code = ({n: count(t) for n, t in texts.items()} for count in (_lines, code_lines))
    found: dict[str, str] = {"lines of scheduler/, of them code": _two(lines, code, modules)}
    for title, folders in [(" + ".join(RULES), RULES), *((f"  {folder}/", (folder,)) for folder in RULES)]:
        inside = [n for n in modules if _folder(n) in folders]
        found[f"lines of {title}" if folders is RULES else title] = _two(lines, code, inside) if inside else "-"
    here = Counter(path.parent.relative_to(root).as_posix() for path in modules.values() if path.stem != "__init__")
    folder, most = max(here.items(), key=lambda each: (each[1], each[0]))
    found["modules side by side, at most"] = f"{most} ({folder.rpartition('/')[2]})"
    found["modules over 500, over 300 lines"] = f"{_over(lines, 500)}, {_over(lines, 300)}"
    bases, methods = _of_class(f"{SCHEDULER}.framework.session", "Session", trees)
    found["bases of Session, public methods"] = f"{bases}, {methods}"
    found[f"functions with complexity over {MOST_COMPLEX}"] = str(_complex(root))
    circles = circles_of(imports(trees))
    found["circles of imports (for types as well), modules in them"] = f"{len(circles)}, {sum(map(len, circles))}"
    names = Counter(c.name for t in trees.values() for c in t.body if isinstance(c, ast.ClassDef) and c.name[0] != "_")
    found["public class names that exist twice"] = str(sum(count > 1 for count in names.values()))
    return found


def code_lines(text: str) -> int:
    """The lines without blank ones, comments and docstrings."""
    left = {i for i, line in enumerate(text.splitlines(), 1) if line.strip() and not line.strip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            left -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(left)


def imports(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """The modules that each module imports, anywhere in its text."""
    return {name: {target for target, _, _ in _imported(tree, trees)} - {name} for name, tree in trees.items()}


def circles_of(graph: dict[str, set[str]]) -> list[set[str]]:
    """The groups of modules that import each other."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, left = set[str](), [start]
        while left:
            for target in graph[left.pop()] - seen:
                seen.add(target)
                left.append(target)
        reached[start] = seen
    groups = {frozenset(b for b in graph if b in reached[a] and a in reached[b]) for a in graph if a in reached[a]}
    return [set(group) for group in groups]


def _imported(tree: ast.Module, trees: dict[str, ast.Module]) -> Iterator[tuple[str, str, str]]:
    """(module, name there, name here) of each import of the scheduler's modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                if module in trees:
                    yield module, "", alias.asname or alias.name
                elif node.module in trees:
                    yield node.module, alias.name, alias.asname or alias.name


def _of_class(module: str, name: str, trees: dict[str, ast.Module]) -> tuple[int, int]:
    """The number of ancestors of a class, and of public methods of it and of them."""
    methods, seen, left = set[str](), set[tuple[str, str]](), [(module, name)]
    while left:
        module, name = left.pop()
        found = next((c for c in trees[module].body if isinstance(c, ast.ClassDef) and c.name == name), None)
        if found is None or (module, name) in seen:
            continue
        seen.add((module, name))
        methods |= {f.name for f in found.body if isinstance(f, ast.FunctionDef) and f.name[0] != "_"}
        known = {here: (target, there) for target, there, here in _imported(trees[module], trees)}
        left += [known.get(b.id, (module, b.id)) for b in found.bases if isinstance(b, ast.Name)]
    return len(seen) - 1, len(methods)


def _complex(root: Path) -> int:
    """How many functions ruff finds too complex (C901)."""
    limit = f"lint.mccabe.max-complexity={MOST_COMPLEX}"
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--ignore-noqa", "--select", "C901"]
    command += ["--output-format", "concise", "--config", limit, str(root / "volcano_py" / "scheduler")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.stdout.count(" C901 ")


def _checkout(commit: str, folder: Path) -> Path:
    packed = subprocess.run(["git", "archive", commit, "volcano_py"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _name(path: Path, root: Path) -> str:
    parts = PurePosixPath(path.relative_to(root).with_suffix("").as_posix()).parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _folder(module: str) -> str:
    return module.removeprefix(f"{SCHEDULER}.").partition(".")[0]


def _lines(text: str) -> int:
    return text.count("\n")


def _over(lines: dict[str, int], limit: int) -> int:
    return sum(count > limit for count in lines.values())


def _two(lines: dict[str, int], code: dict[str, int], names: dict[str, Path] | list[str]) -> str:
    return f"{sum(lines[n] for n in names):,} {sum(code[n] for n in names):,}"
