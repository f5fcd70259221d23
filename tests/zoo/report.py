"""What a run counted, and whether all promises were kept."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Report:
    """One run."""

    seed: int
    seconds: float = 0.0
    settled_seconds: float = 0.0
    """From the last arrival until the last workload had gone."""
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many workloads of each kind ended in which way."""
    disturbances: Counter[str] = field(default_factory=Counter)
    halves: dict[str, float] = field(default_factory=dict)
    """The longest time of a gang by half, by cause."""
    gangs: int = 0
    most_devices: int = 0
    longest_pause: float = 0.0
    problems: dict[str, list[str]] = field(default_factory=dict)
    """Broken promises, by promise."""

    @property
    def is_good(self) -> bool:
        """Whether every promise was kept."""
        return not any(self.problems.values())

    def lines(self) -> list[str]:
        """The report, for people."""
        kinds = sorted({kind for kind, _ in self.outcomes})
        lines = [f"seed {self.seed}, {self.seconds:.0f} s, of which {self.settled_seconds:.0f} s"]
        lines[0] += " after the last arrival"
        for kind in kinds:
            ends = {end: n for (name, end), n in sorted(self.outcomes.items()) if name == kind}
            told = ", ".join(f"{count} {end}" for end, count in ends.items())
            lines.append(f"  {kind:16} {sum(ends.values()):4}  {told}")
        told = ", ".join(f"{count} {name}" for name, count in sorted(self.disturbances.items()))
        lines.append(f"disturbances: {told or 'none'}")
        lines.append(f"gangs started: {self.gangs}; devices in use at once: {self.most_devices}")
        for cause, seconds in sorted(self.halves.items()):
            lines.append(f"longest half gang {cause}: {seconds:.1f} s")
        lines.append(f"longest pause between two readings: {self.longest_pause:.1f} s")
        for promise, broken in self.problems.items():
            lines.append(f"{promise}: {len(broken)}")
            lines += [f"  {line}" for line in broken]
        return lines
