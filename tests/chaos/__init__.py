"""Kill things at random, then count: `python -m tests.chaos.ledger`, `… tests.chaos.log`."""
