"""The file of finished evaluations: an interrupted search goes on where it ended.

Each line is one evaluation. Its key says all that it depended on: the arrivals, the world, the
document, the stretch. So a file may hold evaluations of several searches, and a line of other
arrivals is never taken for one of these.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import orjson

from policy.errors import SettingsError
from timemachine.model import Arrival, World
from timemachine.tuning.figures import DayFigures, Waited
from timemachine.tuning.screening import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What one evaluation found, and how long it took."""

    days: Sequence[DayFigures]
    seconds: float


def fingerprint(arrivals: Sequence[Arrival], world: World, *, large: int) -> str:
    """Identify what all evaluations of a search have in common."""
    digest = hashlib.sha256(f"{version('cellgate')} {large} {world.policy.content}".encode())
    for arrival in arrivals:
        digest.update(repr(arrival).encode())
    for node in world.nodes:
        digest.update(repr(node).encode())
    vcs = world.topology.vcs if world.topology is not None else {}
    for name, vc in sorted(vcs.items()):
        digest.update(f"{name} {vc!r}".encode())
    return digest.hexdigest()


@dataclass(slots=True)
class KeptEvaluations:
    """Evaluations by what they depended on; without a file they are kept in memory only."""

    common: str
    path: Path | None = None
    _found: dict[str, Evaluation] = field(default_factory=dict)
    _is_whole: bool = True
    """Whether the file ends with a whole line."""

    def load(self) -> int:
        """Read the file; return how many evaluations of this search it has."""
        content = _read(self.path)
        self._is_whole = not content or content.endswith(b"\n")
        lines = [line for line in content.splitlines() if line]
        read = [row for row in map(_read_line, lines) if row is not None]
        if lines and not read:
            raise SettingsError(f"{self.path} is not a file of finished evaluations")
        own = self.common[:_COMMON_CHARS]
        self._found |= {key: found for key, found in read if key.startswith(own)}
        return len(self._found)

    def of(self, task: Task) -> Evaluation | None:
        """Return what an evaluation found, if it is finished."""
        return self._found.get(self._key(task))

    def keep(self, task: Task, found: Evaluation) -> None:
        """Write an evaluation down as soon as it is finished."""
        key = self._key(task)
        self._found[key] = found
        if self.path is None:
            return
        row = {
            "key": key,
            "candidate": task.candidate.name,
            "days": [_row(one) for one in found.days],
            "seconds": round(found.seconds, 3),
        }
        try:
            with self.path.open("ab") as file:
                # The line before may have been cut off.
                file.write(b"\n" * (not self._is_whole) + orjson.dumps(row) + b"\n")
        except OSError as exc:
            raise SettingsError(f"cannot write {self.path}: {exc.strerror}") from exc

    def _key(self, task: Task) -> str:
        stretch = task.stretch
        text = f"{task.candidate.text}{stretch.first} {stretch.last} {stretch.begin} {stretch.end}"
        own = hashlib.sha256(text.encode()).hexdigest()
        return f"{self.common[:_COMMON_CHARS]}-{own[:_COMMON_CHARS]}"


_COMMON_CHARS: Final = 24


def _read(path: Path | None) -> bytes:
    try:
        return path.read_bytes() if path is not None and path.exists() else b""
    except OSError as exc:
        raise SettingsError(f"cannot read {path}: {exc.strerror}") from exc


def _read_line(line: bytes) -> tuple[str, Evaluation] | None:
    """Read a line; None for one that was cut off when the program ended, or that is damaged."""
    try:
        row = orjson.loads(line)
        days = [_day(one) for one in row["days"]]
        return str(row["key"]), Evaluation(days=days, seconds=float(row["seconds"]))
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


def _row(day: DayFigures) -> dict[str, Any]:
    waits = {vc: [one.gangs, one.seconds] for vc, one in day.by_vc.items()}
    return {"day": day.day, "waits": waits, "large": day.large}


def _day(row: Mapping[str, Any]) -> DayFigures:
    by_vc = {
        vc: Waited(gangs=float(gangs), seconds=float(seconds))
        for vc, (gangs, seconds) in row["waits"].items()
    }
    return DayFigures(day=int(row["day"]), by_vc=by_vc, large=[float(one) for one in row["large"]])
