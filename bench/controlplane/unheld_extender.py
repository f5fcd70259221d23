"""An extender that holds no bindings, to measure what holding them costs.

`python -m bench.controlplane.unheld_extender extender FLAGS` takes the flags of
`cellgate extender FLAGS`. It is the same program, except that each member of a gang is bound as
soon as kube-scheduler asks for it.
"""

from unittest.mock import patch

from cli.entry import run
from extender.queue.held_bindings import HeldBindings

if __name__ == "__main__":
    with patch.object(HeldBindings, "_is_held", lambda *_: False):
        run()
