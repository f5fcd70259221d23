"""The decision log as a source of arrivals."""
