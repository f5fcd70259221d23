"""`when` of a rule: a CEL expression over one submission, compiled once.

An expression comes from an admin and its inputs from a submitter, so neither may be able to make an
evaluation slow:

- the length of the text is bounded, and its nesting by the library;
- only the list functions `all`, `exists` and `exists_one` are allowed, and not one inside another:
  the work is then linear in the submission. `map` and `filter` copy their result for each element,
  which is quadratic in the number of labels, which a submitter chooses;
- `matches` is our own, on the linear-time engine of `policy.rules.patterns` with a bounded size of
  the pattern. The library's own compiles the pattern at each call (45 ms for `\\pL{200}`).

`namespace` is a variable here, although CEL reserves the word. It and `matches` are replaced by
names of the same length before the library sees them, so positions in its messages stay right.

`parse_expression` reports what is wrong for every submission: syntax, unknown names, a result that
is not true or false. Anything else (a missing label, a division by zero) is an EvaluationError, and
the rule does not match.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import cel

from policy.rules.patterns import Pattern, parse_pattern
from policy.wording import describe, listing, plain, quote

MAX_CHARS: Final = 2048
_COST_PER_CHAR: Final = 20
"""Measured: 8 µs a character, against 0.4 µs an instruction of a compiled pattern."""
VARIABLES: Final[Mapping[str, object]] = {
    "user": "user",
    "groups": ["group"],
    "vc": "vc",
    "class": "class",
    "requestedClass": "class",
    "current": 1,
    "occupied": 1,
    "occupiedHigh": 1,
    "occupiedLow": 1,
    "leafType": "type",
    "gangSize": 1,
    "namespace": "namespace",
    "labels": {},
}
"""The variables of an expression, each with an example of its type."""
FUNCTIONS: Final = (
    "contains",
    "double",
    "dyn",
    "endsWith",
    "int",
    "matches",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
)
_USAGE: Final = frozenset({"occupied", "occupiedHigh", "occupiedLow"})
_BY_CLASS: Final = frozenset({"class", "occupiedHigh", "occupiedLow"})
_TYPES: Final = frozenset({"bool", "double", "int", "list", "map", "string", "type", "uint"})
_RENAMED: Final = {"namespace": "nameSpace", "matches": "re2find"}
_INTERNAL: Final = frozenset(_RENAMED.values())

# Strings (triple before single, raw before plain) and comments: the only places where a bracket
# or a name is not code.
_NOT_CODE: Final = re.compile(
    r"[bB]?[rR](?:'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'[^'\n]*'|\"[^\"\n]*\")"
    r"|'''(?:\\[\s\S]|[^\\])*?'''|\"\"\"(?:\\[\s\S]|[^\\])*?\"\"\""
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\""
    r"|//[^\n]*"
)
_LIST_FUNCTION: Final = re.compile(
    r"\.\s*(all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,"
)
# A variable follows no dot, a function is called; a label may have either name and keeps it.
_RENAMABLE: Final = re.compile(r"(?<!\.)(?<!\.\s)\bnamespace\b|\bmatches(?=\s*\()")
_NAME: Final = re.compile(r"\b[A-Za-z_]\w*")
_BEFORE_PATTERN: Final = re.compile(r"\bmatches\s*\((?:[^()]*,)?\s*$")
_SYNTAX_ERROR: Final = re.compile(r"<input>:(\d+):(\d+): (.*)")


class EvaluationError(Exception):
    """The expression is neither true nor false for this submission; the message says why."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; equal by its text."""

    source: str
    needs_usage: bool = field(compare=False)
    """Whether it uses what the submitter holds."""
    depends_on_class: bool = field(compare=False)
    _program: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.source

    @property
    def cost(self) -> int:
        """What it took to compile, in the unit of `policy.documents.models.CompileBudget`."""
        return _COST_PER_CHAR * len(self.source)

    def holds(self, inputs: cel.Context) -> bool:
        """Evaluate. Raises EvaluationError if the result is neither true nor false."""
        try:
            result = self._program.execute(inputs)
        except Exception as exc:
            raise EvaluationError(failure_of(exc)) from exc
        if not isinstance(result, bool):
            raise EvaluationError(f"its result is {describe(result)} instead of true or false")
        return result


def build_inputs(values: Mapping[str, object]) -> cel.Context:
    """Build the inputs of one submission, for any number of expressions, from all VARIABLES.

    Raises EvaluationError for a value that the library cannot use.
    """
    renamed = {_RENAMED.get(name, name): value for name, value in values.items()}
    functions = {_RENAMED["matches"]: _matches}
    try:
        return cel.Context(renamed, functions)
    except Exception:
        # Rare: a text that is not Unicode.
        cleaned = {name: _clean(value) for name, value in renamed.items()}
    try:
        return cel.Context(cleaned, functions)
    except Exception as exc:
        raise EvaluationError("the submission has a number that is too large") from exc


def _clean(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case list():
            return [_clean(item) for item in value]
        case dict():
            return {_clean(key): _clean(item) for key, item in value.items()}
        case _:
            return value


def parse_expression(value: object, *, variables: Mapping[str, object] = VARIABLES) -> Expression:
    """Compile a condition over these variables. Raises ValueError in plain words."""
    program = compile_expression(value, variables=tuple(variables))
    names = frozenset(program.variables())
    expression = Expression(
        str(value),
        needs_usage=not names.isdisjoint(_USAGE),
        depends_on_class=not names.isdisjoint(_BY_CLASS),
        _program=program,
    )
    _check_result(expression, variables)
    return expression


def compile_expression(value: object, *, variables: Sequence[str]) -> cel.Program:
    """Compile an expression, whatever its result is. Raises ValueError in plain words."""
    if not isinstance(value, str):
        raise ValueError(f"must be a CEL expression in quotes, not {describe(value)}")
    if len(value) > MAX_CHARS:
        raise ValueError(f"is {len(value)} characters long; at most {MAX_CHARS} are allowed")
    code = _NOT_CODE.sub(lambda match: " " * len(match.group()), value)
    program = _compile(_rename(value, code))
    _check_list_functions(code)
    _check_literal_patterns(value, code)
    _check_names(program, code, known=variables)
    return program


def _compile(source: str) -> cel.Program:
    try:
        return cel.compile(source)
    except Exception as exc:
        raise ValueError(f"is not a valid CEL expression{_syntax_reason(str(exc))}") from exc


def _syntax_reason(text: str) -> str:
    """Take position and cause of the first error out of the library's report."""
    match = _SYNTAX_ERROR.search(text)
    if match is None:
        return ""
    line, column, cause = match.groups()
    cause = cause.removeprefix("Syntax error: ").partition(" expecting ")[0]
    cause = "nested too deeply" if "Recursion limit" in cause else cause
    cause = cause.replace("mismatched input", "unexpected").replace("'<EOF>'", "end")
    return f": {plain(cause, limit=80)} at line {line}, column {column}"


def _check_list_functions(code: str) -> None:
    last_end = 0
    for match in _LIST_FUNCTION.finditer(code):
        name = match.group(1)
        if name in ("map", "filter"):
            raise ValueError(f"{name} is not available; use all, exists or exists_one")
        if match.start() < last_end:
            raise ValueError(f"{name} inside another all, exists or exists_one is not available")
        last_end = _closing_bracket(code, code.index("(", match.start()))


def _check_literal_patterns(source: str, code: str) -> None:
    for match in _NOT_CODE.finditer(source):
        if _BEFORE_PATTERN.search(code, 0, match.start()):
            literal = cel.evaluate(match.group())
            if isinstance(literal, str):
                _check_pattern(literal)


def _check_pattern(source: str) -> None:
    try:
        parse_pattern(source)
    except ValueError as exc:
        raise ValueError(f"the pattern {quote(source)} of matches {exc}") from exc


def _closing_bracket(code: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place
    return len(code)


def _check_names(program: cel.Program, code: str, *, known: Sequence[str]) -> None:
    written = set(_NAME.findall(code))
    bound = {match.group(2) for match in _LIST_FUNCTION.finditer(code)}
    ours = _INTERNAL - written  # names that we put in; in the source they would mean something else
    variables = {*known, *bound, *_TYPES, *ours}
    for name in program.variables():
        if name not in variables:
            raise ValueError(_unknown("variable", name, known=known))
    for name in program.functions():
        # Operators are listed too, under names such as `_&&_` and `@in`.
        if name[0].isalpha() and name not in (*FUNCTIONS, *ours):
            raise ValueError(_unknown("function", name, known=FUNCTIONS))


def _unknown(what: str, name: str, *, known: Sequence[str]) -> str:
    return f"unknown {what} {quote(name)}; known {what}s are {listing(known)}"


def _rename(source: str, code: str) -> str:
    pieces, end = [], 0
    for match in _RENAMABLE.finditer(code):
        pieces += [source[end : match.start()], _RENAMED[match.group()]]
        end = match.end()
    return "".join([*pieces, source[end:]])


def _matches(*arguments: object) -> bool | None:
    """Find a pattern in a text; None, which is neither true nor false, for wrong arguments.

    Does not raise, because the library would log it.
    """
    match arguments:
        case (str(text), str(source)):
            pattern = _pattern(source)
            return pattern.found_in(text) if pattern is not None else None
        case _:
            return None


@lru_cache(maxsize=256)
def _pattern(source: str) -> Pattern | None:
    try:
        return parse_pattern(source)
    except ValueError:
        return None


def _check_result(expression: Expression, variables: Mapping[str, object]) -> None:
    """Evaluate an example: types do not depend on the submission, so this finds wrong ones."""
    try:
        expression.holds(build_inputs(variables))
    except EvaluationError as exc:
        if not depends_on_values(exc.__cause__):
            raise ValueError(f"can never be true or false: {exc}") from exc


def depends_on_values(error: BaseException | None) -> bool:
    """Whether another submission may succeed, such as one with a label that the example lacks."""
    if isinstance(error, RuntimeError):
        # `Function 'int' error: …` is a value that cannot be converted; others are wrong names.
        return str(error).startswith("Function ")
    return isinstance(error, LookupError | ArithmeticError)


def failure_of(error: Exception) -> str:
    """Describe an error of the library in words that do not change with its version."""
    match error:
        case KeyError():
            return f"there is no key {quote(str(error.args[0]))}"
        case IndexError():
            return "a list has no such element"
        case ZeroDivisionError():
            return "division by zero"
        case OverflowError():
            return "a number is too large"
        case TypeError():
            return "values of different types are combined, such as a number and a string"
        case _:
            return "a value cannot be converted, or a function does not accept such values"
