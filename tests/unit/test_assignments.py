"""No code sets the attributes of an object that is not its own: the object has a method for that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/trickle"

#: Objects of other libraries that are made to be changed so.
ALLOWED = {
    ("cli/app.py", "context.obj"),  # typer's place for what the commands share
    ("cli/interrupt.py", "signal.signal"),  # put back at once
    ("cli/run.py", "logger.propagate"),  # as the logging library is set up
    ("engine/workspaces.py", "python._activeSession"),  # of pyspark, whose own calls change it
    ("session.py", "PySparkLogger.getLogger('SQLQueryContextLogger').disabled"),
    ("execute.py", "spark.sql"),  # the user asked that their session's method take our statements
}


def own_fields(tree: ast.Module) -> set[str]:
    """Find the fields of a module's private classes: its other functions may set them."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.startswith("_")]
    parts = [part for node in classes for part in node.body if isinstance(part, ast.AnnAssign)]
    return {part.target.id for part in parts if isinstance(part.target, ast.Name)}


def made_here(function: ast.AST) -> set[str]:
    """Find the names of the objects that a function makes itself: calls of classes, and ``__new__``."""
    made = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        called = ast.unparse(node.value.func).rpartition(".")[2]
        if called.lstrip("_")[:1].isupper() or called == "__new__":
            made |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return made


def targets(function: ast.AST) -> Iterator[ast.Attribute]:
    for node in ast.walk(function):
        found = node.targets if isinstance(node, ast.Assign) else []
        found = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else found
        for target in found:
            yield from (part for part in ast.walk(target) if isinstance(part, ast.Attribute))


def assigned_from_outside(text: str) -> list[str]:
    """Find where code sets an attribute of what is neither ``self`` nor made in the same function.

    >>> assigned_from_outside("def f(x):\\n    x.y = 1")
    ['x.y']
    """
    tree = ast.parse(text)
    fields = own_fields(tree)
    found = {}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        own = {"self", "cls"} | made_here(function)
        for target in targets(function):
            is_own = isinstance(target.value, ast.Name) and (target.value.id in own or target.attr in fields)
            # Names of the language's own protocols are made to be set.
            if isinstance(target.ctx, ast.Store) and not is_own and not target.attr.startswith("__"):
                found[ast.unparse(target), target.lineno] = True
    return [name for name, _ in found]


def test_such_code_is_found():
    assert assigned_from_outside("def f(self, x):\n    self.x.y = 1") == ["self.x.y"]
    assert assigned_from_outside("def f(x):\n    x.y += 1") == ["x.y"]
    assert assigned_from_outside("def f(x):\n    a, x.y = 1, 2") == ["x.y"]
    assert assigned_from_outside("def f(self):\n    self.x = 1\n    self.x[0] = 2") == []
    assert assigned_from_outside("def f():\n    x = Thing()\n    x.y = 1") == []
    assert assigned_from_outside("def f():\n    x = find()\n    x.y = 1") == ["x.y"]


def test_attributes_are_set_by_their_own_object():
    found = {
        (str(file.relative_to(SOURCE)), target)
        for file in SOURCE.rglob("*.py")
        for target in assigned_from_outside(file.read_text())
    }

    assert found - ALLOWED == set()
    assert found >= ALLOWED
