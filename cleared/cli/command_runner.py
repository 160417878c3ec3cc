"""Running one command: every refusal becomes one paragraph on stderr and an exit code, never a traceback."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final, cast

from cleared.base.errors import ClearedError, ExitCode, Interrupted
from cleared.base.short_text import replace_surrogates
from cleared.base.terminal import discard_stream
from cleared.cli.machine_errors import DEBUG, as_refusal

_MOST_NAMED: Final = 5
_WORDS: Final = ("--reason", "--note", "--summary", "--message", "-m", "--despite")
"""Options with what a person says in words."""


def run(argv: Sequence[str]) -> int:
    """Execute ``cleared`` with these arguments; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character gets it escaped.
            stream.reconfigure(errors="backslashreplace")
    refusal: ClearedError | None
    try:
        _forget_commits()
        # Whoever starts a bridge waits for it, and typer takes longer to import than the bridge.
        code = _run_bridge() if list(argv) == ["bridge"] else _run_command(_clean_words(argv))
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
        _forget_commits(told=True)
        return code
    except KeyboardInterrupt:  # while modules load, too
        refusal = Interrupted("interrupted")
    except BaseException as error:
        refusal = as_refusal(error)
        if refusal is None:
            raise
        if DEBUG in os.environ:
            traceback.print_exc()
        del error  # and with it what its frames hold of the memory
    try:
        return _print_refusal(_name_made_commits(refusal), "--json" in argv)
    except KeyboardInterrupt:  # nobody reads it, and the user waits no longer
        discard_stream(sys.stdout)
        discard_stream(sys.stderr)
        return ExitCode.INTERRUPTED


def _run_bridge() -> int:
    from cleared.sandbox.bridge.server import serve_bridge

    serve_bridge(sys.stdin.buffer, sys.stdout.buffer)
    return ExitCode.DONE


def _clean_words(argv: Sequence[str]) -> list[str]:
    """The arguments, of which those that a person says in words are text: a byte that is none becomes "?", as in a
    commit's message. Names of files stay as they are."""
    follows = ["", *(word if word in _WORDS else "" for word in argv)]
    return [
        replace_surrogates(word) if option or word.startswith(_WORDS) else word
        for option, word in zip(follows, argv, strict=False)
    ]


def _run_command(argv: Sequence[str]) -> int:
    import typer

    from cleared.cli.commands import command

    # typer has a click of its own in newer versions, and uses the installed one in older: whichever it is, its base of
    # everything that is wrong with a command line is found from here.
    wrong = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[2])
    try:
        # Without standalone mode typer gives back the code of an Exit instead of raising it.
        code = command(argv)(list(argv), prog_name="cleared", standalone_mode=False)
        return code if isinstance(code, int) else ExitCode.DONE
    except typer.Exit as e:
        return int(e.exit_code)
    except wrong as e:
        e.message = _plain_usage(e.message, str(getattr(getattr(e, "param", None), "name", "")))
        e.show(sys.stderr)
        return ExitCode.USAGE
    except typer.Abort:
        raise KeyboardInterrupt from None
    except BrokenPipeError:
        return _discard_output()
    except SystemExit as e:
        # typer's own way to end when the output has no reader; and that of shell completion, which stays as it is.
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            return _discard_output()
        return e.code if isinstance(e.code, int) else ExitCode.DONE


def _plain_usage(message: str, parameter: str) -> str:
    """What typer says about a value of a wrong type, with the words of this program."""
    if message.removesuffix(".").removesuffix(" range").endswith((" is not a valid int", " is not a valid integer")):
        is_account = parameter.startswith("account")
        return f"not a whole number{'; cleared accounts list shows those of accounts' if is_account else ''}"
    return message


def _discard_output() -> int:
    """Whoever read our output has gone (| head)."""
    discard_stream(sys.stdout)
    return ExitCode.DONE


def _name_made_commits(error: ClearedError) -> ClearedError:
    """The refusal; where the command had made commits by then, it says that they stand, and not to begin anew."""
    commits = [commit[:10] for commit in _made_commits()]
    if commits and not any(commit in str(error) for commit in commits):
        message = error.message.replace("nothing was changed", "nothing else was changed").rstrip(".")
        error.message = f"{message}, after the commit {', '.join(commits[-_MOST_NAMED:])} was made, which stands"
    if commits and "run the command again" in (error.remedy or "").lower():
        error.remedy = f"See what was done: git show {commits[-1]}."
    return error


def _made_commits() -> Sequence[str]:
    made = sys.modules.get("cleared.git.made_commits")  # where it was never loaded, there are none
    return made.list_made_commits() if made is not None else ()


def _forget_commits(*, told: bool = False) -> None:
    made = sys.modules.get("cleared.git.made_commits")
    if made is not None:
        made.forget_commits(told=told)


def _print_refusal(error: ClearedError, as_json: bool) -> int:
    try:
        from cleared.base.terminal import escape_lines, write_if_open
    except (ImportError, MemoryError, SystemError):  # the refusal is that there is no memory
        print(f"cleared: {ascii(str(error))[1:-1]}", file=sys.stderr)  # noqa: T201
        return int(error.exit_code)
    told = write_if_open(sys.stderr, f"cleared: {escape_lines(str(error))}\n")
    options = sys.modules.get("cleared.cli.options")  # where it was never loaded, no workspace was asked for
    if options is not None and error.remedy:
        options.tell_directory([error.remedy])
    if as_json:
        data = {
            "type": type(error).__name__,
            "message": error.message,
            "place": str(error.place) if error.place else None,
            "remedy": error.remedy,
            "exit_code": int(error.exit_code),
            "commits": list(_made_commits()),
        }
        told |= write_if_open(sys.stdout, json.dumps({"error": data}, ensure_ascii=True) + "\n")
    else:
        write_if_open(sys.stdout, "")  # what was printed before; the exit is not to stumble over it
    _forget_commits(told=told)
    return int(error.exit_code)
