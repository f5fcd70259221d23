"""One module, one test file: no database, no sleep."""
