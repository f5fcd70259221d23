"""A real browser, for tests of pages; skipped where it is not installed.

The browser is Debian's package `chromium`, and Playwright drives it. axe-core judges whether people
with disabilities can use a page.

chromium  opens pages, and collects what browser and axe-core say of them
"""
