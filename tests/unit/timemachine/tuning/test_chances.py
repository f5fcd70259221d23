"""Numbers that look random."""

from timemachine.tuning.chances import Chances


def test_the_same_seed_gives_the_same_numbers_and_neighbours_others() -> None:
    numbers = [[Chances(seed).share() for _ in range(3)] for seed in (7, 7, 8)]
    assert numbers[0] == numbers[1]
    assert not set(numbers[0]) & set(numbers[2])


def test_shares_spread_over_the_range() -> None:
    chances = Chances(1)
    counts = [0] * 10
    for _ in range(5000):
        counts[int(chances.share() * 10)] += 1
    assert min(counts) > 400
    assert max(counts) < 600


def test_whole_numbers_stay_below_their_limit() -> None:
    chances = Chances(3)
    assert {chances.below(4) for _ in range(200)} == {0, 1, 2, 3}


def test_a_shuffle_keeps_all_things_and_gives_each_a_chance() -> None:
    chances = Chances(5)
    firsts = [chances.shuffled("abcd")[0] for _ in range(400)]
    assert sorted(chances.shuffled("abcd")) == list("abcd")
    assert all(70 < firsts.count(one) < 130 for one in "abcd")
