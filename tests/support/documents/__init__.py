"""The documents' examples and tables.

submit_page   the examples of docs/submit.md, and what the page says of each
metrics_page  writes docs/metrics.md from the code
"""
