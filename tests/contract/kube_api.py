"""The contract of the Kubernetes API as our services use it.

It runs on the simulated API server and on a real one. To run it on another, add one fixture:

    class TestThatKubeApi(KubeApiContract):
        @pytest.fixture
        async def kube(self) -> AsyncIterator[Kube]:
            async with aiohttp.ClientSession(base_url=…) as session:
                yield Kube(session, {"Authorization": "Bearer …"})

The user must be allowed everything, impersonation included. Pods are of a scheduler that does not
exist and are bound to a node that does not exist, so nothing else in the cluster touches them.
"""

from tests.contract.kube import Kube
from tests.contract.kube_admission import AdmissionContract
from tests.contract.kube_objects import ListContract, ObjectContract, UpdateContract
from tests.contract.kube_pods import (
    BindingContract,
    DeletionContract,
    PodContract,
    PriorityContract,
)
from tests.contract.kube_reviews import ReviewContract
from tests.contract.kube_watch import WatchContract

__all__ = ["Kube", "KubeApiContract"]


class KubeApiContract(
    ObjectContract,
    UpdateContract,
    ListContract,
    WatchContract,
    PodContract,
    PriorityContract,
    BindingContract,
    DeletionContract,
    AdmissionContract,
    ReviewContract,
):
    """All of it."""
