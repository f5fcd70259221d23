"""Tests of the Queues document as types."""
