"""Long lists, one page at a time: `?limit=100&after=KEY`.

A page is `{"items": […], "next": KEY}`; the last one has no `next`. Items are sorted by key, so
that items which appear or disappear between two pages do not repeat or hide others.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from policy.errors import RequestError

MOST: Final = 1000
USUAL: Final = 100
_LIMIT: Final = re.compile("[0-9]{1,4}")

T = TypeVar("T")


def read_limit(query: Mapping[str, str]) -> int:
    """Return how many items a page has. Raises RequestError if `limit` is not valid."""
    text = query.get("limit", str(USUAL))
    if not (_LIMIT.fullmatch(text) and 1 <= int(text) <= MOST):
        raise RequestError.at("limit", f"must be a whole number from 1 to {MOST}")
    return int(text)


def page_of(
    items: Mapping[str, T], query: Mapping[str, str], *, show: Callable[[T], Any]
) -> dict[str, Any]:
    """Build one page of items that have keys."""
    limit, after = read_limit(query), query.get("after", "")
    keys = sorted(key for key in items if key > after)
    page: dict[str, Any] = {"items": [show(items[key]) for key in keys[:limit]]}
    if len(keys) > limit:
        page["next"] = keys[limit - 1]
    return page
