"""Sentences about waiting gangs that stay true while the gang waits for the same reason.

A pod's condition keeps its message for hours. A number in it that was counted once, such as the
members that have room, would soon be wrong, and a write for each change would cost more than it
says. So these sentences leave such numbers out; `wording` has the sentences with them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from extender.cells.model import Reason, ReasonCode
from extender.cells.phrases import Needs, each_member, needs_text, owner_text
from policy.pod_resources import show_amount

_Writer = Callable[..., str]


def lasting_text(reason: Reason) -> str:
    """Write why a gang waits and what would change that, without numbers that change meanwhile."""
    write = _FACTS.get(reason.code)
    return reason.text if write is None else write(change=reason.change, **reason.arguments)


def _needs(needs: Needs, members: int, leaf_type: str) -> str:
    return f"needs {needs_text(needs, members, leaf_type)}"


def _no_room(*, gang: str, needs: Needs, members: int, leaf_type: str = "", **_: object) -> str:
    return (
        f"gang {gang} {_needs(needs, members, leaf_type)}{each_member(members, 'on one node')}; "
        "there is not enough room now; starts once enough leaf cells are free"
    )


def _vc_full(
    *,
    gang: str,
    vc: str,
    promised: int,
    change: str,
    needs: Needs = (),
    members: int = 0,
    pinned: str = "",
    leaf_type: str = "",
    **_: object,
) -> str:
    if not promised:
        return (
            f"gang {gang} has a guaranteed class, but VC {vc} was promised no leaf cells; {change}"
        )
    asks, owner = _needs(needs, members, leaf_type), owner_text(vc, pinned)
    return f"gang {gang} {asks}; too few leaf cells of {owner} are unused; {change}"


def _bad_cells(*, gang: str, needs: Needs, members: int, leaf_type: str = "", **_: object) -> str:
    return (
        f"gang {gang} {_needs(needs, members, leaf_type)}; too many of the leaf cells that it "
        "could use are bad; starts once nodes are healthy again or other gangs have ended"
    )


def _foreign_use(
    *, gang: str, needs: Needs, members: int, change: str, leaf_type: str = "", **_: object
) -> str:
    asks = _needs(needs, members, leaf_type)
    return (
        f"gang {gang} {asks}; leaf cells that it could use are in use by pods that Cellgate did "
        f"not place; {change}"
    )


def _lacks_resources(
    *,
    gang: str,
    needs: Needs,
    members: int,
    change: str,
    leaf_type: str = "",
    resource: str = "",
    asked: int = 0,
    **_: object,
) -> str:
    each = f" and {show_amount(resource, asked)} for each member" if asked else ""
    lack = resource or "room for as many members as they have leaf cells for"
    asks = _needs(needs, members, leaf_type)
    return f"gang {gang} {asks}{each}; nodes that have leaf cells for it lack {lack}; {change}"


def _gathering(*, gang: str, needed: int, size: int, **_: object) -> str:
    which, label = ("enough", "gang-min") if needed < size else ("all", "gang-size")
    return (
        f"gang {gang} is incomplete; scheduled once {which} members exist ({needed}); check "
        f"`cellgate.io/{label}`"
    )


def _members_ending(*, gang: str, **_: object) -> str:
    return f"gang {gang} still has earlier pods that are terminating; starts once they have ended"


_FACTS: Final[Mapping[ReasonCode, _Writer]] = {
    ReasonCode.NO_ROOM: _no_room,
    ReasonCode.VC_FULL: _vc_full,
    ReasonCode.BAD_CELLS: _bad_cells,
    ReasonCode.FOREIGN_USE: _foreign_use,
    ReasonCode.LACKS_RESOURCES: _lacks_resources,
    ReasonCode.GATHERING: _gathering,
    ReasonCode.MEMBERS_ENDING: _members_ending,
}
"""Codes whose sentences have numbers that change while the gang waits."""
