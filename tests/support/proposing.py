"""Scripts to propose, and proposals by the command line, for the tests of the gate."""

from __future__ import annotations

from typing import Any

from harness import Done, Workspace, chase, take_ok

FEBRUARY = chase(("02/03/2025", "GITHUB *PRO", "-4.00"), ("02/06/2025", "AWS EMEA", "-31.00"))
THRESHOLD = 'config_get("thresholds.auto_confirm")'


def text(body: str, header: str = "", name: str = "Probe") -> str:
    return f'"""\nname: {name}\ntrigger: on_demand\ndescription: a probe\n{header}"""\n{body}\n'


def write(ws: Workspace, body: str, name: str = "probe", header: str = "") -> str:
    """A working copy; its path."""
    path = f"agents/{name}.py"
    ws.put(path, text(body, header))
    return path


def edit(ws: Workspace, path: str, old: str, new: str) -> None:
    found = ws.read(path)
    assert old in found
    ws.put(path, found.replace(old, new))


def threshold(ws: Workspace, value: str = "0.97") -> None:
    """Have ingest be that sure: at 0.97 GitHub (0.98) is booked and AWS (0.96) is asked about."""
    edit(ws, "agents/ingest.py", THRESHOLD, value)


def history(ws: Workspace) -> None:
    """Two months by ingest: two entries of AWS, two of GitHub, two unknown."""
    ws.drop("january.csv")
    ws.run("ingest")
    ws.drop("february.csv", FEBRUARY)
    ws.run("ingest")


def propose(ws: Workspace, *argv: str) -> dict[str, Any]:
    found = ws.json("agent", "propose", *argv)
    assert isinstance(found, dict)
    return found


def live(ws: Workspace, body: str, name: str = "probe", header: str = "") -> str:
    """Written, proposed and approved; its path."""
    path = write(ws, body, name, header)
    take_ok(ws, "agent", "approve", propose(ws, name)["id"])
    return path


def proposal(ws: Workspace, name: str) -> dict[str, Any]:
    """``proposal.json`` as committed, its card as lines, with its decision."""
    import json

    folder = next((ws.root / "queue/proposals").glob(f"{name}-*"))
    found = json.loads((folder / "proposal.json").read_text())
    said = folder / "decision.json"
    card = found["card"]
    lines = card if isinstance(card, list) else [line for lines in card.values() for line in lines]
    return {
        **found,
        "card": lines,
        "folder": folder.name,
        "decision": json.loads(said.read_text()) if said.exists() else None,
    }


def findings(done: Done) -> list[str]:
    """The rules of what ``propose --json`` found."""
    assert done.code == 1, done
    return [f["rule"] for f in done.json["findings"]]
