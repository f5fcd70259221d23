"""The collector must not look again at what a service has built before it answers."""

import gc

from service.garbage import settle_collector


def test_what_exists_is_left_out_from_now_on() -> None:
    before = gc.get_threshold()
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)  # a service of a test before this one may have settled it
    try:
        settle_collector()
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold() > (700, 10, 10)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_what_comes_later_is_still_found() -> None:
    before = gc.get_threshold()
    try:
        settle_collector()
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle
        assert gc.collect() >= 1
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
