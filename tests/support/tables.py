"""A workspace with a table of prices, as a person makes one."""

from __future__ import annotations

from harness import Workspace, take_ok

SCHEMA = """key: sku
columns:
  sku: text
  price: {type: decimal, min: 0, max: 10000, places: 2}
  since: {type: date, optional: true}
max_rows: 5
"""
MAY = "grants: [table.read, table.write, git.commit]\n"


def define(ws: Workspace, name: str = "prices", schema: str = SCHEMA) -> None:
    """The schema of a table, written and approved."""
    path = f"records/{name}.yaml"
    ws.put(path, schema)
    take_ok(ws, "definition", "approve", path)


def put_prices(ws: Workspace, *prices: tuple[str, str]) -> dict[str, object]:
    """A run that puts these rows."""
    calls = "\n".join(f'table_put("prices", {{"sku": "{sku}", "price": "{price}"}})' for sku, price in prices)
    return ws.script(calls, name="putter", header=MAY)
