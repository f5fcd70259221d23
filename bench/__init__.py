"""Measures the core alone, then what is around it. `python -m bench --help` lists the benchmarks.

Budgets compare ratios within one run: machines are noisy, ratios much less so.
"""
