"""The list of alternatives that a gang's owner writes in one annotation, in YAML or JSON."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from policy.documents.yaml_text import as_written, parse_yaml
from policy.documents.yaml_tree import Plain
from policy.errors import Problem, RequestError, SpecError
from policy.queues.alternatives import MOST_ALTERNATIVES, Alternative
from policy.wording import describe, listing, quote

_LONGEST: Final = 4096
_LARGEST_NUMBER: Final = 100_000
_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_KEYS: Final = ("leafType", "vc", "minMembers")
_IMPOSSIBLE: Final = {
    "leafCells": "the devices that a pod requests never change: submit another workload instead",
    "members": "the number of pods is that of their workload: list it on a suspended, indexed Job, "
    "or use minMembers to start with fewer",
    "nodes": "members are always placed as close together as possible, so no layout is listed",
}


def parse_sizes(text: str, *, path: str) -> tuple[int, ...]:
    """Read the list of a suspended Job. Raises RequestError with every problem and its path."""
    found = list[Problem]()
    sizes = [
        _read_size(value, path=f"{path}[{index}]", found=found)
        for index, value in enumerate(_read_list(text, path=path, found=found))
    ]
    if not found and len(set(sizes)) < len(sizes):
        found.append(Problem(path, "must not list a number of members twice"))
    if found:
        raise RequestError(found)
    return tuple(sizes)


def _read_size(value: object, *, path: str, found: list[Problem]) -> int:
    if not isinstance(value, Mapping) or list(value) != ["members"]:
        told = "must be a mapping with members alone, such as {members: 4}: what else differs is"
        found.append(Problem(path, f"{told} listed on the pod template"))
        return 0
    problem = _number_problem(value["members"])
    if problem is not None:
        found.append(Problem(f"{path}.members", problem))
        return 0
    return int(value["members"])


def parse_alternatives(text: str, *, path: str) -> tuple[Alternative, ...]:
    """Read the annotation. Raises RequestError with every problem and its path."""
    found = list[Problem]()
    tree = _read_list(text, path=path, found=found)
    read = [_read(value, path=f"{path}[{index}]", found=found) for index, value in enumerate(tree)]
    found += _repeated(read, path=path)
    if found:
        raise RequestError(found)
    return tuple(one for one in read if one is not None)


def _read_list(text: str, *, path: str, found: list[Problem]) -> list[Plain]:
    if len(text) > _LONGEST:
        raise RequestError.at(path, f"must have at most {_LONGEST} characters")
    try:
        tree, problems = parse_yaml(text)
    except SpecError as exc:
        raise RequestError([Problem(path, one.message) for one in exc.problems]) from exc
    found += [Problem(path, one.message) for one in problems]
    if not isinstance(tree, list) or not tree:
        example = '[{"leafType": "V100"}, {"vc": "shared"}]'
        raise RequestError.at(path, f"must be a list such as {example}, not {describe(tree)}")
    if len(tree) > MOST_ALTERNATIVES:
        raise RequestError.at(path, f"must list at most {MOST_ALTERNATIVES} alternatives")
    return tree


@lru_cache(maxsize=1024)
def read_alternatives(text: str) -> tuple[Alternative, ...]:
    """Read an annotation that may not have been checked: none if anything is wrong with it."""
    try:
        return parse_alternatives(text, path="")
    except RequestError:
        return ()


def _read(value: object, *, path: str, found: list[Problem]) -> Alternative | None:
    if not isinstance(value, Mapping) or not value:
        what = "say what differs" if value == {} else f"be a mapping, not {describe(value)}"
        found.append(Problem(path, f"must {what}; for example {{vc: shared}}"))
        return None
    before = len(found)
    found += _unknown(value, path=path)
    given: dict[str, Any] = {}
    for key in (key for key in _KEYS if key in value):
        problem = _problem(key, value[key])
        if problem is None:
            is_number = key == "minMembers"
            given[key] = value[key] if is_number else as_written(value[key])
        else:
            found.append(Problem(f"{path}.{key}", problem))
    if len(found) > before:
        return None
    return Alternative(
        leaf_type=given.get("leafType"), vc=given.get("vc"), min_members=given.get("minMembers")
    )


def _problem(key: str, value: object) -> str | None:
    """Return what is wrong with a field."""
    if key == "minMembers":
        return _number_problem(value)
    if isinstance(value, str | int | float) and _VALUE.fullmatch(as_written(value)):
        return None
    return f"must be the value of a label, not {describe(value)}"


def _number_problem(value: object) -> str | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and 1 <= int(str(value)) <= _LARGEST_NUMBER:
        return None
    return f"must be a whole number from 1 to {_LARGEST_NUMBER}, not {describe(value)}"


def _unknown(value: Mapping[Any, Any], *, path: str) -> Iterator[Problem]:
    for key in value:
        if key not in _KEYS:
            known = f"is not known; use {listing(_KEYS)}"
            yield Problem(f"{path}.{key}", _IMPOSSIBLE.get(str(key), known))


def _repeated(read: list[Alternative | None], *, path: str) -> Iterator[Problem]:
    for index, one in enumerate(read):
        if one is not None and one in read[:index]:
            first = quote(f"{path}[{read.index(one)}]")
            yield Problem(f"{path}[{index}]", f"repeats {first}")
