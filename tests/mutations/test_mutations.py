"""Every rule that is broken on purpose is noticed by the tests that are said to notice it."""

import pytest

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import Mutation, is_noticed


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.rule)
def test_a_broken_rule_is_noticed(mutation: Mutation) -> None:
    for test in mutation.noticed_by:
        test()
        with mutation.apply():
            assert is_noticed(test)
