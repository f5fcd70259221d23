"""What would let a gang start earlier, as JSON.

A viewer who may read only the own gangs sees no name of another gang.
"""

from collections.abc import Awaitable, Callable

from extender.inspection.json_views import JsonObject, if_any
from extender.queue.variants.model import Variant, Variants
from extender.queue.variants.sentences import summary, variant_sentence
from policy.queues.alternatives import Alternative
from policy.submission import GangKey
from policy.wording import moment

VariantsOf = Callable[[GangKey], Awaitable[Variants | None]]
"""Finds what would let a gang start earlier; None if it does not wait for cells."""


async def no_variants(_: GangKey) -> Variants | None:
    """Find none: without a planner there is nothing to plan them with."""
    return None


def show_variants(variants: Variants | None, *, viewer: str | None = None) -> JsonObject:
    """Show the variants of a gang as a field; none if it does not wait for cells."""
    if variants is None:
        return {}
    found = [_show(one, variants, viewer) for one in variants.found]
    return {
        "whatWouldChangeIt": {
            "computed": moment(variants.at),
            **if_any("start", _moment(variants.expected)),
            "explanation": summary(variants, moment),
            "variants": found,
        }
    }


def _show(one: Variant, variants: Variants, viewer: str | None) -> JsonObject:
    return {
        "change": one.change.kind,
        **if_any("from", one.change.before),
        "to": one.change.after,
        "starts": one.start,
        **if_any("start", _moment(one.expected)),
        **if_any("preempts", one.victims or None),
        **if_any("endsBefore", _moment(one.until)),
        **if_any("window", one.window),
        **show_reserved(one.reservation, viewer),
        "afterDeletion": one.takes_own,
        **if_any("alternative", _show_alternative(one.change.alternative)),
        "explanation": variant_sentence(
            one, variants, show=moment, name=str if viewer is None else _anonymous
        ),
    }


def show_reserved(gang: GangKey | None, viewer: str | None) -> JsonObject:
    """Show for what leaf cells are reserved; an advance reservation has no namespace."""
    if gang is None or (gang.namespace and viewer is not None):
        return {}
    return {"reservedFor": str(gang)} if gang.namespace else {"advanceReservation": gang.name}


def _show_alternative(one: Alternative | None) -> JsonObject | None:
    """Show an alternative as the annotation lists it."""
    if one is None:
        return None
    return {
        **if_any("leafType", one.leaf_type),
        **if_any("vc", one.vc),
        **if_any("minMembers", one.min_members),
    }


def _anonymous(_: GangKey) -> str:
    return "another gang"


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else moment(seconds)
