"""Explains why a pod waits or where it runs."""

from itertools import chain
from typing import Final

from extender.cells.reason_kinds import WaitsFor, waits_for
from extender.cluster.cluster import Cluster
from extender.feeds.pod_feed import PodSink
from extender.inspection.json_views import (
    JsonObject,
    if_any,
    show_end,
    show_placement,
    show_record,
)
from extender.inspection.queue.variant_view import VariantsOf, no_variants, show_variants
from extender.inspection.waiting_view import WaitingView
from extender.outcomes.gang_ends import GangEnds
from extender.planning.class_raiser import ClassRaiser
from kube.read.managed_pod import ManagedPod, charged_gang
from policy.errors import BackendError
from policy.submission import GangKey
from state.log.log import DecisionLog
from state.log.records import DecisionRecord

_DECISIONS: Final = 20
_SEARCHED: Final = 500
_MOST_PARTS: Final = 4
_QUEUED: Final = "queued"
_WAITING: Final = "waiting"
_PLACED: Final = "placed"
_REFUSED: Final = "refused"
_UNPLACED: Final = (_QUEUED, _WAITING, _REFUSED)


class Explainer:
    """Explains single pods; changes nothing."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pods: PodSink,
        ends: GangEnds,
        waiting: WaitingView,
        raises: ClassRaiser | None,
        log: DecisionLog,
    ) -> None:
        """`raises` knows the gangs beyond quota; None without a ledger."""
        self._cluster = cluster
        self._pods = pods
        self._waiting = waiting
        self._raises = raises
        self._ends = ends
        self._log = log
        self.variants_of: VariantsOf = no_variants
        """Finds what would let a waiting gang start earlier."""

    async def explain(self, namespace: str, name: str) -> JsonObject | None:
        """Explain one pod, or a gang by its name or that of its workload; None if it is unknown."""
        pods = [*chain(self._pods, self._pods.helpers.pods.values())]
        pod = next((p for p in pods if (p.namespace, p.name) == (namespace, name)), None)
        if pod is not None:
            return await self._explain_pod(pod)
        members = [p for p in pods if p.namespace == namespace and name in _names(p)]
        if members:
            # One that waits says most about its gang.
            pod = next((p for p in members if self._state(p) in _UNPLACED), members[0])
            end = self._ends.find(f"{namespace}/{name}")
            return await self._explain_pod(pod) | ({"ended": show_end(end)} if end else {})
        invalid = self._explain_invalid(namespace, name)
        return invalid or await self._explain_gone(f"{namespace}/{name}")

    async def _explain_pod(self, pod: ManagedPod) -> JsonObject:
        member = self._cluster.members.get(pod.uid)
        state = self._state(pod)
        waiting = self._waiting.of_pod(pod) if state in _UNPLACED else None
        shape: JsonObject = {
            "pod": pod.display_name,
            "uid": pod.uid,
            "gang": str(pod.gang.key),
            "gangForm": pod.gang.form,
            **if_any("workload", pod.workload.reference if pod.workload else None),
            "vc": pod.vc,
            **if_any("alternative", pod.alternative or None),
            "class": pod.charged_class,
            **self._standing(pod),
            "leafCells": pod.leaf_count,
            "state": state,
            "ending": pod.is_deleting,
        }
        if state == _QUEUED and waiting is not None:
            shape["queued"] = {"reason": waiting.reason.text}
        if member is not None:
            shape["priority"] = member.request.priority
            shape["foreign"] = member.is_foreign
            shape["owner"] = pod.charged_user
            shape["placement"] = show_placement(member.placement)
        held = self._waiting.held_reason(pod.gang.key) if state == _PLACED else None
        if held is not None:
            shape["held"] = {"reason": held.text}
        if waiting is not None:
            shape["waiting"] = {
                **self._waiting.show(waiting, await self._waiting.places()),
                **show_variants(await self.variants_of(waiting.gang)),
            }
        else:
            shape |= self._waiting.show_reservation(pod.gang.key)
        shape["siblings"] = self._siblings(pod)
        return shape | await self._decisions(pod.gang.key, charged_gang(pod))

    async def _explain_gone(self, name: str) -> JsonObject | None:
        """Explain a gang without pods, by the name of it, of its workload or of a pod it had."""
        end, known = self._ends.find(name), self._ends.gang_of(name)
        gang = known or await self._find_gang(name)
        decisions = await self._decisions(gang, self._ends.charged_as(gang))
        if charge := next(filter(None, map(_charge_of, decisions["decisions"])), None):
            decisions = await self._decisions(gang, charge)
        if known is None and not decisions["decisions"]:
            return None
        ended = {"ended": show_end(end)} if end is not None else {}
        return {"gang": str(gang), "state": "gone"} | ended | decisions

    async def _find_gang(self, name: str) -> GangKey:
        """Find the gang of a pod that ended before this leader began, in the log.

        Controllers name pods after the workload, which often names the gang: each part of the name
        may be the gang's. The rows about that gang must name the pod.
        """
        namespace, _, rest = name.partition("/")
        for _ in range(min(rest.count("-"), _MOST_PARTS)):
            rest = rest.rpartition("-")[0]
            gang = GangKey(namespace, rest)
            for row in (await self._decisions(gang, most=_SEARCHED))["decisions"]:
                if row["details"].get("pod") == name:
                    return gang
        return GangKey(*name.split("/", 1))

    def foreign(self) -> dict[str, JsonObject]:
        """Show the pods that use leaf cells and that Cellgate did not place, by name."""
        members = self._cluster.members
        found = {
            pod.display_name: {
                "pod": pod.display_name,
                "uid": pod.uid,
                "owner": pod.charged_user,
                "vc": pod.vc,
                "class": pod.class_name,
                "protected": pod.is_protected,
                "leafCells": pod.leaf_count,
                "node": pod.node,
            }
            for pod in self._pods
            if members.is_foreign(pod.uid)
        }
        uses = (pod.use for pod in self._pods.invalid)
        return found | {
            use.foreign.name: {
                "pod": use.foreign.name,
                "uid": use.request.member,
                "owner": use.foreign.owner,
                "protected": use.foreign.is_protected,
                "leafCells": use.request.leaf_count,
                "node": use.placement.node,
            }
            for use in uses
            if use is not None and use.foreign is not None
        }

    def pods_of(self, gang: GangKey) -> list[str]:
        """Return the names of the pods of a gang that have places."""
        pods = map(self._pods.get, self._cluster.members.of_gang(gang))
        return [pod.display_name for pod in pods if pod is not None]

    def _standing(self, pod: ManagedPod) -> JsonObject:
        """Say that a gang was raised above its pods' class, or what it waits for to be raised."""
        if pod.effective_class is not None:
            return {"podClass": pod.class_name}
        why = self._raises.explain(pod) if self._raises is not None else None
        return {} if why is None else {"overQuota": why}

    def _explain_invalid(self, namespace: str, name: str) -> JsonObject | None:
        """Say what is wrong with a pod that asks for leaf cells and is not valid."""
        for invalid in self._pods.invalid:
            if (invalid.namespace, invalid.name) == (namespace, name):
                return {
                    "pod": f"{namespace}/{name}",
                    "uid": invalid.uid,
                    "state": "not understood",
                    "problem": invalid.problem,
                    "foreign": invalid.use is not None,
                    **({"placement": show_placement(invalid.use.placement)} if invalid.use else {}),
                }
        return None

    def _state(self, pod: ManagedPod) -> str:
        if pod.node is not None:
            return "bound"
        if self._cluster.has_place(pod.uid) or (pod.is_helper and pod.is_released):
            return _PLACED
        waiting = self._waiting.of_pod(pod)
        if waiting is not None and waits_for(waiting.reason.code) is WaitsFor.OWNER:
            return _REFUSED
        if pod.is_gated:
            return _QUEUED
        return _WAITING if waiting else "not asked about yet"

    def _siblings(self, pod: ManagedPod) -> list[JsonObject]:
        return [
            {"pod": other.display_name, "state": self._state(other), "node": other.node}
            for other in (
                *self._pods.of_gang(pod.gang.key),
                *self._pods.helpers.of_gang(pod.gang.key),
            )
            if other.uid != pod.uid
        ]

    async def _decisions(self, *gangs: GangKey, most: int = _DECISIONS) -> JsonObject:
        """Show what the log has; the rest of the explanation does not need it.

        A pod that Kubernetes names has no name when it is admitted: that decision is about the
        name of its charge.
        """
        records: list[DecisionRecord] = []
        try:
            for subject in dict.fromkeys(map(str, gangs)):
                records += await self._log.recent(most, subject=subject)
        except BackendError as exc:
            return {"decisions": [], "problem": f"the decision log cannot be read now: {exc}"}
        listed = [record for record in records if record.is_listed]
        newest = sorted(listed, key=lambda record: record.at, reverse=True)[:most]
        return {"decisions": [show_record(record) for record in newest]}


def _charge_of(row: JsonObject) -> GangKey | None:
    """Return what a row of the log calls the charge of a pod that Kubernetes named."""
    charge = row["details"].get("charge")
    return GangKey(*charge.split("/", 1)) if isinstance(charge, str) and "/" in charge else None


def _names(pod: ManagedPod) -> set[str]:
    """Return the names of a pod's gang and of its workload."""
    return {pod.gang.key.name, pod.workload.name if pod.workload else pod.name}
