"""Tests of `extender.queue.etiquette`."""
