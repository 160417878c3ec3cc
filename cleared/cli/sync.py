"""``cleared sync``: this clone and the one that it follows."""

from __future__ import annotations

from typing import Annotated

import typer

from cleared.base.terminal import print_json, print_line
from cleared.changes.sync.clone_sync import describe_report, sync_clone
from cleared.cli.options import JsonOption, WorkspaceOption, open_host


def sync_workspace(
    remote: Annotated[
        str | None, typer.Argument(metavar="[REMOTE]", help="Default: what the branch follows, else origin.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Fetch what others have pushed, do again on top of it what was done here, and push it.

    Runs, decisions and commits of this clone that are not pushed yet are done again by what they did, in their order:
    no script runs twice. What others had done, too, is dropped. What would mean something else now is left out, and a
    card says so. Entries of this clone may get other ids; those that are pushed never do.
    """
    report = sync_clone(open_host(workspace), remote, dry_run=dry_run)
    if json:
        print_json(
            {
                "remote": report.remote,
                "relation": report.relation,
                "commit": report.commit,
                "fetched": report.fetched,
                "steps": [
                    {
                        "was": each.step.commit,
                        "kind": each.step.kind,
                        "subject": each.step.subject,
                        "now": each.commit,
                        "left_out": each.conflict or None,
                    }
                    for each in report.steps
                ],
                "renamed": dict(report.renamed),
                "pushed": report.pushed,
                "dry_run": dry_run,
            }
        )
        return
    for line in describe_report(report, dry_run=dry_run):
        print_line(line)
