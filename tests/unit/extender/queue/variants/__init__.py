"""Tests of variants and windows."""
