"""Sources of arrivals."""
