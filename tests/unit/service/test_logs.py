"""Logs are JSON: a constant message, values as fields."""

import io
import logging

import orjson
import pytest

from service.logs import JsonFormatter


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def logger(stream: io.StringIO) -> logging.Logger:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.Logger("extender.service")
    logger.addHandler(handler)
    return logger


def test_values_are_fields_beside_a_constant_message(
    logger: logging.Logger, stream: io.StringIO
) -> None:
    logger.info("pod bound", extra={"node": "n1", "leaf_cells": (0, 1)})

    line = orjson.loads(stream.getvalue())
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "extender.service",
        "message": "pod bound",
        "node": "n1",
        "leaf_cells": [0, 1],
    }


def test_an_exception_stays_on_its_line(logger: logging.Logger, stream: io.StringIO) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("request failed")

    (text,) = stream.getvalue().splitlines()
    assert orjson.loads(text)["exception"].endswith("ValueError: broken")


def test_a_field_that_json_does_not_know_is_written_as_text(
    logger: logging.Logger, stream: io.StringIO
) -> None:
    logger.info("odd", extra={"what": ValueError("x"), "set": {1}})

    line = orjson.loads(stream.getvalue())
    assert (line["what"], line["set"]) == ("x", "{1}")
