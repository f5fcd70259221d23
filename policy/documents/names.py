"""Names in documents that Kubernetes does not restrict: users, groups, leaf types."""

from typing import Annotated, Final

from pydantic import BeforeValidator

from policy.wording import describe

MAX_NAME_CHARS: Final = 253


def check_name(value: object) -> str:
    """Pass a name as it is written. Raises ValueError in plain words."""
    if not isinstance(value, str):
        raise ValueError(f"must be a name in quotes, not {describe(value)}")
    if not value or value != value.strip():
        raise ValueError(f"must be a name without spaces around it, not {describe(value)}")
    if len(value) > MAX_NAME_CHARS:
        raise ValueError(f"is {len(value)} characters long; at most {MAX_NAME_CHARS} are allowed")
    if not value.isprintable():
        raise ValueError("must not hold characters that cannot be printed")
    return value


CheckedName = Annotated[str, BeforeValidator(check_name)]
