"""The file of named queries."""

import pytest

from policy.errors import InvariantError
from state.database.queries import QUERIES, Query, parse_queries, sql


def test_a_file_is_parsed_into_names_purposes_and_statements() -> None:
    one = "-- name: one\n-- Count.\nSELECT 1\n"
    two = "-- name: two\n-- Sum.\nSELECT\n  2\n"
    assert parse_queries(f"-- About this file.\n\n{one}\n{two}") == {
        "one": Query(purpose="Count.", sql="SELECT 1"),
        "two": Query(purpose="Sum.", sql="SELECT\n  2"),
    }


def test_a_query_without_a_purpose_is_an_error() -> None:
    with pytest.raises(InvariantError, match="one needs one line of purpose"):
        parse_queries("-- name: one\nSELECT 1\nFROM t\n")


def test_two_queries_of_one_name_are_an_error() -> None:
    with pytest.raises(InvariantError, match="same name"):
        parse_queries("-- name: one\n-- A.\nSELECT 1\n-- name: one\n-- B.\nSELECT 2\n")


def test_every_query_is_there_by_name() -> None:
    assert "INSERT INTO decisions" in sql("insert_decisions")
    assert all(query.purpose.endswith(".") for query in QUERIES.values())
