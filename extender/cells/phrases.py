"""Parts of the sentences in `wording`: what members need, who owns cells, lists of names."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from extender.cells.model import Argument
from policy.wording import count_of, listing

LISTED: Final = 8
"""Names or sizes that a reason lists at most; it always tells how many there are."""
MEMBER_SIZES: Final = "member sizes"
"""Name of the term that lists the leaf cells of all members."""

Sentence = tuple[str, str]
"""What is the case, and what would have to change."""
Writer = Callable[..., Sentence]
"""Writes a sentence from the arguments of a reason."""
Shortfall = tuple[tuple[int, int, str, str], ...]
"""Cells that a VC was promised, how many of them are backed, their level and their leaf type."""
Needs = tuple[tuple[int, int], ...]
"""Pairs: so many members of so many leaf cells each, the largest first."""


def count_sizes(sizes: Iterable[int]) -> Needs:
    """Count members by their leaf cells."""
    pairs = sorted(Counter(sizes).items(), reverse=True)
    return tuple((count, size) for size, count in pairs[:LISTED])


def sizes_text(needs: Needs, members: int) -> str:
    """`2 x 8 and 1 x 4`."""
    text = " and ".join(f"{count} x {size}" for count, size in needs)
    smaller = members - sum(count for count, _ in needs)
    return f"{text} and {smaller} smaller" if smaller else text


def needs_text(needs: Needs, members: int, leaf_type: str) -> str:
    """`2 x 8 and 1 x 4 leaf cells of type A100`; of a gang of one, `8 leaf cells`."""
    if members == 1:
        return count_of(needs[0][1], "leaf cell") + of_type(leaf_type)
    return f"{sizes_text(needs, members)} leaf cells{of_type(leaf_type)}"


def each_member(members: int, where: str) -> str:
    """`, each member on one node`; of a gang of one, ` on one node`."""
    return f" {where}" if members == 1 else f", each member {where}"


def of_type(leaf_type: str) -> str:
    """` of type A100`, or nothing for any type."""
    return f" of type {leaf_type}" if leaf_type else ""


def owner_text(vc: str, pinned: str) -> str:
    """Name the cells that a guaranteed gang counts on."""
    return f"pinned cell {pinned}" if pinned else f"VC {vc}"


def names_text(names: Sequence[str], count: int) -> str:
    """`a, b and 7 more`, of so many."""
    more = count - len(names)
    return f"{listing(names)} and {more} more" if more else listing(names)


def one_of(names: Sequence[str], count: int, *, otherwise: str) -> str:
    """`use one of a, b and 7 more`, or the other text if there are none."""
    return f"use one of {names_text(names, count)}" if names else otherwise


def in_a_cut_vc(write: Writer) -> Writer:
    """Add to a sentence which promises to its VC the nodes do not back."""

    def write_both(*, vc: str, shortfall: Shortfall, **others: Argument) -> Sentence:
        fact, change = write(vc=vc, **others)
        parts = [
            f"{backed} of {promised} cells of level {level} and type {leaf_type}"
            for promised, backed, level, leaf_type in shortfall
        ]
        told = f"of the promise to VC {vc}, the nodes back only {' and '.join(parts)}"
        return f"{fact}; {told}", f"{change}, or once the nodes back all of the promise"

    return write_both


def among_chains(write: Writer) -> Writer:
    """Add to a sentence in which of several chains the numbers were counted."""

    def write_both(*, chain: str = "", **others: Argument) -> Sentence:
        fact, change = write(**others)
        return f"{fact} (in chain {chain}; no other chain has more)" if chain else fact, change

    return write_both
