"""The same suites on a twin in memory and on the real thing."""
