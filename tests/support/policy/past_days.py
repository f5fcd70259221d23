"""Days of the past, said in one line for each gang."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from policy.parser import DocumentKind
from policy.past.effect import PolicyEffect, find_effect
from policy.past.gangs import AdmissionRow, HeldCharge, PastDay, read_day
from policy.policy import Policy
from policy.quotas.charge import Charge
from policy.store import PolicyText, build_policy
from policy.submission import ClassName, GangKey, GroupName, UserName, VcName
from tests.support.policy.documents import CLASSES_TEXT, HEAD

DAY = 86_400.0
TEAM = "{name: team, limits: {leafCells: 8}, over: %s, users: [{name: alice}, {name: bob}]}"


def a_past_policy(*, rules: str = "", quotas: str = "", identity: str = "") -> Policy:
    """Return a policy of the usual classes, with rules, quotas and an Identity document."""
    texts = {
        DocumentKind.CLASSES: CLASSES_TEXT,
        DocumentKind.RULES: f"{HEAD}Rules\nrules: [{rules}]",
        DocumentKind.QUOTAS: f"{HEAD}Quotas\ngroups: [{quotas}]",
        DocumentKind.IDENTITY: f"{HEAD}Identity\n{identity}",
    }
    return build_policy(
        PolicyText(kind=kind, source=kind, text=text) for kind, text in texts.items()
    )


@dataclass
class PastGangs:
    """What was submitted on a day."""

    rows: list[AdmissionRow] = field(default_factory=list)
    charges: list[HeldCharge] = field(default_factory=list)

    def submit(
        self,
        user: str = "alice",
        *,
        at: float,
        cells: int = 1,
        held: float | None = 3600.0,
        class_name: str = "prod",
        outcome: str = "admitted",
        name: str = "",
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        """Submit a gang; one that was admitted is charged for `held` seconds, None to the end."""
        decision = UUID(int=len(self.rows) + 1)
        details = {
            "decision": str(decision),
            "user": user,
            "group": None,
            "vc": "default",
            "requestedClass": class_name,
            "leafCount": cells,
        }
        self.rows.append(
            AdmissionRow(
                at=at,
                subject=name or f"lab/gang-{len(self.rows)}",
                outcome=outcome,
                details=details,
                inputs={"wording": 1, "usage": [0, 0], **(inputs or {})},
            )
        )
        if outcome == "admitted":
            until = None if held is None else at + held
            self.hold(user, since=at, until=until, cells=cells, decision=decision)

    def hold(
        self,
        user: str,
        *,
        since: float,
        until: float | None,
        cells: int,
        group: str | None = None,
        decision: UUID | None = None,
    ) -> None:
        """Charge a user."""
        number = len(self.charges)
        charge = Charge(
            decision=decision or UUID(int=1000 + number),
            gang=GangKey("lab", f"held-{number}"),
            user=UserName(user),
            group=None if group is None else GroupName(group),
            vc=VcName("default"),
            class_name=ClassName("prod"),
            is_high=True,
            leaf_count=cells,
        )
        self.charges.append(HeldCharge(charge=charge, since=since, until=until))

    def day(self, policy: Policy) -> PastDay:
        """Return the day, as it was under a policy."""
        return read_day(self.rows, self.charges, policy=policy, since=0.0, until=DAY)

    def effect(self, before: Policy, after: Policy) -> PolicyEffect:
        """Say what another policy would have changed."""
        found = find_effect(self.day(before), before=before, after=after)
        assert found is not None
        return found
