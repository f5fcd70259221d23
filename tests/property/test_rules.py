"""Rule tables and documents at random, compared with a plain reading of the contract."""

import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from policy.classes import Classes, PriorityClass
from policy.documents.rule_checks import check_policy
from policy.documents.rules_document import RulesDocument
from policy.errors import SpecError
from policy.parser import DocumentKind, parse_document
from policy.rules.decision import RuleDecision
from policy.store import PolicyStore, PolicyText
from policy.submission import ClassName, GangKey, GroupName, Occupancy, Submission, UserName, VcName
from tests.support.policy.rule_reading import HIGH, NAMES, OPERATORS, WHENS, RuleData, read_plainly

CLASSES = Classes.of(
    [
        PriorityClass(name=ClassName(name), cell_priority=priority, high=name in HIGH)
        for name, priority in zip(NAMES, [100, 10, 0, -1], strict=True)
    ],
    default=ClassName("test"),
)


def _patterns(*sources: str) -> st.SearchStrategy[str]:
    return st.sampled_from(["", "", ".*", *sources])


comparisons = st.one_of(
    st.just(""),
    st.integers(0, 6),
    st.builds(
        "{}{}{}".format,
        st.sampled_from(list(OPERATORS)),
        st.sampled_from(["", " "]),
        st.integers(0, 6),
    ),
)
rules: st.SearchStrategy[RuleData] = st.fixed_dictionaries(
    {"then": st.sampled_from(["retain", "fail", *NAMES])},
    optional={
        "user": _patterns("^a", "b$", "a|c", "^alice$", "[a-c]o", "^..$"),
        "group": _patterns("^students$", "s", "staff|root"),
        "vc": _patterns("^lab$", "l", "^d"),
        "priority": _patterns("prod|test", "^oppo$", "o", "^dev"),
        "current": comparisons,
        "occupied": comparisons,
        "occupiedHigh": comparisons,
        "occupiedLow": comparisons,
        "when": st.sampled_from(["", *WHENS]),
        "note": st.sampled_from(["", "one", "two"]),
    },
)
tables = st.lists(rules, max_size=12)
submissions = st.builds(
    Submission,
    user=st.sampled_from(["alice", "bob", "carol", "co"]).map(UserName),
    groups=st.lists(st.sampled_from(["students", "staff", "nlp"]).map(GroupName), max_size=2).map(
        tuple
    ),
    vc=st.sampled_from(["lab", "default", "club"]).map(VcName),
    requested_class=st.sampled_from(NAMES).map(ClassName),
    gang=st.just(GangKey("ns", "gang")),
    leaf_count=st.integers(0, 6),
    labels=st.sampled_from([{}, {"team": "x"}, {"team": "y"}]),
)
usages = st.none() | st.builds(
    Occupancy, occupied=st.integers(0, 6), occupied_high=st.integers(0, 6)
)


def _decide(table: list[RuleData], submission: Submission, usage: Occupancy | None) -> RuleDecision:
    text = json.dumps({"apiVersion": "cellgate.io/v1", "kind": "Rules", "rules": table})
    document = parse_document(text, kind=DocumentKind.RULES)
    assert isinstance(document, RulesDocument)
    return document.build().decide(submission, usage=usage, classes=CLASSES)


@given(table=tables, submission=submissions, usage=usages)
def test_rules_decide_as_a_plain_reading_of_the_contract(
    table: list[RuleData], submission: Submission, usage: Occupancy | None
) -> None:
    decision = _decide(table, submission, usage)
    assert (
        str(decision.outcome),
        str(decision.final_class),
        [hit.index for hit in decision.hits],
        [(warning.index, str(warning.kind)) for warning in decision.warnings],
    ) == read_plainly(table, submission, usage)


@given(table=tables, submission=submissions, usage=usages)
def test_a_class_is_never_raised_and_each_hit_takes_up_where_the_last_one_ended(
    table: list[RuleData], submission: Submission, usage: Occupancy | None
) -> None:
    decision = _decide(table, submission, usage)
    before = submission.requested_class
    for hit in decision.hits:
        assert hit.class_before == before
        assert NAMES.index(hit.class_after) >= NAMES.index(before)
        before = hit.class_after
    assert before == decision.final_class


@given(
    table=tables,
    submission=submissions,
    usage=st.builds(Occupancy, occupied=st.integers(0, 6), occupied_high=st.integers(0, 6)),
    growth=st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_within_its_range_a_decision_does_not_depend_on_how_usage_grows(
    table: list[RuleData], submission: Submission, usage: Occupancy, growth: tuple[int, int]
) -> None:
    decision = _decide(table, submission, usage)
    more_low, more_high = growth
    grown = Occupancy(
        occupied=usage.occupied + more_low + more_high,
        occupied_high=usage.occupied_high + more_high,
    )
    valid = decision.valid
    ends = [
        (valid.occupied, grown.occupied),
        (valid.occupied_high, grown.occupied_high),
        (valid.occupied_low, grown.occupied_low),
    ]
    if all(last is None or value <= last for last, value in ends):
        again = _decide(table, submission, grown)
        assert [hit.index for hit in again.hits] == [hit.index for hit in decision.hits]
        assert (again.outcome, again.final_class) == (decision.outcome, decision.final_class)


@given(table=tables, submission=submissions, usage=usages)
def test_decisions_and_their_words_are_the_same_each_time(
    table: list[RuleData], submission: Submission, usage: Occupancy | None
) -> None:
    first, again = (_decide(table, submission, usage) for _ in range(2))
    assert first == again
    assert first.explain() == again.explain()
    assert all(len(line) <= 256 for line in first.format_warnings())


@given(table=tables, submission=submissions, usage=usages)
def test_a_rule_that_is_called_unreachable_or_idle_is_never_hit(
    table: list[RuleData], submission: Submission, usage: Occupancy | None
) -> None:
    text = json.dumps({"apiVersion": "cellgate.io/v1", "kind": "Rules", "rules": table})
    document = parse_document(text)
    assert isinstance(document, RulesDocument)
    rule_table = document.build()
    idle = {problem.path.split(".")[0] for problem in check_policy(CLASSES, rule_table)}
    decision = rule_table.decide(submission, usage=usage, classes=CLASSES)
    assert [hit for hit in decision.hits if f"rules[{hit.index}]" in idle] == []


HEAD = "apiVersion: cellgate.io/v1\nkind: "
good = st.sampled_from(
    [
        f"{HEAD}Rules\nrules:\n- {{user: '^a', occupied: '> 4', then: oppo}}\n"
        "- &x {when: \"'a' in groups\", then: fail, note: n}\n- *x\n",
        f"{HEAD}Classes\nclasses:\n- {{name: a, cellPriority: 1}}\ndefault: a\n",
        f"{HEAD}Quotas\ngroups:\n- name: v\n  limits: {{leafCells: 8, byLeafType: {{A: 1}}}}\n"
        "  over: queue\n  users: [{name: a, limits: {leafCells: 8}}]\n",
        f"{HEAD}Identity\ngroups: {{v: [a]}}\nvcs: {{lab: {{users: [a]}}}}\n"
        "templates: [{apiVersion: a.b/v1, kind: Job, path: spec.*}]\n",
    ]
)
pieces = st.sampled_from(
    ["'", '"', "{", "}", "[", "]", ":", ": ", "- ", "&x ", "*x", "!", "|", ">", "\n", "\n  ", "#",
     "---\n", "...", "%", "@", "`", "\t", "\x00", "\ud800", "\ufeff", "<<: ", "? ", "null", "-1",
     "1e999", "0x", "when: ", "user: ", "(", "\\", "((a+)+)+$", "a{1000}", "groups.all(", "é"]
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(good)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + draw(pieces) + text[end:]
    return text


KINDS = [
    ("Rules", "rules"),
    ("Classes", "classes"),
    ("Quotas", "groups"),
    ("Identity", "groups"),
    ("Identity", "vcs"),
    ("Identity", "templates"),
]


@st.composite
def misshapen(draw: st.DrawFn) -> str:
    kind, key = draw(st.sampled_from(KINDS))
    fields = ["user", "when", "then", "current", "name", "cellPriority", "high", "x", "limits",
              "users", "eachUser", "over", "leafCells", "byLeafType", "path"]  # fmt: skip
    entry = st.dictionaries(st.sampled_from(fields), values, max_size=5) | values
    body = {key: draw(st.lists(entry, max_size=4) | values), "default": draw(values)}
    return json.dumps({"apiVersion": "cellgate.io/v1", "kind": kind, **body})


hostile = st.one_of(
    st.text(max_size=60),
    st.lists(pieces, max_size=30).map("".join),
    damaged(),
    misshapen(),
)


@given(text=hostile, kind=st.none() | st.sampled_from(DocumentKind))
def test_no_text_raises_anything_but_a_list_of_problems(
    text: str, kind: DocumentKind | None
) -> None:
    with suppress(SpecError):
        parse_document(text, kind=kind)


@given(text=hostile)
def test_problems_can_be_written_anywhere_and_are_the_same_each_time(text: str) -> None:
    first, again = (_problems(text) for _ in range(2))
    assert first == again
    assert all(problem.encode("utf-8").decode("utf-8").isprintable() for problem in first)


def _problems(text: str) -> list[str]:
    try:
        parse_document(text)
    except SpecError as error:
        return [str(problem) for problem in error.problems]
    return []


@given(texts=st.lists(st.tuples(st.sampled_from(DocumentKind), hostile), max_size=3))
def test_the_policy_in_force_is_always_one_without_contradictions(
    texts: list[tuple[DocumentKind, str]],
) -> None:
    store = PolicyStore()
    found = [PolicyText(kind=kind, source="cm", text=text) for kind, text in texts]
    policy = store.update(found)
    assert check_policy(policy.classes, policy.rules) == []
