"""Values of HiveD's YAML, as HiveD reads them.

HiveD's parser accepts any scalar as text (`cellAddress: 8`, a node named 0010) and null
(`cellChildren: null`) as the default of a field. The `…_of` functions read raw data: they return
None if the model reports the value, so that other checks can skip it.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import BeforeValidator

from policy.cluster.document import MAX_CELLS
from policy.documents.models import items_of, mapping_of
from policy.documents.names import MAX_NAME_CHARS, check_line
from policy.documents.yaml_text import as_written
from policy.documents.yaml_tree import Plain
from policy.wording import describe

Path = tuple[str | int, ...]

# Booleans of YAML 1.1, which HiveD reads and YAML 1.2 does not know.
_FLAGS: Final = {
    **dict.fromkeys(("y", "yes", "on"), True),
    **dict.fromkeys(("n", "no", "off"), False),
}


def check_text(value: object) -> str:
    """Pass any scalar as it was written; null is an empty text."""
    if isinstance(value, list | dict):
        raise ValueError(f"must be a string, not {describe(value)}")
    return check_line(as_written(value), most=MAX_NAME_CHARS)


def _check_number(value: object, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number, not {describe(value)}")
    if value < least:
        raise ValueError(f"must be at least {least}, not {value}")
    if value > MAX_CELLS:
        raise ValueError(f"must be at most {MAX_CELLS}, not {value}")
    return int(value)


def check_child_count(value: object) -> int:
    """Pass how many children a cell has."""
    return _check_number(value, least=1)


def check_cell_count(value: object) -> int:
    """Pass a number of cells; null is 0."""
    return 0 if value is None else _check_number(value, least=0)


def check_flag(value: object) -> bool:
    """Pass true or false, also as YAML 1.1 writes them; null is false."""
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, str) and value.lower() in _FLAGS:
        return _FLAGS[value.lower()]
    raise ValueError(f"must be true or false, not {describe(value)}")


def _check_required(value: object) -> str:
    text = check_text(value)
    if not text:
        raise ValueError("must not be empty")
    return text


Text = Annotated[str, BeforeValidator(check_text)]
RequiredText = Annotated[str, BeforeValidator(_check_required)]
ChildCount = Annotated[int, BeforeValidator(check_child_count)]
CellCount = Annotated[int, BeforeValidator(check_cell_count)]
Flag = Annotated[bool, BeforeValidator(check_flag)]


def text_of(data: Mapping[str, Plain], key: str) -> str | None:
    """Return a field's text; "" if it is missing."""
    try:
        return check_text(data.get(key))
    except ValueError:
        return None


def cell_count_of(data: Mapping[str, Plain], key: str) -> int | None:
    """Return a field's number of cells; 0 if it is missing."""
    try:
        return check_cell_count(data.get(key))
    except ValueError:
        return None


def entries_of(data: Mapping[str, Plain], key: str) -> Iterator[tuple[int, Mapping[str, Plain]]]:
    """Yield the entries of a list with their places; an empty entry is one without fields."""
    for place, item in enumerate(items_of(data, key)):
        if item is None or isinstance(item, dict):
            yield place, item or {}


def named_entries_of(
    data: Mapping[str, Plain], key: str
) -> Iterator[tuple[str, Mapping[str, Plain]]]:
    """Yield the entries of a mapping with their names; an empty entry is one without fields."""
    for name, item in mapping_of(data.get(key)).items():
        if item is None or isinstance(item, dict):
            yield name, item or {}
