"""Tests of the simulated cluster, part by part."""
