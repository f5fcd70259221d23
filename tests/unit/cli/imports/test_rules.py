"""`cellgate import rules`: tables of the system that we come from, and what differs here."""

from pathlib import Path

import pytest

from cli.imports.rule_tables import Form, read_table
from cli.imports.rules import convert
from cli.main import main
from policy.documents.rules_document import RulesDocument
from policy.errors import SettingsError
from policy.parser import DocumentKind, parse_document
from service.exit_codes import Exit
from tests.support.policy.golden_tables import SAMPLE, SHIPPED

MARKDOWN = """
Some words before.

| 用户名      | 队列 | 原始优先级        | 当前任务资源 | 已占用资源 | 已占用高优先级资源 | 变更后的优先级 | 变更说明 |
| ----------- | ---- | ----------------- | ------------ | ---------- | ------------------ | -------------- | -------- |
| ^fa_test$   |      |                   |              |            |                    | retain         |          |
| ^fa_test2$  |      | prod/test/default |              |            | 4                  | oppo           |          |
| ^fa_test2$  |      | prod/test/default |              |            | 0                  | retain         |          |
| ^fa_test2$  |      | oppo              |              | 30         |                    | fail           |          |
| ^fa_test2$  |      | oppo              |              | 0          |                    | retain         |          |
| ^user_proh$ |      |                   |              |            |                    | fail           |          |
| ^fa.*       |      | prod/test/default |              |            | 2                  | oppo           |          |
| ^fa.*       |      | prod/test/default |              |            | 0                  | retain         |          |
| .*          |      | prod/test/default |              |            |                    | oppo           | 普通用户只能提交oppo任务 |
| .*          |      | oppo              |              | 20         |                    | fail           | 超过20将失败 |
| .*          |      | oppo              |              | 0          |                    | retain         |          |
| .*          |      |                   |              |            |                    | retain         |          |

And after.
"""  # noqa: E501 - the table as it was found
SQL = """
-- a dump
CREATE TABLE `rules` (
  `rule_id` int(11) NOT NULL AUTO_INCREMENT,
  `username_match` varchar(255) DEFAULT NULL,
  `VC` varchar(255) DEFAULT NULL,
  `current_priority` varchar(255) DEFAULT NULL,
  `common_occupied_gpu_limit` int(11) DEFAULT NULL,
  `high_priority_occupied_gpu_limit` int(11) DEFAULT NULL,
  `changed_priority` varchar(255) DEFAULT NULL,
  `fail_tips` varchar(255) DEFAULT NULL,
  PRIMARY KEY (`rule_id`)
) ENGINE=InnoDB;
INSERT INTO `rules` VALUES (1,'.*',NULL,NULL,NULL,NULL,'retain',NULL),
  (2,'.*',NULL,'oppo',0,NULL,'retain',NULL),(3,'.*',NULL,'oppo',10,NULL,'fail','over 10 are refused'),
  (4,'.*',NULL,'test,default',0,NULL,'retain',''),
  (5,'.*','','test,default',2,NULL,'oppo','over 2 are opportunistic'),
  (6,'.*',NULL,'prod',NULL,NULL,'test','prod is for admins');
INSERT INTO `rules` VALUES (7,'^user_proh$',NULL,NULL,NULL,NULL,'fail','not allowed'),
  (13,'^admin$',NULL,NULL,NULL,NULL,'retain',NULL),(14,'^fourth$',NULL,NULL,NULL,NULL,'retain',NULL),
  (15,'^third$',NULL,NULL,NULL,NULL,'retain',NULL),(16,'^second$',NULL,NULL,NULL,NULL,'retain',NULL),
  (17,'^first$',NULL,NULL,NULL,NULL,'retain',NULL);
INSERT INTO `token` VALUES ('a secret');
"""  # noqa: E501 - the dump as it was found
CSV = """\ufefftitle,user,current,then,note
x,^a$,>= 4,oppo,"with a comma, and a ""quote"" in it"
,,,fail,
"""


def _import(tmp_path: Path, text: str, *flags: str) -> Exit:
    (tmp_path / "table").write_text(text)
    return main(["import", "rules", str(tmp_path / "table"), *flags], {})


def _rules(text: str) -> RulesDocument:
    document = parse_document(text, kind=DocumentKind.RULES)
    assert isinstance(document, RulesDocument)
    return document


def test_the_sample_of_the_description_is_carried_over_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _import(tmp_path, MARKDOWN) is Exit.OK
    printed = capsys.readouterr()
    assert _rules(printed.out).build().rules == SAMPLE.rules
    assert printed.err.splitlines() == [
        "cellgate: rows 2, 3, 7, 8, 9: class default was left out of prod/test/default: test, the "
        "class of tasks without one, is listed beside it",
        "cellgate: rows 4, 5, 10, 11: occupied was read as occupiedLow, because the row matches "
        "low classes only; with --occupied total it counts all classes",
    ]


def test_the_occupied_column_can_be_read_as_the_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _import(tmp_path, MARKDOWN, "--occupied", "total") is Exit.OK
    printed = capsys.readouterr()
    read = [(str(rule.occupied), rule.occupied_low) for rule in _rules(printed.out).build().rules]
    assert [one for one in read if one != ("None", None)] == [
        ("> 30", None),
        ("> 0", None),
        ("> 20", None),
        ("> 0", None),
    ]
    assert "occupiedLow" not in printed.err
    assert _import(tmp_path, MARKDOWN, "--occupied", "high") is Exit.USAGE
    assert "must be low or total, not 'high'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("priority", "field"),
    [
        ("oppo", "occupiedLow"),
        ("^oppo$", "occupiedLow"),
        ("^(oppo)$", "occupiedLow"),
        ("oppo/test", "occupied"),
        ("o.*", "occupied"),
        ("", "occupied"),
    ],
)
def test_only_rows_for_low_classes_alone_count_low_classes(priority: str, field: str) -> None:
    (rule,), _ = convert(read_table(f"priority,occupied,then\n{priority},4,fail\n"))
    assert rule[field] == "> 4"


def test_all_tables_of_a_text_are_read() -> None:
    text = """# Rules

| user | then |
|------|------|
| ^a$  | fail |

Some words, and a table about something else:

| id | machine |
|----|---------|
| 1  | dgx     |

| user | occupiedLow | then |
|------|-------------|------|
| ^b$  | 3           | fail |
| ^c$  | x           | fail |
| - | - | - |
| ^d$ | | oppo |
"""
    rules, remarks = convert(read_table(text))
    assert rules == [
        {"user": "^a$", "then": "fail"},
        {"user": "^b$", "occupiedLow": "> 3", "then": "fail"},
        {"user": "^d$", "then": "oppo"},
    ]
    assert [remark.partition(":")[0] for remark in remarks] == [
        "table 2 is not a rule table and was skipped",
        "row 2 of table 3 was skipped",
        "row 3 of table 3 was skipped",
    ]


def test_a_class_that_stands_for_none_given_is_kept_where_it_stands_alone() -> None:
    rules, remarks = convert(read_table("priority,then\nprod/default,oppo\n"))
    assert rules == [{"priority": "prod|test", "then": "oppo"}]
    assert remarks == ["row 1: class default was replaced by test, the class of tasks without one"]


def test_a_dump_is_carried_over_by_id_downwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _import(tmp_path, SQL, "--occupied", "total") is Exit.OK
    printed = capsys.readouterr()
    assert _rules(printed.out).build().rules == SHIPPED.rules
    assert printed.err.splitlines() == [
        "cellgate: table token is not a rule table and was skipped",
        "cellgate: rules are sorted by descending id, the order of matching",
        "cellgate: rows 5, 4: class default was left out of test,default: test, the class of tasks "
        "without one, is listed beside it",
        "cellgate: occupiedHigh counts a gang only while its class is high; the original system "
        "always counts it",
    ]


def test_a_dump_is_told_that_its_program_counts_all_classes() -> None:
    rules, remarks = convert(read_table(SQL))
    assert [rule["occupiedLow"] for rule in rules if "occupiedLow" in rule] == ["> 10", "> 0"]
    assert (
        "rows 3, 2: occupied was read as occupiedLow, because the row matches low classes only; "
        "with --occupied total it counts all classes, as the program does that wrote the dump"
    ) in remarks


def test_csv_is_carried_over_and_strange_columns_are_told() -> None:
    table = read_table(CSV)
    rules, remarks = convert(table)
    assert table.form is Form.CSV
    assert rules == [
        {
            "user": "^a$",
            "current": ">= 4",
            "then": "oppo",
            "note": 'with a comma, and a "quote" in it',
        },
        {"then": "fail"},
    ]
    assert remarks == ["column title is unknown and was skipped"]


def test_what_means_something_else_here_is_told() -> None:
    text = """insert into rules (rule_id, username_match, VC, current_priority,
    common_occupied_gpu_limit, high_priority_occupied_gpu_limit, changed_priority) values
    (1, 'it''s', 'a.b,c', 'default', 3, 4, 'oppo'), (2, '(?=x)', null, null, null, null, 'fail'),
    (3, 'x', null, null, null, null, null)"""
    rules, remarks = convert(read_table(text))
    same = {"user": "it's", "vc": r"^(a\.b|c)$", "priority": "test"}
    assert rules == [
        {**same, "occupied": "> 3", "then": "oppo"},
        {**same, "occupiedHigh": "> 4", "then": "oppo"},
    ]
    assert remarks[1:-1] == [
        "row 3 was skipped: it has no new class (then)",
        'row 2 was skipped: user is not a valid regular expression: invalid perl operator in "(?="',
        "row 1: class default was replaced by test, the class of tasks without one",
        "row 1: converted to two rules, since one of its two limits was enough to match",
    ]


@pytest.mark.parametrize("text", ["", "hello", "a,b\n1,2\n", "| a |\n| - |\n| 1 |\n"])
def test_what_is_no_rule_table_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        read_table(text)


def test_a_dump_may_name_the_database_of_its_table() -> None:
    named = SQL.replace("`rules`", "`openpai`.`rules`")
    assert read_table(named).rows == read_table(SQL).rows


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_spreadsheets_separate_columns_as_their_country_does(delimiter: str) -> None:
    lines = [["user", "occupied", "then"], ["^a$", "4", "oppo"]]
    text = "\n".join(delimiter.join(line) for line in lines)
    (row,) = read_table(text).rows
    assert row == {"number": "1", "user": "^a$", "occupied": "4", "then": "oppo"}


def test_a_row_whose_values_cannot_be_told_apart_is_left_out_and_counted() -> None:
    text = """| user | priority | then |
|---|---|---|
| ^a|^b | prod | oppo |
| ^c$ | prod | Retain |
| ^d\\|e$ | prod | default |
"""
    rules, remarks = convert(read_table(text))
    assert rules == [{"user": "^d|e$", "priority": "prod", "then": "test"}]
    assert remarks == [
        r"row 1 was skipped: it has 4 values for 3 columns; write a bar within a cell as \|",
        "row 2 was skipped: then must be retain, fail or the name of a class: "
        '"Retain" is not a Kubernetes name (lower-case letters, digits, - and ., a letter or digit '
        "at both ends)",
        "row 3: class default was replaced by test, the class of tasks without one",
    ]


def test_texts_of_a_dump_may_hold_anything() -> None:
    text = """create table rules (
  `rule_id` int comment 'first; of all',
  `username_match` varchar(9),
  `changed_priority` varchar(9),
  `fail_tips` varchar(9)
);
insert into rules values (1,'a\\\\.b','fail','it''s\\nINSERT INTO rules VALUES (2)');"""
    assert read_table(text).rows == [
        {
            "number": "1",
            "id": "1",
            "user": r"a\.b",
            "then": "fail",
            "note": "it's\nINSERT INTO rules VALUES (2)",
        }
    ]


@pytest.mark.parametrize(
    "text",
    ["user,then\n" + "a" * 200_000 + ",oppo\n", " " * 20_000 + "x|"],
    ids=["a huge cell", "a wide line"],
)
def test_hostile_tables_are_refused_in_words(text: str) -> None:
    with pytest.raises(SettingsError):
        read_table(text)


def test_an_id_that_is_no_number_of_a_row_orders_nothing() -> None:
    text = f"id,user,then\n{'9' * 5000},a,oppo\n1,b,oppo\n"
    assert [row["user"] for row in read_table(text).rows] == ["a", "b"]


def test_a_byte_order_mark_shifts_no_column() -> None:
    rules, remarks = convert(read_table("\ufeff| user | then |\r\n|---|---|\r\n| ^a$ | fail |\r\n"))
    assert (rules, remarks) == ([{"user": "^a$", "then": "fail"}], [])


@pytest.mark.parametrize(
    "dump",
    [
        "INSERT IGNORE INTO `rules` VALUES (1,'^a$',NULL,NULL,NULL,NULL,'fail','don''t');",
        "replace into rules values (1, \"^a$\", '', NULL, NULL, NULL, 'fail', \"don't\");",
        "-- INSERT INTO `rules` VALUES (9,'^old$','','',NULL,NULL,'fail','');\n"
        "/* INSERT INTO rules VALUES (8,'^y$','','',NULL,NULL,'fail',''); */\n"
        "INSERT INTO rules (rule_id, username_match, changed_priority, fail_tips) VALUES\n"
        "# the only one\n(1,'^a$','fail','don\\'t');",
        "CREATE TABLE rules (username_match varchar(255) COMMENT 'who, (or whom)', rule_id int,\n"
        "`changed_priority` enum('a','b'), fail_tips text, PRIMARY KEY (rule_id), KEY k (rule_id));"
        "INSERT INTO rules VALUES ('^a$', 1, 'fail', 'don''t');",
    ],
    ids=["ignore", "replace and double quotes", "comments", "columns in another order"],
)
def test_dumps_are_written_in_many_ways(dump: str) -> None:
    rules, _ = convert(read_table(dump))
    assert rules == [{"user": "^a$", "then": "fail", "note": "don't"}]
