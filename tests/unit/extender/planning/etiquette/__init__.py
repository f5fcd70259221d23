"""Tests of `extender.planning.etiquette`."""
