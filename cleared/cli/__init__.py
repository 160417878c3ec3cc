"""The command line. Results on stdout, everything else on stderr; start-up imports nothing heavy.

It may import every room. Begin with ``commands`` and ``command_runner``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # nothing is imported before main() has seen to where modules come from
if TYPE_CHECKING:
    from typing import NoReturn

GC_THRESHOLD = (300_000, 20, 50)
OPEN_FILES = 64
"""Files that a command may have open at once: twice as many as the largest takes."""


def main() -> NoReturn:
    """Run the command line and end the process with a documented code (``cleared.base.errors.ExitCode``)."""
    import gc
    import os

    # Looking for garbage while modules load, and in all that is left at the exit, is a fifth of a short command.
    gc.set_threshold(*GC_THRESHOLD)
    _leave_current_folder_out()
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_streams()
    try:
        _require_open_files()
        if not (os.get_blocking(1) and os.get_blocking(2)):
            from cleared.cli.patient_output import wait_for_readers

            wait_for_readers()
        import signal

        # Ctrl-C while msgspec loads, or makes its first types, may crash Python: it comes after that.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            from cleared.cli.command_runner import run
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
    except (MemoryError, ImportError) as error:
        if isinstance(error, ImportError) and "failed to map segment" not in str(error):
            raise
        print("cleared: there is not enough memory to start", file=sys.stderr)  # noqa: T201
        sys.exit(4)
    except KeyboardInterrupt:
        print("cleared: interrupted", file=sys.stderr)  # noqa: T201
        sys.exit(130)
    code = run(sys.argv[1:])
    gc.freeze()
    _end_process(code)


def _end_process(code: int) -> NoReturn:
    """End it as ``sys.exit``, but do not take apart first what the system takes back with it: that is a fortieth of a
    short command. Where there is another thread, or somebody measures, Python ends it."""
    import atexit
    import os

    threading = sys.modules.get("threading")  # where it was never loaded, there is no other thread
    if (threading is not None and threading.active_count() > 1) or sys.getprofile() is not None:
        sys.exit(code)
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # Python says so, with a code of its own
    except KeyboardInterrupt:
        os._exit(130)
    os._exit(code)


def _leave_current_folder_out() -> None:
    """No module is taken from the folder one is in (``python -m``), or from a relative place: a ``json.py`` of the
    workspace is not ours. Modules are imported when they are needed, so this is early enough."""
    import os

    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    if not sys.flags.safe_path and sys.path and sys.path[0] != own:
        try:
            current = os.getcwd()  # noqa: PTH109
        except OSError:
            current = ""
        if sys.path[0] == current:
            del sys.path[0]
    sys.path[:] = [p for p in sys.path if os.path.isabs(p) or not os.path.isdir(p or ".")]  # noqa: PTH112, PTH117


def _require_open_files() -> None:
    """End here where too few files may be open: further on it could be anything that fails, in the middle of it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = resource.RLIMIT_NOFILE
    soft, hard = resource.getrlimit(limit)
    if resource.RLIM_INFINITY in (soft, hard) or hard >= OPEN_FILES:
        if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
            resource.setrlimit(limit, (OPEN_FILES, hard))
        return
    print(  # noqa: T201
        f"cleared: only {hard} files may be open at once here, and {OPEN_FILES} are needed; nothing was begun. "
        f"Raise the limit: ulimit -n {OPEN_FILES} or more, or LimitNOFILE= of the service.",
        file=sys.stderr,
    )
    sys.exit(4)


def _open_streams() -> None:
    """Where whoever started this has closed the standard streams: no file that is opened may get their numbers."""
    import os

    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
