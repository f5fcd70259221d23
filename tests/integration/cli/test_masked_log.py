"""`cellgate log export --mask` of what one machine decided: no name of anybody is in the file."""

import asyncio
import gzip
import json
import re
from pathlib import Path
from typing import Any, Final

import aiohttp

from cli.commands import build_parser
from service.exit_codes import Exit
from service.process import Stop
from tests.support.services.cellgate_run import Running, cellgate_run

_MARK: Final = "qzx"
"""Is in every name that this test gives."""
_HEAD: Final = "apiVersion: cellgate.io/v1\nkind: "
_POLICIES: Final = {
    "rules": """Rules
rules:
- {user: ^mallory-qzx, then: fail, note: "ask jim-qzx@example.com"}
- {group: ^interns-qzx$, priority: prod, then: oppo, note: "interns-qzx use what is idle"}
- {when: "labels.exists(l, l == 'night-qzx') && current > 2", then: test}
""",
    "quotas": """Quotas
groups:
- name: vision-qzx
  limits: {leafCells: 12}
  over: queue
  users: [{name: "ann-qzx@example.com"}]
""",
    "identity": """Identity
groups: {interns-qzx: [tim-qzx]}
vcs: {}
""",
    "queues": """Queues
levels:
- {name: gold-qzx, who: {users: ["ann-qzx@example.com"], when: "namespace != 'slow-qzx'"},
   strategy: fifo}
- {name: rest-qzx, strategy: fair-share, promoteAfter: 7d}
userLevels: {first-qzx: ["ann-qzx@example.com"]}
fairShare: {weights: {vision-qzx: 2.0}}
""",
}
_OURS: Final = r"\b(alice|bob|carol|dave|vision|speech|rack-\d|node-\d\d|A100|gpu-\d+|prod|oppo)\b"
"""Names of the users and nodes that `cellgate run` simulates."""


class _Company:
    """Users with names of their own, in the simulated cluster."""

    def __init__(self, http: aiohttp.ClientSession, run: Running) -> None:
        self._http = http
        self._url = run.url("cluster")
        self.answers: list[tuple[int, str]] = []

    async def call(self, method: str, path: str, body: object, **headers: str) -> int:
        sent = {"Content-Type": "application/json", **headers}
        data = json.dumps(body)
        async with self._http.request(method, self._url + path, data=data, headers=sent) as answer:
            self.answers.append((answer.status, await answer.text()))
            return answer.status

    async def pod(self, name: str, *, user: str, cells: int = 8, **told: Any) -> int:
        labels = {"team-qzx": "secret-qzx", **told.pop("labels", {})}
        limits = {"nvidia.com/gpu": str(cells), "cpu": "1"}
        main = {"name": "main", "image": "registry-qzx/image:7", "resources": {"limits": limits}}
        body = {
            "metadata": {"name": name, "labels": labels, "annotations": told.pop("marks", {})},
            "spec": {"containers": [main], **told},
        }
        return await self.call(
            "POST", "/api/v1/namespaces/dept-qzx/pods", body, **{"Impersonate-User": user}
        )

    async def policy(self, kind: str) -> None:
        path = "/api/v1/namespaces/cellgate-system/configmaps"
        if kind == "rules":  # the simulated cluster has rules already
            await self.call("DELETE", f"{path}/cellgate-rules", {})
        name = f"{kind}-qzx"
        body = {
            "metadata": {"name": name, "labels": {"cellgate.io/policy": kind}},
            "data": {"policy.yaml": _HEAD + _POLICIES[kind]},
        }
        await self.call("POST", path, body)

    async def work(self) -> None:
        """Do all that leaves rows in the log."""
        named = {"metadata": {"name": "dept-qzx"}}
        await self.call("POST", "/api/v1/namespaces", named)
        for kind in _POLICIES:
            await self.policy(kind)
        await asyncio.sleep(1)
        ann = "ann-qzx@example.com"
        await self.pod("bad-qzx", user="mallory-qzx")
        await self.pod("low-qzx", user="tim-qzx", priorityClassName="prod")
        await self.pod("night-qzx", user=ann, labels={"night-qzx": "yes-qzx"})
        for number in range(3):
            await self.pod(f"many-{number}-qzx", user=ann, priorityClassName="prod")
        await self.pod("held-qzx", user=ann, marks={"cellgate.io/hold": "until jim-qzx is back"})
        await self.pod("wrong-qzx", user=ann, labels={"cellgate.io/vc": "nosuch-qzx"})
        gang = {"cellgate.io/gang": "bert-qzx", "cellgate.io/gang-size": "2"}
        for number in range(2):
            await self.pod(f"bert-{number}-qzx", user=ann, labels=gang)
        foreign: dict[str, Any] = {"nodeName": "node-03", "schedulerName": "other-qzx"}
        await self.pod("foreign-qzx", user="root-qzx", **foreign)
        held = "/api/v1/namespaces/dept-qzx/pods/held-qzx"
        await self.call("DELETE", held, {}, **{"Impersonate-User": ann})


async def _cellgate(*arguments: str | Path) -> Exit:
    options = build_parser({}).parse_args([*map(str, arguments)])
    code: Exit = await options.command(options, Stop())
    return code


async def test_no_name_of_a_company_is_in_a_masked_file(tmp_path: Path) -> None:
    async with cellgate_run(tmp_path) as run, aiohttp.ClientSession() as http:
        company = _Company(http, run)
        await company.work()
        await asyncio.sleep(8)
    url = f"embedded:{tmp_path / 'postgres'}"
    plain, masked = tmp_path / "plain", tmp_path / "masked"
    export = ("log", "export", "--database-url", url)
    assert await _cellgate(*export, plain) is Exit.OK
    assert await _cellgate(*export, "--mask", masked) is Exit.OK
    text = gzip.decompress(plain.read_bytes()).decode()
    named = {*re.findall(rf"[\w.@/-]*{_MARK}[\w.@/-]*", text)}
    assert len(named) > 20, "the history is poor"
    text = gzip.decompress(masked.read_bytes()).decode()
    assert re.findall(rf"[\w.@/-]*(?:{_MARK}|example)[\w.@/-]*", text) == []
    assert re.findall(_OURS, text) == []
    assert await _cellgate("replay", "--file", plain) is Exit.OK
    assert await _cellgate("replay", "--file", masked) is Exit.OK
