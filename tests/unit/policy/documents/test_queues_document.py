"""The Queues document: what it means, and every problem with its path."""

import pytest

from policy.documents.queues_document import QueuesDocument
from policy.errors import SpecError
from policy.parser import DocumentKind, parse_document
from policy.queues.durations import DAY, HOUR
from policy.queues.factors import FactorName
from policy.queues.queues import DEFAULT_QUEUES, Queues, Strategy
from policy.store import PolicyText, build_policy

_HEAD = "apiVersion: cellgate.io/v1\nkind: Queues\n"
_CLASSES = """
apiVersion: cellgate.io/v1
kind: Classes
classes: [{name: prod, cellPriority: 1}, {name: oppo, cellPriority: -1}]
default: oppo
"""
_FULL = (
    _HEAD
    + """
levels:
- name: urgent
  who: {classes: [prod], groups: [vision], users: [alice], vcs: [lab], when: "leafCells <= 8"}
  strategy: priority
- name: batch
  strategy: formula
  worth: {class: 24h, userLevel: 4h, groupLevel: 4h, fairShare: 48h, shortRun: 112h}
  formula: "worth.class * class + worth.shortRun * shortRun"
  promoteAfter: 7d
userLevels: {gold: [alice], silver: []}
groupLevels: {}
fairShare: {halfLife: 7d, weights: {vision: 2}, entry: predicted}
runTime: {cap: 24h, longest: {default: 7d, prod: 14d}, unknown: asked}
reservation: {perPool: 1, after: 10m, backfillQuantile: 0.9, sticky: true}
preemption: {minimumRun: 30m, grace: 2m}
expectedStart: {coverage: 0.8, samples: 8}
"""
)


def _parse(text: str) -> Queues:
    document = parse_document(text, kind=DocumentKind.QUEUES)
    assert isinstance(document, QueuesDocument)
    return document.build()


def _problems(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse_document(_HEAD + text, kind=DocumentKind.QUEUES)
    return [str(problem) for problem in caught.value.problems]


def test_every_field_has_its_meaning() -> None:
    queues = _parse(_FULL)
    urgent, batch = queues.levels
    assert (urgent.strategy, urgent.worth) == (Strategy.PRIORITY, {FactorName.CLASS: 7 * DAY})
    assert urgent.who.classes == {"prod"}
    assert batch.horizon == 192 * HOUR
    assert batch.promote_after == 7 * DAY
    assert queues.user_levels == (("gold", frozenset({"alice"})), ("silver", frozenset()))
    assert queues.fair_share.weights == {"vision": 2.0}
    assert queues.run_time.longest_of("prod") == 14 * DAY
    assert queues.run_time.longest_of("oppo") == 7 * DAY
    assert queues.reservation.after == 600.0
    assert (queues.preemption.minimum_run, queues.preemption.grace) == (1800.0, 120.0)


def test_the_default_document_is_the_default_order() -> None:
    text = _HEAD + "levels: [{name: default, strategy: priority}]"
    assert _parse(text) == DEFAULT_QUEUES


def test_a_level_changes_the_worth_of_its_strategy() -> None:
    queues = _parse(_HEAD + "levels: [{name: a, strategy: priority, worth: {class: 0s, fill: 1h}}]")
    assert queues.levels[0].worth == {FactorName.FILL: HOUR}


def test_promotions_add_up() -> None:
    queues = _parse(
        _HEAD
        + """
levels:
- {name: a, who: {users: [a]}, strategy: fifo}
- {name: b, who: {users: [b]}, strategy: fifo, promoteAfter: 1d}
- {name: c, strategy: fifo, promoteAfter: 2d}
"""
    )
    assert queues.promotion_ages(2) == (2 * DAY, 3 * DAY)
    assert [queues.settles_after(place) for place in range(3)] == [0.0, 1 * DAY, 3 * DAY]


def test_every_problem_is_reported_with_its_path() -> None:
    assert _problems(
        """
levels:
- {name: a, who: {when: "leafs > 1"}, strategy: random}
- {name: b, strategy: fifo, formula: class, worth: {size: 1h, class: 3}}
- {name: b, who: {users: [x]}, strategy: formula, promoteAfter: 0s}
userLevels: {gold: [alice], silver: [alice]}
fairShare: {weights: {vision: -1}}
runTime: {cap: soon, enforce: true}
reservation: {perPool: 99, backfillQuantile: 2}
expectedStart: {coverage: 1, sample: 3}
"""
    ) == [
        'levels[0].who.when: unknown variable "leafs"; known variables are user, group, vc, class, '
        "priority, leafCells, leafType, namespace",
        "levels[0].strategy: must be fifo, priority, fair-share, shortest-first or formula, not "
        '"random"',
        'levels[1].worth.size: "size" is not a factor; the factors are class, userLevel, '
        "groupLevel, fairShare, shortRun, smallGang, asked, fill, startBy",
        "levels[1].worth.class: must be a duration such as 90s, 10m, 4h or 7d, not 3",
        'levels[2].promoteAfter: must be longer than no time, not "0s"',
        "fairShare.weights.vision: must be a number from 0.001 to 1000, not -1",
        'runTime.cap: must be a duration such as 90s, 10m, 4h or 7d, not "soon"',
        "reservation.perPool: must be at most 16, not 99",
        "reservation.backfillQuantile: must be a number from 0.5 to 1, not 2",
        "expectedStart.coverage: must be a number from 0.5 to 0.99, not 1",
        "expectedStart.sample: unknown key; known keys are coverage, samples",
        "levels[2].name: duplicate of levels[1].name",
        "levels[1].who: takes every gang, so that the levels below it get none",
        "levels[1].formula: needs strategy: formula",
        "levels[1].promoteAfter: is required: gangs of the levels above could keep a gang of this "
        "level waiting without end",
        "levels[2].who: the last level must take every gang; remove `who`, or add a level",
        "levels[2].worth: is required: what a formula gives is clamped to the sum of worth, which "
        "is 0",
        'userLevels.silver[0]: user "alice" already has a level: userLevels.gold[0]',
        "runTime.enforce: needs runTime.longest: there is no limit to enforce",
    ]


def test_every_name_of_a_level_of_users_is_checked_with_its_path() -> None:
    assert _problems(
        """
levels: [{name: a, strategy: fifo}]
userLevels: {gold: [1, " x "], "": [ann], silver: bob}
"""
    ) == [
        "userLevels.gold[0]: must be a name in quotes, not 1",
        'userLevels.gold[1]: must be a name without spaces around it, not " x "',
        'userLevels[""]: must be a name without spaces around it, not ""',
        'userLevels.silver: must be a list, not "bob"',
    ]


def test_a_worth_that_breaks_the_bound_is_refused_with_its_sum() -> None:
    assert _problems(
        """
levels:
- {name: a, who: {users: [x]}, strategy: formula, worth: {class: 24h, fairShare: 48h}}
- {name: b, strategy: fifo, promoteAfter: 36h}
"""
    ) == [
        "levels[1].promoteAfter: must be at least 72 h, not 36 h: the worth of the level above is "
        "class 24 h + fairShare 48 h = 72 h, so gangs that ask up to 72 h later would still go "
        "ahead of a promoted gang"
    ]


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        ("class +", "is not a valid CEL expression"),
        ("'x'", 'is not a number of seconds: its result is "x" instead of a number'),
        ("class * 2", "values of different types are combined"),
        ("speed * 2.0", 'unknown variable "speed"'),
        ("worth.clas * class", 'there is no key "clas"; the keys of worth are class, userLevel, '),
        ("class > 0.9 ? worth['x'] : 0.0", 'there is no key "x"; the keys of worth are class, '),
        ("1.0 / (class - class)", "gives no number of seconds for any gang"),
        ("1 / 0", "gives no number of seconds for any gang: division by zero"),
    ],
)
def test_a_formula_must_give_seconds(formula: str, problem: str) -> None:
    text = f'levels: [{{name: a, strategy: formula, worth: {{class: 1h}}, formula: "{formula}"}}]'
    (found,) = _problems(text)
    assert found.startswith("levels[0].formula: ")
    assert problem in found


def test_a_formula_may_fail_for_some_gangs() -> None:
    formula = "1.0 / (class - shortRun)"
    text = f'levels: [{{name: a, strategy: formula, worth: {{class: 1h}}, formula: "{formula}"}}]'
    assert _parse(_HEAD + text).levels[0].formula


def test_unknown_classes_and_vcs_contradict_other_documents() -> None:
    texts = [
        PolicyText(kind=DocumentKind.CLASSES, source="classes", text=_CLASSES),
        PolicyText(
            kind=DocumentKind.QUEUES,
            source="queues",
            text=_HEAD
            + "levels: [{name: a, who: {classes: [tset]}, strategy: fifo},"
            + " {name: b, strategy: fifo, promoteAfter: 1d}]\nrunTime: {longest: {test: 1d}}",
        ),
    ]
    with pytest.raises(SpecError) as caught:
        build_policy(texts)
    assert [str(problem) for problem in caught.value.problems] == [
        'queues: levels[0].who.classes[0]: "tset" is not one of the classes: prod, oppo',
        'queues: runTime.longest.test: "test" is neither default nor one of the classes: '
        "prod, oppo",
    ]


def test_the_order_of_user_levels_is_part_of_the_version() -> None:
    versions = {
        build_policy(
            [
                PolicyText(
                    kind=DocumentKind.QUEUES,
                    source="queues",
                    text=_HEAD + f"levels: [{{name: a, strategy: fifo}}]\nuserLevels: {levels}",
                )
            ]
        ).version
        for levels in ("{gold: [a], silver: [b]}", "{silver: [b], gold: [a]}")
    }
    assert len(versions) == 2


def test_a_grace_is_bounded() -> None:
    (found,) = _problems("levels: [{name: a, strategy: fifo}]\npreemption: {grace: 61m}")
    assert found.startswith("preemption.grace: must be at most 1 h: what a VC was promised")
