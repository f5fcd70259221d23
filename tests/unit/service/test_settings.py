"""Addresses, as people write them."""

import pytest

from policy.errors import SettingsError
from service.settings import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9096", Address(host="127.0.0.1", port=9096)),
        ("localhost:0", Address(host="localhost", port=0)),
        ("[::1]:9443", Address(host="::1", port=9443)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text
    assert address.is_loopback


def test_an_address_of_another_machine_is_not_loopback() -> None:
    assert not parse_address("0.0.0.0:9096").is_loopback


@pytest.mark.parametrize("text", ["", "9096", ":9096", "host:", "host:http", "host:65536", "h:-1"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_address(text)
    assert str(error.value) == (
        f"{text!r} is not an address; write HOST:PORT, such as 127.0.0.1:9096"
    )
