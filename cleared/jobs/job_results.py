"""Results of jobs: written with a signature of this machine, and believed only with it.

The signature lies in a folder of its own, as the result's fields are those of its contract.
"""

from __future__ import annotations

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import read_stable, write_atomic
from cleared.jobs import file_schemas
from cleared.jobs.records import JobResult
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.jobs.signing import JobSigner

_MAX_BYTES = 200


class UnsignedResult(file_schemas.DamagedFile):
    """A result that no loop of this machine has written, or not so, or not for this job."""


def write_result(runtime: RuntimeDirectory, signer: JobSigner, result: JobResult, by: str) -> None:
    """Write the result of a job that ``by`` asked for, once its signature lies there. Raises ``WorkspaceError``."""
    job = result["job_id"]
    file_schemas.check_record("result", result, runtime.display_path(runtime.result_path(job)))
    seal = signer.sign_result(result, by).encode("ascii")
    write_atomic(runtime.seal_path(job), seal, fsync=False, mode=file_schemas.PRIVATE_MODE)
    file_schemas.write_record("result", runtime.result_path(job), result)


def read_signed_result(runtime: RuntimeDirectory, signer: JobSigner, job: str, by: str) -> JobResult:
    """The result of a job that ``by`` asked for.

    Raises ``DamagedFile`` where it is not as its schema says, ``UnsignedResult`` where it is not as a loop of this
    machine wrote it, ``WorkspaceError`` where it cannot be read.
    """
    shown = runtime.display_path(runtime.result_path(job))
    result: JobResult = file_schemas.read_record("result", runtime.result_path(job), shown=shown)
    try:
        seal = read_stable(runtime.seal_path(job), _MAX_BYTES)[0].decode("ascii", "replace")
    except WorkspaceError:
        seal = ""
    if result["job_id"] != job or not signer.is_valid_result(result, by, seal):
        raise UnsignedResult("no loop of this machine has written it so", place=Place(shown))
    return result
