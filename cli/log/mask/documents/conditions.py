"""CEL conditions that only compare names by equality: they hold for pseudonyms, too. Pure.

`class == 'prod' && leafCells <= 8` compares `class` with a name of a class, so that name is masked
as one. A condition that looks into names, such as `user.startsWith('svc-')`, cannot be masked.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from cli.log.mask.fields import LeftOutError, Mask, Pass
from cli.log.mask.structures import class_name, group, namespace, type_name, user, vc
from policy.queues.factors import FactorName

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'[^'\\]*'|\"[^\"\\]*\")|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%<>!()\[\],.?:]))"
)
_NAMES: Final[Mapping[str, Mask]] = {
    "user": user,
    "group": group,
    "vc": vc,
    "class": class_name,
    "leafType": type_name,
    "namespace": namespace,
}
_NUMBERS: Final = ("priority", "leafCells")
_WORDS: Final = ("in", "true", "false")
_COMPARED: Final = ("==", "!=")
_OF_FORMULA: Final = (*FactorName, "worth", "double", "int", "min", "max", "math", *_WORDS)


def when(value: object, now: Pass, where: str) -> str | None:
    """Mask the names in a condition about gangs. Raises LeftOutError if it does more with them."""
    if value is None:
        return None
    tokens = _tokens(value, where)
    masked = list(tokens)
    for place, token in enumerate(tokens):
        if token[0] in "'\"":
            mask = _mask_of(tokens, place)
            if mask is None:
                raise LeftOutError(where)
            masked[place] = f"'{mask(token[1:-1], now, where)}'"
        elif _is_word(token) and not _is_simple(tokens, place):
            raise LeftOutError(where)
    return " ".join(masked)


def formula(value: object, _: Pass, where: str) -> object:
    """Keep a formula over factors, which name nothing. Raises LeftOutError for any other one."""
    tokens = [] if value is None else _tokens(value, where)
    for token in tokens:
        if token[0] in "'\"" or (_is_word(token) and token not in _OF_FORMULA):
            raise LeftOutError(where)
    return value


def _tokens(value: object, where: str) -> list[str]:
    if not isinstance(value, str):
        raise LeftOutError(where)
    found: list[str] = []
    place, text = 0, value.rstrip()
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise LeftOutError(where)
        found.append(token[0].strip())
        place = token.end()
    return found


def _is_simple(tokens: Sequence[str], place: int) -> bool:
    """Tell whether a word is a number, or a name that is only compared with names."""
    token, after = tokens[place], _at(tokens, place + 1)
    if token in _WORDS:
        return True
    if after in ("(", ".", "["):
        return False
    if token in _NUMBERS:
        return True
    if token not in _NAMES:
        return False
    if after in _COMPARED:
        return _is_text(_at(tokens, place + 2))
    return after == "in" or (
        _at(tokens, place - 1) in _COMPARED and _is_text(_at(tokens, place - 2))
    )


def _mask_of(tokens: Sequence[str], place: int) -> Mask | None:
    """Return how a text is masked: as what it is compared with."""
    if _at(tokens, place - 1) in _COMPARED:
        return _NAMES.get(_at(tokens, place - 2))
    if _at(tokens, place + 1) in _COMPARED:
        return _NAMES.get(_at(tokens, place + 2))
    begin = place - 1
    while _at(tokens, begin) == "," or _is_text(_at(tokens, begin)):
        begin -= 1
    is_list = _at(tokens, begin) == "[" and _at(tokens, begin - 1) == "in"
    return _NAMES.get(_at(tokens, begin - 2)) if is_list else None


def _is_word(token: str) -> bool:
    return token[0].isalpha() or token[0] == "_"


def _is_text(token: str) -> bool:
    return token[:1] in ("'", '"') and bool(token)


def _at(tokens: Sequence[str], place: int) -> str:
    return tokens[place] if 0 <= place < len(tokens) else ""
