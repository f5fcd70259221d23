"""Tests of the test control plane itself, as far as they need no Go."""
