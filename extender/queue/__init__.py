"""Order, reservation and backfill of waiting gangs. Pure, under the contract of `policy`."""
