"""Preemption for pods where kube-scheduler does not ask for it, and reservations until it is over.

kube-scheduler asks to preempt in the same cycle as filter, or not at all: it looks for victims only
on nodes that look full to it.
"""

import asyncio
from typing import Final, NoReturn

from extender.outcomes.waiting_list import WaitingList
from extender.verbs.preempt import PreemptVerb
from service.clock import Clock

_EVERY_SECONDS: Final = 1.0
_RENEW_ROUNDS: Final = 10
"""Often enough for a lease of a minute."""


async def preempt_unasked(
    waiting: WaitingList, preemption: PreemptVerb, *, clock: Clock, patience_seconds: float
) -> NoReturn:
    """End victims after `patience_seconds`, and renew reservations while victims end."""
    rounds = 0
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        rounds += 1
        now = clock.now()
        for pod in list(waiting.pods.values()):
            is_overdue = (now - pod.since).total_seconds() >= patience_seconds
            if pod.asks_to_preempt and is_overdue:
                preemption.preempt_unasked(pod)
            elif pod.victims and rounds % _RENEW_ROUNDS == 0:
                preemption.renew(pod)
