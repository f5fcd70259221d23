"""The Queues document: the order of waiting gangs, reservations, and what is assumed of runs."""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator

from policy.documents.models import Document, Strict, limited_by_budget
from policy.documents.names import CheckedName, ClassNameField
from policy.documents.queue_parts.queue_checks import queue_problems, unknown_names
from policy.documents.queue_parts.window_entries import (
    MAX_NAMES,
    MAX_WINDOWS,
    AdvanceEntry,
    MaintenanceEntry,
    WhoEntry,
    unknown_in_windows,
    window_problems,
)
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.queues.durations import HOUR, format_duration, parse_duration
from policy.queues.factors import FactorName
from policy.queues.formula import Formula, parse_formula
from policy.queues.queues import (
    PRESETS,
    DefragmentationMode,
    DefragmentationRules,
    ExpectedStartRules,
    FairShareRules,
    NamedLevels,
    PreemptionRules,
    QueueLevel,
    Queues,
    ReservationRules,
    RunTimeRules,
    Strategy,
)
from policy.wording import describe

MAX_LEVELS: Final = 32
LONGEST_GRACE: Final = HOUR


def _check_duration(value: object) -> str:
    parse_duration(value)
    return str(value)


def _check_some_time(value: object) -> str:
    if parse_duration(value) <= 0:
        raise ValueError(f"must be longer than no time, not {describe(value)}")
    return str(value)


def _check_grace(value: object) -> str:
    if parse_duration(value) > LONGEST_GRACE:
        longest = format_duration(LONGEST_GRACE)
        raise ValueError(f"must be at most {longest}: what a VC was promised waits for so long")
    return str(value)


def _check_factor(value: object) -> str:
    if value not in list(FactorName):
        known = ", ".join(FactorName)
        raise ValueError(f"{describe(value)} is not a factor; the factors are {known}")
    return str(value)


def _from_pairs(value: object) -> object:
    """Read levels as the content of a policy has them."""
    if isinstance(value, list) and all(isinstance(one, list) and len(one) == 2 for one in value):
        names = [name for name, _ in value]
        return dict(value) if all(isinstance(name, str) for name in names) else value
    return value


def _number(*, least: float, most: float) -> BeforeValidator:
    """Make a check of a number that may be written without a decimal point."""

    def check(value: object) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= float(value) <= most:  # type: ignore[arg-type]  # checked
            what = f"a number from {least:g} to {most:g}"
            raise ValueError(f"must be {what}, not {describe(value)}")
        return float(value)  # type: ignore[arg-type]  # checked above

    return BeforeValidator(check)


_AsText = PlainSerializer(lambda value: None if value is None else str(value))
Duration = Annotated[str, BeforeValidator(_check_duration)]
Grace = Annotated[str, BeforeValidator(_check_grace)]
SomeTime = Annotated[str, BeforeValidator(_check_some_time)]
FactorField = Annotated[str, BeforeValidator(_check_factor)]
LevelsField = Annotated[
    dict[CheckedName, Annotated[list[CheckedName], Field(max_length=MAX_NAMES)]],
    # A list of pairs, because the order of its keys has a meaning.
    BeforeValidator(_from_pairs),
    PlainSerializer(lambda levels: [[name, members] for name, members in levels.items()]),
]
FormulaField = Annotated[
    Formula | None,
    PlainValidator(limited_by_budget(parse_formula), json_schema_input_type=str | None),
    _AsText,
]


class LevelEntry(Strict):
    """One level. Its gangs are ahead of all gangs of the levels below."""

    name: CheckedName = Field(description="Shown to users.")
    who: WhoEntry = Field(default=WhoEntry(), description="Which gangs it takes; else every gang.")
    strategy: Literal["fifo", "priority", "fair-share", "shortest-first", "formula"] = Field(
        description="How it orders its gangs: a preset of `worth`. `fifo` has none, `priority` "
        "`class: 7d`, `fair-share` `fairShare: 48h`, `shortest-first` `shortRun: 192h`; `formula` "
        "has what `worth` says."
    )
    worth: dict[FactorField, Duration] = Field(
        default={},
        description="Seconds of waiting that a factor gives at most, by [factor](#factors), such "
        "as `class: 24h`; instead of those of the strategy.",
    )
    formula: FormulaField = Field(
        default=None,
        description="A CEL expression over the factors and `worth` that gives seconds, clamped to "
        "what `worth` adds up to: `worth.class * class`. Without it, the sum of worth · factor.",
    )
    promote_after: SomeTime | None = Field(
        default=None,
        description="After how much waiting a gang is ranked in the level above. Required in all "
        "levels but the first; at least what the worth of the level above adds up to.",
    )

    def build(self) -> QueueLevel:
        """Build what decides."""
        strategy = Strategy(self.strategy)
        given = {FactorName(name): parse_duration(text) for name, text in self.worth.items()}
        merged = {**PRESETS[strategy], **given}
        return QueueLevel(
            name=self.name,
            who=self.who.build(),
            strategy=strategy,
            worth={name: merged[name] for name in FactorName if merged.get(name)},
            formula=self.formula,
            promote_after=parse_duration(self.promote_after) if self.promote_after else None,
        )


class FairShareEntry(Strict):
    """How recent use of leaf cells is counted."""

    half_life: SomeTime = Field(
        default="7d", description="After this time, use counts half as much."
    )
    weights: dict[CheckedName, Annotated[float, _number(least=0.001, most=1000)]] = Field(
        default={}, max_length=MAX_NAMES, description="Shares of charged groups; 1 for all others."
    )
    entry: Literal["predicted", "none"] = Field(
        default="predicted",
        description="`predicted` counts a gang that starts at once with its expected use, so that "
        "a burst of gangs does not start before any is counted.",
    )

    def build(self) -> FairShareRules:
        """Build what decides."""
        return FairShareRules(
            half_life=parse_duration(self.half_life), weights=dict(self.weights), entry=self.entry
        )


class RunTimeEntry(Strict):
    """What is assumed about run times."""

    cap: SomeTime = Field(
        default="24h", description="From here on a longer run makes no difference to the rank."
    )
    longest: dict[ClassNameField, SomeTime] = Field(
        default={},
        description="How long a gang runs at most, by class; `default` for all other classes. "
        "An assumption, unless `enforce` is true.",
    )
    unknown: Literal["asked", "cap"] = Field(
        default="asked",
        description="What a gang without history is expected to run: its limit "
        "(`activeDeadlineSeconds`), or `cap`.",
    )
    enforce: bool = Field(
        default=False,
        description="Whether new pods get `longest` as their limit. Without it there is no bound "
        "on how long a gang can wait.",
    )

    def build(self) -> RunTimeRules:
        """Build what decides."""
        return RunTimeRules(
            cap=parse_duration(self.cap),
            longest={name: parse_duration(text) for name, text in self.longest.items()},
            unknown=self.unknown,
            enforce=self.enforce,
        )


class ReservationEntry(Strict):
    """Which waiting gangs get a reservation, and which gangs may use its cells before."""

    per_pool: int = Field(
        default=1, ge=0, le=16, description="Reservations in each pool at most; 0 for none."
    )
    after: Duration = Field(
        default="10m", description="How long the first gang of a pool waits before it gets one."
    )
    backfill_quantile: Annotated[float, _number(least=0.5, most=1)] = Field(
        default=0.9,
        description="Which quantile of its run time must end before the reservation begins, for a "
        "gang to use reserved cells.",
    )
    sticky: bool = Field(
        default=True,
        description="Whether a reservation keeps its cells; otherwise it is made anew after each "
        "change, and no bound holds.",
    )

    def build(self) -> ReservationRules:
        """Build what decides."""
        return ReservationRules(
            per_pool=self.per_pool,
            after=parse_duration(self.after),
            backfill_quantile=self.backfill_quantile,
            sticky=self.sticky,
        )


class PreemptionEntry(Strict):
    """How running gangs are protected from preemption."""

    minimum_run: Duration = Field(
        default="0s",
        description="How long a guaranteed gang runs before a higher priority of its own VC may "
        "preempt it. An opportunistic gang is not protected from what a VC was promised.",
    )
    grace: Grace = Field(
        default="0s",
        description="How long a victim runs on after the Event that announces its end, at most "
        "`1h`. After that its pods get their own `terminationGracePeriodSeconds`.",
    )

    def build(self) -> PreemptionRules:
        """Build what decides."""
        return PreemptionRules(
            minimum_run=parse_duration(self.minimum_run),
            grace=parse_duration(self.grace),
        )


class DefragmentationEntry(Strict):
    """Moves of opportunistic gangs that let another one with a reservation start earlier."""

    mode: Literal["off", "propose", "perform"] = Field(
        default="propose",
        description="`propose` shows moves beside the reservation, `perform` also ends the gangs "
        "that move; each goes back into the queue with its age.",
    )
    maximum_cost: Duration = Field(
        default="1h",
        description="How much leaf-cell time all moves for one gang may lose: for each gang its "
        "leaf cells times `cellgate.io/checkpoint-cost`, or else times its whole run so far.",
    )

    def build(self) -> DefragmentationRules:
        """Build what decides."""
        return DefragmentationRules(
            mode=DefragmentationMode(self.mode), maximum_cost=parse_duration(self.maximum_cost)
        )


class ExpectedStartEntry(Strict):
    """How expected starts are computed."""

    coverage: Annotated[float, _number(least=0.5, most=0.99)] = Field(
        default=0.8, description="How often the actual start is to lie in the interval."
    )
    samples: int = Field(default=8, ge=1, le=64, description="Futures that are sampled.")

    def build(self) -> ExpectedStartRules:
        """Build what decides."""
        return ExpectedStartRules(coverage=self.coverage, samples=self.samples)


class QueuesDocument(Document):
    """The order in which waiting gangs are planned, and the bounds of their waiting."""

    may_be_partial: ClassVar[bool] = False
    kind: Literal["Queues"] = Field(description="Always `Queues`.")
    levels: list[LevelEntry] = Field(
        min_length=1,
        max_length=MAX_LEVELS,
        description="All levels, highest first. A gang belongs to the first that takes it; the "
        "last takes every gang.",
    )
    user_levels: LevelsField = Field(
        default={},
        description="Users by level, highest first: `{gold: [alice], silver: []}`. All others are "
        "below the last.",
    )
    group_levels: LevelsField = Field(
        default={}, description="Charged groups by level, highest first."
    )
    fair_share: FairShareEntry = Field(default=FairShareEntry(), description="Recent use.")
    run_time: RunTimeEntry = Field(default=RunTimeEntry(), description="Run times.")
    reservation: ReservationEntry = Field(
        default=ReservationEntry(), description="Reservations and backfill."
    )
    preemption: PreemptionEntry = Field(default=PreemptionEntry(), description="Preemption.")
    reservations: list[AdvanceEntry] = Field(
        default=[],
        max_length=MAX_WINDOWS,
        description="Leaf cells of a VC that are reserved in advance for some of its gangs.",
    )
    maintenance: list[MaintenanceEntry] = Field(
        default=[], max_length=MAX_WINDOWS, description="When nodes are left to their admins."
    )
    defragmentation: DefragmentationEntry = Field(
        default=DefragmentationEntry(), description="Moves of opportunistic gangs."
    )
    expected_start: ExpectedStartEntry = Field(
        default=ExpectedStartEntry(), description="Expected starts."
    )

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield what levels say against each other, and what breaks the bound of waiting."""
        yield from queue_problems(data)
        yield from window_problems(data)

    def problems_with(
        self, *, classes: tuple[str, ...], vcs: frozenset[str] | None
    ) -> Iterator[Problem]:
        """Yield names of classes and VCs that other documents do not know."""
        levels = [(level.who.classes, level.who.vcs) for level in self.levels]
        yield from unknown_names(levels, longest=self.run_time.longest, classes=classes, vcs=vcs)
        yield from unknown_in_windows(self.reservations, classes=classes, vcs=vcs)

    def build(self) -> Queues:
        """Build what decides."""
        return Queues(
            levels=tuple(level.build() for level in self.levels),
            user_levels=_build_levels(self.user_levels),
            group_levels=_build_levels(self.group_levels),
            fair_share=self.fair_share.build(),
            run_time=self.run_time.build(),
            reservation=self.reservation.build(),
            preemption=self.preemption.build(),
            defragmentation=self.defragmentation.build(),
            expected_start=self.expected_start.build(),
            reservations=tuple(one.build() for one in self.reservations),
            maintenance=tuple(one.build() for one in self.maintenance),
        )


def _build_levels(levels: Mapping[str, list[str]]) -> NamedLevels:
    return tuple((name, frozenset(members)) for name, members in levels.items())
