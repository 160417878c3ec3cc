"""``cleared backup`` and ``cleared restore``: a whole workspace in one sealed file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import asdict

from cleared.base.temporary_folders import open_temporary_folder
from cleared.base.terminal import count_noun, print_json, print_line, print_message
from cleared.changes.backup.backup_passphrase import open_with_passphrase, read_new_passphrase
from cleared.changes.backup.backup_reading import open_backup, verify_backup
from cleared.changes.backup.manifest import BackupManifest
from cleared.changes.backup.sealed_stream import OpenedPassphrase, SealedFile
from cleared.changes.backup.workspace_backup import write_backup
from cleared.changes.backup.workspace_restore import restore_backup
from cleared.cli.doctor_row import size_text
from cleared.cli.options import JsonOption, WorkspaceOption, open_readable_host

PassphraseOption = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help="It has the passphrase, only you can read it (default: CLEARED_BACKUP_PASSPHRASE, else you are asked).",
    ),
]


def backup_workspace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it: on another disk, at best.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file that is there, once the new is whole.")
    ] = False,
    passphrase_file: PassphraseOption = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Write the whole workspace to one file, sealed with a passphrase: books, receipts, keys, what waits to be run.

    The file is read back, and git looks through the history in it, before it gets its name. Nobody can open it once its
    passphrase is lost.
    """
    written = write_backup(
        open_readable_host(workspace), file, lambda: read_new_passphrase(passphrase_file), force=force
    )
    if json:
        print_json(asdict(written))
        return
    print_line(
        f"Backed up to {written.file}: {size_text(written.size)}, {count_noun(written.files, 'file')}, up to "
        f"{written.commit[:10]}; read back and found whole."
    )
    for text in written.left_out:
        print_message(f"not in it: {text}")


def restore_workspace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What cleared backup has written.")],
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Where to: empty, or not there yet.", show_default=False)
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only read all of it, and restore nothing.")] = False,
    keep_key: Annotated[
        bool,
        typer.Option("--keep-key", help="This machine goes on with its own approval key; the backup's counts too."),
    ] = False,
    beside: Annotated[
        bool,
        typer.Option("--beside", help="The old machine goes on too: restore a clone of its own, without its service."),
    ] = False,
    passphrase_file: PassphraseOption = None,
    json: JsonOption = False,
) -> None:
    """Make DIR the workspace that a backup holds, and put its keys in place: it goes on where the old one was.

    A key of this machine is never overwritten. With --check nothing is restored: all of the file is read, and git looks
    through the history in it.
    """
    if (directory is None) != check:
        raise typer.BadParameter("name a folder, or give --check", param_hint="DIR")
    opener = _opener(passphrase_file)
    if check:
        manifest = _check_backup(file, opener)
        _print_manifest(manifest, json)
        return
    assert directory is not None
    restored = restore_backup(file, directory, opener, keeps_key=keep_key, beside=beside)
    if json:
        print_json(
            {
                **_record(restored.manifest),
                "restored": restored.folder,
                "kept": restored.kept,
                "left_out": restored.left_out,
                "trusted": restored.is_trusted,
            }
        )
        return
    print_line(
        f"Restored {restored.folder} as it was at {restored.manifest.made_at} ({restored.manifest.commit[:10]})."
    )
    for text in restored.left_out:
        print_message(f"not restored: {text}")
    for path in restored.kept:
        print_message(f"left as this machine has it: {path}")
    if not restored.is_trusted:
        print_message("this machine does not know yet which books these are: cleared trust")
    if beside:
        print_message("It is a clone of its own: see docs/howto/two-clones.md.")
        return
    print_message(
        "If a remote has newer commits: git pull. Then cleared status, and cleared up or cleared service install.\n"
        "If the old machine still runs: it and this one have one key of runs now, and would do the same things twice. "
        "Let only one go on (cleared down, cleared service uninstall there); or restore with --beside instead."
    )


def _opener(passphrase_file: Path | None) -> Any:
    def open_sealed(sealed: SealedFile) -> OpenedPassphrase:
        return open_with_passphrase(passphrase_file, sealed.try_passphrase)

    return open_sealed


def _check_backup(file: Path, opener: Any) -> BackupManifest:
    with open_backup(file) as opened:
        key = opener(SealedFile(opened, str(file)))
    with open_temporary_folder("backup") as folder:
        return verify_backup(file, file, key, folder / "check")


def _print_manifest(manifest: BackupManifest, json: bool) -> None:
    if json:
        print_json(_record(manifest))
        return
    print_line(f"The backup is whole: {manifest.folder} as it was at {manifest.made_at}, up to {manifest.commit[:10]}.")


def _record(manifest: BackupManifest) -> dict[str, Any]:
    names = ("made_at", "folder", "workspace", "commit", "approval_key", "run_key", "program")
    return {name: getattr(manifest, name) for name in names}
