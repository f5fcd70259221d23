"""Tests of the order of waiting gangs."""
