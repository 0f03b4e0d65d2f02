"""Facts of the packages' source files; each file is parsed once a session."""

import ast
import io
import tokenize
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    """A class or function."""

    place: str
    name: str
    is_class: bool
    docstring: str
    parameters: int


class Import(NamedTuple):
    """An import statement: `from module import names`, or names alone."""

    module: str
    names: set[str]


class Source(NamedTuple):
    """A file.

    `constants` are the texts below assignments. Its imports are all: those within functions, and
    those for types alone, too.
    """

    lines: int
    docstring: str
    definitions: list[Definition]
    constants: list[str]
    at_import: set[str]
    imports: list[Import]
    methods_called: set[str]


def files(*packages: str) -> list[Path]:
    return [path for name in packages for path in sorted((ROOT / name).rglob("*.py"))]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def source_of(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = [*ast.walk(tree)]
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    return Source(
        len(text.splitlines()),
        docstring_of(tree),
        [definition(path, node) for node in nodes if isinstance(node, Function | ast.ClassDef)],
        [text for node in nodes for text in texts_of_constants(getattr(node, "body", []))],
        imported_at_import(tree.body),
        [found for node in nodes if (found := import_of(node))],
        {call.attr for call in calls if isinstance(call, ast.Attribute)},
    )


def code_lines(text: str) -> int:
    """The number of lines of code: blank ones, comments and texts that stand alone are none."""
    tree = ast.parse(text)
    alone: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            alone.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - alone)


def docstring_of(node: ast.Module | Function | ast.ClassDef) -> str:
    return (ast.get_docstring(node, clean=False) or "").strip()


def texts_of_constants(body: object) -> list[str]:
    """The texts that follow an assignment in a module or a class."""
    nodes = body if isinstance(body, list) else []
    return [
        text.value.value
        for assigned, text in pairwise(nodes)
        if isinstance(assigned, ast.Assign | ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    ]


def definition(path: Path, node: Function | ast.ClassDef) -> Definition:
    place = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
    taken: list[ast.arg] = []
    if not isinstance(node, ast.ClassDef):
        taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return Definition(
        place, node.name, isinstance(node, ast.ClassDef), docstring_of(node), len(taken)
    )


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def import_of(node: ast.AST) -> Import | None:
    """An absolute import."""
    if isinstance(node, ast.Import):
        return Import("", {alias.name for alias in node.names})
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return Import(node.module, {f"{node.module}.{alias.name}" for alias in node.names})
    return None


def imported_at_import(body: list[ast.stmt]) -> set[str]:
    """The modules that executing a module imports, which is all but functions."""
    modules: set[str] = set()
    for node in body:
        if isinstance(node, Function) or is_type_checking(node):
            continue
        if found := import_of(node):
            modules |= {found.module, *found.names} - {""}
        for name in ("body", "orelse", "finalbody", "handlers"):
            for part in getattr(node, name, []):
                inner = part.body if isinstance(part, ast.ExceptHandler) else [part]
                modules |= imported_at_import(inner)
    return modules
