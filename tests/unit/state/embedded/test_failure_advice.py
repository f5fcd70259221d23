"""A server's last words, in one line that says what to do."""

import pytest

from state.embedded.failure_advice import explain


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            ["/x/postgres: error while loading shared libraries: libz.so.1: cannot open shared"],
            ["shared library libz.so.1", "install the system package"],
        ),
        (
            ["/x/postgres: /lib/libc.so.6: version `GLIBC_2.99' not found (required by /x/pg)"],
            ["too old", "GLIBC_2.99"],
        ),
        (
            ["launcher: error: cannot become user 65534: Operation not permitted"],
            ["may not become user 65534", "ordinary user"],
        ),
        (
            ["initdb: error: could not look up effective user ID 4711: user does not exist"],
            ["user 4711 has no entry in /etc/passwd"],
        ),
        (
            [
                "FATAL:  database files are incompatible with server",
                "DETAIL:  The data directory was initialized by PostgreSQL version 17, which is "
                "not compatible with this version 18.6.",
            ],
            ["created by PostgreSQL 17", "use another directory"],
        ),
        (
            ['FATAL:  could not write to file "pg_wal/xlogtemp.1": No space left on device'],
            ["the disk is full"],
        ),
        (
            [
                'FATAL:  could not extend file "base/1/2691": wrote only 4096 of 8192 bytes',
                "HINT:  Check free disk space.",
                "PANIC:  cannot abort transaction 1, it was already committed",
            ],
            ["the disk is full"],
        ),
        (
            ['FATAL:  could not resize shared memory segment "/P.1": No space left on device'],
            ["/dev/shm"],
        ),
        (
            ['initdb: error: could not create directory "x": Read-only file system'],
            ["the file system is read-only"],
        ),
        (
            [
                "LOG:  starting",
                'FATAL:  data directory "x" has wrong ownership',
                "HINT:  Be owner.",
            ],
            ['PostgreSQL failed: data directory "x" has wrong ownership'],
        ),
        (["Segmentation fault", ""], ["PostgreSQL failed: Segmentation fault"]),
        ([], ["PostgreSQL failed: no output"]),
    ],
)
def test_last_words_are_explained_in_one_line(lines: list[str], words: list[str]) -> None:
    explanation = explain(lines)
    assert "\n" not in explanation
    assert [word for word in words if word not in explanation] == []
