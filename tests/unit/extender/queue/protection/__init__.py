"""Tests of `extender.queue.protection`."""
