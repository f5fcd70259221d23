"""What the text says beside what a play of a few gangs shows."""

from dataclasses import replace

from cli.whatif.report import format_comparison
from timemachine.comparison import (
    Anomaly,
    ChangeKind,
    Comparison,
    GangChange,
    Grouping,
    Side,
    Waits,
)

_WAITS = Waits(gangs=3, mean=90.0, median=60.0, p95=7200.0, longest=7200.0, never_started=1)
_SIDE = Side(
    title="before",
    leaf_cells=1024,
    all=_WAITS,
    by={Grouping.VC: {f"vc-{number:02}": replace(_WAITS, gangs=number) for number in range(15)}},
    use=(),
    utilisation=0.5,
    fragmentation=0.25,
    refused=1,
    lowered=0,
    preemptions=2,
    longest_head_wait=30.0,
)
_CHANGE = GangChange(
    gang="lab/bert\x07",
    user="",
    vc="lab",
    leaf_cells=8,
    submitted=0.0,
    kind=ChangeKind.STARTS_LATER,
    seconds=60.0,
    before="class prod, started after 3 min on a1",
    after="class prod, started after 4 min on a2",
)
_COMPARISON = Comparison(
    source="the log",
    begin=0.0,
    end=1.0,
    gangs=3,
    changed=("Queues of q.yaml",),
    before=_SIDE,
    after=_SIDE,
    counts={ChangeKind.STARTS_LATER: 7},
    gains=(),
    losses=[_CHANGE] * 7,
    others=[replace(_CHANGE, kind=ChangeKind.PREEMPTED, seconds=0.0)],
    anomalies=[Anomaly(vc="lab", mean_seconds=60.0, p95_seconds=-5.0)],
    unknown=["Users would have behaved differently. " * 4],
)


def test_the_text_says_all_that_an_admin_asks() -> None:
    lines = [*format_comparison(_COMPARISON)]
    assert lines[:2] == ["3 gangs: the log", "what differs: Queues of q.yaml"]
    words = [line.split() for line in lines]
    assert ["p95", "wait", "2", "h", "2", "h"] in words
    assert ["fragmentation", "25.0", "%", "25.0", "%"] in words
    assert "gangs that are preempted after, not before" in lines
    assert "  lab/bert? (no user, VC lab, 8 leaf cells, 1970-01-01T00:00:00Z)" in lines
    assert "  and 2 more, in the JSON and the HTML report" in lines
    place = lines.index("VCs that wait longer after than alone with their promise")
    assert lines[place + 2] == "  lab  1 min  -5 s"
    assert max(map(len, lines)) <= 100
    assert lines[-1].startswith("    ")


def test_many_rows_are_cut_to_those_with_most_gangs() -> None:
    lines = [*format_comparison(_COMPARISON)]
    rows = [line.split()[0] for line in lines if line.startswith("  vc-")]
    assert rows == [f"vc-{number:02}" for number in range(3, 15)]
    assert "  and 3 more, in the JSON and the HTML report" in lines
