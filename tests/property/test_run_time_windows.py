"""What a window keeps of its estimate is what it would compute anew."""

from hypothesis import given
from hypothesis import strategies as st

from extender.queue.forecast.run_time_windows import RunTimeWindow

_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "end", "cut", "leave", "ask"]),
        st.integers(0, 8),
        st.floats(0.0, 5000.0),
    ),
    max_size=60,
)


class _Recorded:
    """A window, and all that it was told."""

    def __init__(self) -> None:
        self.window = RunTimeWindow()
        self._told: list[tuple[str, str, float, float]] = []

    def tell(self, what: str, run: str, logarithm: float, at: float) -> None:
        self._told.append((what, run, logarithm, at))
        _tell(self.window, what, run, logarithm, at)

    def anew(self) -> RunTimeWindow:
        window = RunTimeWindow()
        for told in self._told:
            _tell(window, *told)
        return window


def _tell(window: RunTimeWindow, what: str, run: str, logarithm: float, at: float) -> None:
    match what:
        case "begin":
            window.begin(run, at=at)
        case "end":
            window.leave(run)
            window.learn(logarithm, started=at)
        case "cut":
            window.leave(run)
            window.learn_cut(logarithm)
        case "leave":
            window.leave(run)


@given(_STEPS)
def test_an_estimate_that_is_kept_is_the_one_that_would_be_computed(
    steps: list[tuple[str, int, float]],
) -> None:
    recorded, now = _Recorded(), 0.0
    for what, run, passed in steps:
        now += passed
        if what == "end":
            recorded.tell("end", f"run-{run}", passed / 700, now - passed)
        else:
            recorded.tell(what, f"run-{run}", passed / 700, now)
        if len(recorded.window):
            assert recorded.window.estimate(now=now) == recorded.anew().estimate(now=now)
