"""The policy in force: always a good one, whatever is handed over."""

import pytest

from policy.classes import NO_CLASSES
from policy.errors import Problem, SpecError
from policy.parser import DocumentKind
from policy.rules.rule_table import NO_RULES
from policy.store import PolicyStore, PolicyText, build_policy, list_problems
from tests.support.policy.documents import CLASSES, CLASSES_TEXT, classes, rules

FEWER_CLASSES_TEXT = CLASSES_TEXT.replace("- {name: oppo, cellPriority: -1}\n", "")


def _thens(store: PolicyStore) -> list[str]:
    return [rule.then for rule in store.policy.rules.rules]


def test_without_documents_there_are_no_rules_and_no_classes() -> None:
    policy = PolicyStore().policy
    assert policy.classes == NO_CLASSES
    assert policy.rules.rules == NO_RULES.rules


def test_good_documents_are_put_in_force() -> None:
    store = PolicyStore()
    policy = store.update([rules("- {then: oppo}"), classes()])
    assert (policy.classes, _thens(store), store.problems) == (CLASSES, ["oppo"], {})
    assert store.policy is policy


def test_a_bad_document_leaves_the_last_good_one_while_others_change() -> None:
    store = PolicyStore()
    store.update([rules("- {then: test}"), classes()])
    store.update([rules("- {then: (}"), classes(CLASSES_TEXT.replace("10,", "20,"))])
    assert _thens(store) == ["test"]
    assert [entry.cell_priority for entry in store.policy.classes.entries] == [100, 20, -1]
    assert [str(problem) for problem in list_problems(store.problems)] == [
        'cm/rules: rules[0].then: must be retain, fail or the name of a class: "(" is not a '
        "Kubernetes name (lower-case letters, digits, - and ., a letter or digit at both ends)"
    ]


def test_what_contradicts_the_rest_does_not_get_in() -> None:
    store = PolicyStore()
    store.update([rules("- {then: test}"), classes()])
    store.update([rules("- {then: other}"), classes()])
    assert _thens(store) == ["test"]
    hint = "use retain, fail or a class"
    message = f'"other" is not one of the classes prod, test, oppo; {hint}'
    problem = Problem("rules[0].then", message)
    assert store.problems == {"cm/rules": [problem]}


@pytest.mark.parametrize(
    "texts",
    [[rules("- {then: oppo}"), classes(FEWER_CLASSES_TEXT)], [rules("- {then: oppo}")]],
    ids=["a class is gone", "the document is gone"],
)
def test_classes_that_rules_in_force_need_stay(texts: list[PolicyText]) -> None:
    store = PolicyStore()
    before = store.update([rules("- {then: oppo}"), classes()])
    assert store.update(texts) is before
    assert len(store.problems) == 1


def test_no_other_document_keeps_a_cluster_document_out() -> None:
    store = PolicyStore()
    store.update([rules("- {then: oppo}"), classes(), _cluster("a")])
    contradicting = [rules("- {then: oppo}"), classes(FEWER_CLASSES_TEXT)]
    store.update([*contradicting, _cluster("b")])
    assert store.policy.cluster is not None
    assert store.policy.cluster.vc_names == ("b",)
    assert store.text(DocumentKind.CLUSTER) == _cluster("b").text
    assert (store.policy.classes, _thens(store)) == (CLASSES, ["oppo"])
    assert store.update(contradicting).cluster is None
    assert store.text(DocumentKind.CLUSTER) is None


def _cluster(vc: str) -> PolicyText:
    text = f"physicalCluster: {{}}\nvirtualClusters: {{{vc}: {{}}}}\n"
    return PolicyText(kind=DocumentKind.CLUSTER, source="cm/cluster", text=text)


def test_a_bad_document_at_the_start_has_its_default() -> None:
    store = PolicyStore()
    store.update([rules("- {then: other}"), classes()])
    assert (store.policy.classes, _thens(store), len(store.problems)) == (CLASSES, [], 1)


def test_problems_end_when_the_document_is_repaired_or_deleted() -> None:
    store = PolicyStore()
    store.update([rules("- {then: retain}")])
    store.update([rules("- 5")])
    told = [str(problem) for problem in list_problems(store.problems)]
    assert told == ["cm/rules: rules[0]: must be a mapping, not 5"]
    store.update([])
    assert (_thens(store), store.problems) == ([], {})


def test_there_is_one_document_of_each_kind() -> None:
    store = PolicyStore()
    store.update([rules("- {then: retain}")])
    store.update([rules("- {then: fail}", "cm/b"), rules("- {then: fail}", "cm/a")])
    assert _thens(store) == ["retain"]
    assert store.problems == {"cm/b": [Problem("", "there is already a Rules document, cm/a")]}


def test_the_version_is_of_what_documents_mean_not_of_how_they_are_written() -> None:
    one = build_policy([rules('- {occupied: "> 4", then: fail}')])
    same = build_policy([rules("- then: fail   # refused\n  occupied: 4\n  user: ''", "cm/other")])
    other = build_policy([rules('- {occupied: "> 5", then: fail}')])
    assert one.version == same.version == "0b0220029a95"
    assert other.version == "409c71674929"
    assert build_policy([]).version == "44136fa355b3"


def test_a_policy_is_built_of_exactly_the_texts_given_or_not_at_all() -> None:
    with pytest.raises(SpecError) as raised:
        build_policy([rules("- {then: oppo}\n- 5"), classes("")])
    assert [str(problem) for problem in raised.value.problems] == [
        "cm/classes: the document is empty; expected a mapping with apiVersion and kind",
        "cm/rules: rules[1]: must be a mapping, not 5",
    ]
    with pytest.raises(SpecError) as raised:
        build_policy([rules("- {then: oppo}"), classes(FEWER_CLASSES_TEXT)])
    assert [str(problem) for problem in raised.value.problems] == [
        'cm/rules: rules[0].then: "oppo" is not one of the classes prod, test; use retain, fail or '
        "a class"
    ]
