"""Every row that the code of the services writes is declared: a new kind or field fails here."""

import ast
from collections.abc import Iterator

import pytest

from cli.log.mask.row_kinds import ROWS
from extender.cluster.journal import SERVICE
from state.log.records import RowKind
from tests.architecture.files import ROOT

_SERVICES = ("extender", "webhook")
_KINDS = {f"RowKind.{kind.name}": str(kind) for kind in RowKind}


def _calls() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, ast.Call]]:
    """Yield all calls that write a row, each with the function around it."""
    for service in _SERVICES:
        for path in sorted((ROOT / service).rglob("*.py")):
            for function in ast.walk(ast.parse(path.read_text())):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield from (
                        (f"{service}: {path.name}:{call.lineno}", function, call)
                        for call in ast.walk(function)
                        if isinstance(call, ast.Call) and _writes_row(call)
                    )


def _writes_row(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    is_note = name.endswith(".note") and bool(call.args) and _kind(call.args[0]) is not None
    return name == "DecisionRecord" or is_note


def _kind(node: ast.expr | None) -> str | None:
    return None if node is None else _KINDS.get(ast.unparse(node))


def _keys(function: ast.AST, value: ast.expr | None) -> Iterator[str]:
    """Yield the keys of a mapping that is written there, or before under a name."""
    match value:
        case ast.Name():
            for node in ast.walk(function):
                yield from _assigned(function, node, value.id)
        case ast.Dict():
            for key, inner in zip(value.keys, value.values, strict=True):
                yield from _keys(function, inner) if key is None else _text(key)
        case ast.IfExp():
            yield from (*_keys(function, value.body), *_keys(function, value.orelse))


def _assigned(function: ast.AST, node: ast.AST, name: str) -> Iterator[str]:
    """Yield the keys that a name, or a part of it, is assigned."""
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if isinstance(target, ast.Subscript) and ast.unparse(target.value) == name:
        yield from _text(target.slice)
    elif ast.unparse(target) == name:
        yield from _keys(function, node.value)


def _text(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


@pytest.mark.parametrize("service", _SERVICES)
def test_every_row_that_a_service_writes_is_declared(service: str) -> None:
    found = [one for one in _calls() if one[0].startswith(service)]
    assert len(found) >= (10 if service == SERVICE else 5)
    unknown: list[str] = []
    for where, function, call in found:
        given = {one.arg: one.value for one in call.keywords}
        kind = _kind(call.args[0] if call.args else given.get("kind"))
        known = [
            mask for (of, row, _), mask in ROWS.items() if of == service and kind in (None, row)
        ]
        for part in ("details", "inputs"):
            declared = {key for mask in known for key in getattr(mask, part)}
            keys = [*_keys(function, given.get(part))]
            unknown += [f"{where}: {part}.{key}" for key in keys if key not in declared]
        if not known:
            unknown.append(f"{where}: kind {kind}")
    assert unknown == [], "declare it in cli.log.mask.row_kinds"
