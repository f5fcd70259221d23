"""Rules and quotas in a play."""
