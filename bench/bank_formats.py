"""Bank statements read, beside the libraries that read them."""

from __future__ import annotations

import importlib
import io
import random
from collections.abc import Callable
from typing import Any

from bench.measure import Result, interleave, seconds
from cleared.books.bank_files.plugins import load_format

LINES = 10_000
TARGET = 1.5
OFX = (
    "OFXHEADER:100\nDATA:OFXSGML\nVERSION:102\nSECURITY:NONE\nENCODING:USASCII\nCHARSET:1252\nCOMPRESSION:NONE\n"
    "OLDFILEUID:NONE\nNEWFILEUID:NONE\n\n<OFX><SIGNONMSGSRSV1><SONRS><STATUS><CODE>0<SEVERITY>INFO</STATUS>"
    "<DTSERVER>20250201<LANGUAGE>ENG</SONRS></SIGNONMSGSRSV1><BANKMSGSRSV1><STMTTRNRS><TRNUID>1<STATUS><CODE>0"
    "<SEVERITY>INFO</STATUS><STMTRS><CURDEF>USD<BANKACCTFROM><BANKID>121000248<ACCTID>000111<ACCTTYPE>CHECKING"
    "</BANKACCTFROM><BANKTRANLIST><DTSTART>20250101<DTEND>20251231\n{rows}</BANKTRANLIST><LEDGERBAL><BALAMT>1.00"
    "<DTASOF>20251231</LEDGERBAL></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>\n"
)
CAMT = (
    '<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><GrpHdr>'
    "<MsgId>M</MsgId><CreDtTm>2025-12-31T20:00:00</CreDtTm></GrpHdr><Stmt><Id>S</Id><CreDtTm>2025-12-31T20:00:00"
    "</CreDtTm><Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>EUR</Ccy></Acct>{rows}</Stmt></BkToCstmrStmt>"
    "</Document>"
)
MT940 = ":20:S\n:25:1234567890\n:28C:1/1\n:60F:C250101EUR0,00\n{rows}:62F:C251231EUR0,00\n-\n"


def _make_rows() -> tuple[str, str, str]:
    draw = random.Random(1)
    ofx, camt, mt940 = [], [], []
    for n in range(LINES):
        month, day, cents = draw.randint(1, 12), draw.randint(1, 28), draw.randint(1, 99999)
        amount = f"{cents // 100}.{cents % 100:02d}"
        ofx.append(
            f"<STMTTRN>\n<TRNTYPE>DEBIT\n<DTPOSTED>2025{month:02d}{day:02d}\n<TRNAMT>-{amount}\n<FITID>F{n}\n"
            f"<NAME>VENDOR {n % 300}\n<MEMO>INVOICE {n}\n</STMTTRN>\n"
        )
        camt.append(
            f'<Ntry><Amt Ccy="EUR">{amount}</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts>'
            f"<BookgDt><Dt>2025-{month:02d}-{day:02d}</Dt></BookgDt><ValDt><Dt>2025-{month:02d}-{day:02d}</Dt></ValDt>"
            f"<AcctSvcrRef>R{n}</AcctSvcrRef>"
            f"<NtryDtls><TxDtls><RltdPties><Cdtr><Nm>VENDOR {n % 300}</Nm></Cdtr></RltdPties><RmtInf><Ustrd>INVOICE {n}"
            "</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>"
        )
        short = f"25{month:02d}{day:02d}"
        comma = amount.replace(".", ",")
        mt940.append(f":61:{short}{short[2:]}D{comma}NMSCNONREF//R{n}\n:86:VENDOR {n % 300} INVOICE {n}\n")
    return OFX.format(rows="".join(ofx)), CAMT.format(rows="".join(camt)), MT940.format(rows="".join(mt940))


def _measure(format: str, text: str, library: str, read_beside: Callable[[Any, str], object]) -> Result:
    """The libraries are installed for this only; one that is not here is left out."""
    importer = load_format(format)()
    assert len(importer.parse(text, 2).rows) == LINES

    def read() -> object:
        return importer.parse(text, 2)

    name, target = f"{LINES:,} lines of {format} read", f"≤ {TARGET:g}× {library}"
    try:
        module = importlib.import_module(library)
    except ImportError:
        mine, _ = interleave(lambda: read, lambda: read, 1)
        return Result(name, seconds(mine), "not installed", None, target, True)
    mine, theirs = interleave(lambda: read, lambda: lambda: read_beside(module, text), 1)
    return Result(name, seconds(mine), seconds(theirs), mine / theirs, target, mine <= TARGET * theirs)


def ofx_lines(quick: bool) -> Result:
    """10,000 lines of OFX, beside ofxparse."""
    return _measure("ofx", _make_rows()[0], "ofxparse", lambda m, text: m.OfxParser.parse(io.BytesIO(text.encode())))


def camt_lines(quick: bool) -> Result:
    """10,000 lines of CAMT.053, beside pycamt."""
    return _measure("camt", _make_rows()[1], "pycamt.parser", lambda m, text: m.Camt053Parser(text).get_transactions())


def mt940_lines(quick: bool) -> Result:
    """10,000 lines of MT940, beside mt-940."""
    return _measure("mt940", _make_rows()[2], "mt940", lambda m, text: m.parse(text))
