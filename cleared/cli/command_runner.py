"""Running one command: every refusal becomes one paragraph on stderr and an exit code, never a traceback."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import cast

from cleared.cli.machine_errors import DEBUG, as_refusal
from cleared.errors import ClearedError, ExitCode


def run(argv: Sequence[str]) -> int:
    """Execute ``cleared`` with these arguments; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character gets it escaped.
            stream.reconfigure(errors="backslashreplace")
    try:
        # Whoever starts a bridge waits for it, and typer takes longer to import than the bridge.
        return _run_bridge() if list(argv) == ["bridge"] else _run_command(argv)
    except KeyboardInterrupt:  # while modules load, too
        print("cleared: interrupted", file=sys.stderr)  # noqa: T201
        return ExitCode.INTERRUPTED
    except BaseException as error:
        refusal = as_refusal(error)
        if refusal is None:
            raise
        if DEBUG in os.environ:
            traceback.print_exc()
        del error  # and with it what its frames hold of the memory
        return _print_refusal(refusal, "--json" in argv)


def _run_bridge() -> int:
    from cleared.bridge.server import serve_bridge

    serve_bridge(sys.stdin.buffer, sys.stdout.buffer)
    return ExitCode.DONE


def _run_command(argv: Sequence[str]) -> int:
    import typer

    from cleared.cli.commands import command

    # typer has a click of its own in newer versions, and uses the installed one in older: whichever it is, its base of
    # everything that is wrong with a command line is found from here.
    wrong = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[2])
    try:
        # Without standalone mode typer gives back the code of an Exit instead of raising it.
        code = command(argv)(list(argv), prog_name="cleared", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else ExitCode.DONE
    except typer.Exit as e:
        return int(e.exit_code)
    except wrong as e:
        e.message = _plain_usage(e.message, str(getattr(getattr(e, "param", None), "name", "")))
        e.show(sys.stderr)
        return ExitCode.USAGE
    except typer.Abort:
        print("cleared: interrupted", file=sys.stderr)  # noqa: T201
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return _discard_output()
    except SystemExit as e:
        # typer's own way to end when the output has no reader; and that of shell completion, which stays as it is.
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            return _discard_output()
        return e.code if isinstance(e.code, int) else ExitCode.DONE


def _plain_usage(message: str, parameter: str) -> str:
    """What typer says about a value of a wrong type, without the words of the library that checked it."""
    if message.startswith("Input should be a valid integer"):
        is_account = parameter.startswith("account")
        return f"not a whole number{'; cleared accounts list shows those of accounts' if is_account else ''}"
    return message.removeprefix("Value error, ")


def _discard_output() -> int:
    """Whoever read our output has gone (| head): point stdout away, so that the exit says nothing of it."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.DONE


def _print_refusal(error: ClearedError, as_json: bool) -> int:
    try:
        from cleared.terminal import escape_lines
    except (ImportError, MemoryError, SystemError):  # the refusal is that there is no memory

        def escape_lines(text: str) -> str:
            return ascii(text)[1:-1]

    if as_json:
        data = {
            "type": type(error).__name__, "message": error.message, "place": str(error.place) if error.place else None,
            "remedy": error.remedy, "exit_code": int(error.exit_code),
        }  # fmt: skip
        sys.stdout.write(json.dumps({"error": data}, ensure_ascii=True) + "\n")
    print(f"cleared: {escape_lines(str(error))}", file=sys.stderr)  # noqa: T201
    return int(error.exit_code)
