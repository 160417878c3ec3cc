"""What a PDF tries that has taken over its reader, and what it tries on time and memory.

A library that was taken over is one of the test's: in place of reading, it tries to get out. Each attempt is a real
one; with the walls switched off it succeeds.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import pytest
from harness import Workspace

from cleared.books.importing import pdf_text
from cleared.books.importing.receipt_text import read_receipt
from cleared.processes.confinement import landlock_abi
from cleared.trust.keys import KEY, cleared_home

confined = pytest.mark.skipif(not landlock_abi(), reason="this kernel has no Landlock")
TAKEN_OVER = """
import sys, types

def attack(_):
    import ctypes, os, socket, subprocess
    libc = ctypes.CDLL(None, use_errno=True)
    def check(found):
        if found < 0:
            raise OSError(ctypes.get_errno(), "refused")
    attempts = {{
        "read a key": lambda: open({key!r}).read(), "change a key": lambda: os.chmod({key!r}, 0o644),
        "time of a key": lambda: os.utime({key!r}, (1, 1)), "list": lambda: os.listdir({folder!r}),
        "write": lambda: open({folder!r} + "/made", "w"), "passwords": lambda: open("/etc/passwd").read(),
        "network": lambda: socket.socket(socket.AF_INET), "pair": lambda: socket.socketpair(),
        "fork": lambda: os.fork() or os._exit(0), "program": lambda: subprocess.run(["/bin/true"], check=True),
        "signal": lambda: os.kill(os.getppid(), 0), "mode of its input": lambda: os.fchmod(0, 0o600),
        "shared memory": lambda: check(libc.shmget(0, 4096, 0o1600)),
        "more memory": lambda: __import__("resource").setrlimit(7, (32, 32)),
    }}
    for name, attempt in attempts.items():
        try:
            attempt()
        except (OSError, ValueError):
            print("refused", name)
        else:
            print("POSSIBLE", name)
    sys.stdout.flush()
    os._exit(0)

sys.modules["pypdf"] = types.SimpleNamespace(PdfReader=attack, __spec__=None)
from cleared.books.importing import pdf_text
pdf_text.find_spec = lambda name: None
pdf_text.print_text(sys.argv[1])
"""
COUNT = 14


@confined
@pytest.mark.parametrize("wall", [True, False])
def test_a_pdf_that_takes_its_reader_over_reaches_nothing(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    ws.config("sandbox.confine=require")  # there is a key
    text = TAKEN_OVER.format(key=str(cleared_home() / KEY), folder=str(ws.root))
    monkeypatch.setattr(pdf_text, "COMMAND", (sys.executable, "-I", "-c", text))
    said = pdf_text.read_pdf(b"%PDF-1.4", "require" if wall else "off")
    possible = {line for line in said.splitlines() if line.startswith("POSSIBLE")}
    assert len(said.splitlines()) == COUNT, said
    assert len(possible) == (0 if wall else COUNT), said


FLOOD = """
import sys, types
def flood(_):
    while True:
        sys.stdout.buffer.write(b"Total 12.50 " * 1000)
sys.modules["pypdf"] = types.SimpleNamespace(PdfReader=flood, __spec__=None)
from cleared.books.importing import pdf_text
pdf_text.find_spec = lambda name: None
pdf_text.print_text(sys.argv[1])
"""


def test_a_reader_that_writes_without_end_fills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_text, "COMMAND", (sys.executable, "-I", "-c", FLOOD))
    assert 100_000 < len(pdf_text.read_pdf(b"%PDF-1.4")) <= 800_000


def test_without_what_is_required_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without Landlock: ``sandbox.confine: require`` reads no PDF, ``best`` does."""
    lines = (
        "import sys; from cleared.books.importing import pdf_text; pdf_text.landlock_abi = lambda: 0; "
        "pdf_text.print_text(sys.argv[1])"
    )
    monkeypatch.setattr(pdf_text, "COMMAND", (sys.executable, "-I", "-c", lines))
    assert pdf_text.read_pdf(make_pdf(b"(Total 45.10) Tj"), "require") == ""
    assert "45.10" in pdf_text.read_pdf(make_pdf(b"(Total 45.10) Tj"), "best")


def make_pdf(shown: bytes, *, kids: bytes = b"[3 0 R]", more: bytes = b"", box: bytes = b"0 0 612 792") -> bytes:
    """A PDF of one page. ``shown``: its text operators, or a whole stream object with its dictionary."""
    stream = b"BT /F1 12 Tf 50 700 Td " + shown + b" ET"
    content = shown if shown.startswith(b"<<") else b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids%b/Count 1>>" % kids,
        b"<</Type/Page/Parent 2 0 R/MediaBox[%b]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>" % box,
        content,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica%b>>" % more,
    ]
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return data + b"xref\n0 6\n0000000000 65535 f \n%btrailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(data),
    )


def make_bomb(size: int, *, twice: bool) -> bytes:
    """A stream that grows to so many bytes, packed once or twice. It is a block of spaces that is packed once and then
    repeated, with the sum over all of them, so that making it costs nothing."""
    packer = zlib.compressobj(9)
    first, block = (packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    sums = 1 + 32 * size, size + 16 * size * (size + 1)  # Adler-32
    total = sums[1] % 65521 << 16 | sums[0] % 65521
    packed = first + block * ((size >> 20) - 1) + b"\x03\x00" + total.to_bytes(4, "big")
    filters = b"[/FlateDecode]"
    if twice:
        packed, filters = zlib.compress(packed, 9), b"[/FlateDecode/FlateDecode]"
    return b"<</Length %d/Filter%b>>stream\n%b\nendstream" % (len(packed), filters, packed)


def test_the_bombs_are_ones() -> None:
    packed = make_bomb(4 << 20, twice=False).partition(b"stream\n")[2].removesuffix(b"\nendstream")
    assert zlib.decompress(packed) == b" " * (4 << 20)


HOSTILE = {
    "a bomb": make_pdf(make_bomb(512 << 20, twice=False)),
    "a bomb in a bomb": make_pdf(make_bomb(2 << 30, twice=True)),
    "pages that are their own parent": make_pdf(b"(x) Tj", kids=b"[2 0 R 3 0 R]"),
    "pages that hold themselves": make_pdf(b"(x) Tj", kids=b"[2 0 R 2 0 R 2 0 R 2 0 R 2 0 R 2 0 R]"),
    "a font that is its own descendant": make_pdf(b"(x) Tj", more=b"/DescendantFonts[5 0 R]/ToUnicode 4 0 R"),
    "a page larger than the world": make_pdf(b"(x) Tj", box=b"0 0 1e300 1e300"),
    "a table that points at itself": make_pdf(b"(x) Tj").replace(b"/Root", b"/Prev 9/Root"),
    "nested without end": make_pdf(b"(x) Tj", more=b"/X" + b"[" * 100_000),
    "no PDF": b"%PDF-1.7\n" + bytes(range(256)) * 4_000,
    "nothing": b"%PDF-",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pdf_counts_by_its_name(name: str) -> None:
    """Within the bounds of time and memory, which the kernel holds; nothing of it reaches this process."""
    amounts, _ = read_receipt("2025-01-06 Blue Bottle 12.50.pdf", HOSTILE[name])
    assert [str(amount) for amount in amounts] == ["12.50"]


def test_a_pdf_is_read() -> None:
    """Where nothing hinders it: what is imported when it is needed is there."""
    assert [str(a) for a in read_receipt("r.pdf", make_pdf(b"(Total 45.10) Tj"), "require")[0]] == ["45.10"]
    assert Path(pdf_text.__file__).exists()
