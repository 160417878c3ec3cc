"""Row B19: CSV files of banks and processors, recognised by their columns, with their signs, fees and dates."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from import_samples import CARD, CHECKING, config, profile

from cleared.books.bank_files import ImportFileError, Sample
from cleared.books.bank_files.account_matching import resolve_accounts
from cleared.books.bank_files.csv_presets import load_presets
from cleared.books.bank_files.file_reading import detect_format, read_file
from cleared.books.bank_files.plugin_tests import check_importer
from cleared.books.sample_files import make_sample_files
from cleared.workspace.settings.bank_section import BankAccount, Match
from cleared.workspace.settings.model import Config

FILES = {
    "bank_of_america": """Description,,Summary Amt.
Beginning balance as of 01/01/2025,,"1,000.00"
Total credits,,"0.00"

Date,Description,Amount,Running Bal.
01/01/2025,Beginning balance as of 01/01/2025,,"1,000.00"
01/31/2025,"GITHUB, INC.","-4.00","996.00"
""",
    "bank_of_america_card": """Posted Date,Reference Number,Payee,Address,Amount
01/31/2025,24001234567,"GITHUB, INC.",CA,-4.00
""",
    "wells_fargo": '"01/31/2025","-4.00","*","","GITHUB, INC."\n"01/30/2025","1500.00","*","","ACME"\n',
    "capital_one_card": """Transaction Date,Posted Date,Card No.,Description,Category,Debit,Credit
2025-01-30,2025-01-31,1234,"GITHUB, INC.",Software,4.00,
2025-01-30,2025-01-31,5678,REFUND,Software,,2.50
""",
    "capital_one": """Account Number,Transaction Description,Transaction Date,Transaction Type,Transaction Amount,Balance
4321,"GITHUB, INC.",01/31/25,Debit,4,996
""",
    "american_express": """Date,Description,Amount,Extended Details,Appears On Your Statement As,Address,City/State,Zip Code,Country,Reference,Category
01/31/2025,"GITHUB, INC.",4.00,X,GITHUB,A,"SF
CA",94107,US,'320250310',Software
""",
    "citi": """Status,Date,Description,Debit,Credit,Member Name
Cleared,01/31/2025,"GITHUB, INC.",4.00,,ME
Cleared,01/30/2025,PAYMENT,,-10.00,ME
""",
    "wise": """TransferWise ID,Date,Amount,Currency,Description,Payment Reference,Running Balance,Total fees
CARD-1,31-01-2025,-4.00,USD,"GITHUB, INC.",,996.00,0.00
""",
    "revolut": """Type,Product,Started Date,Completed Date,Description,Amount,Fee,Currency,State,Balance
CARD_PAYMENT,Current,2025-01-30 16:00:26,2025-01-31 12:58:02,"GITHUB, INC.",-3.50,0.50,USD,COMPLETED,996.00
CARD_PAYMENT,Current,2025-01-31 16:00:26,,LATER,-9.00,0.00,USD,PENDING,
""",
    "revolut_business": """Date started (UTC),Date completed (UTC),ID,Type,State,Description,Payer,Payment currency,Amount,Total amount,Fee,Balance,Account
2025-01-30 09:12:01,2025-01-31 09:12:05,a1,CARD_PAYMENT,COMPLETED,"GITHUB, INC.",ME,USD,-3.50,-4.00,0.50,996.00,Main
""",
    "n26": """"Booking Date","Value Date","Partner Name","Partner Iban",Type,"Payment Reference","Account Name","Amount (EUR)","Original Amount","Original Currency","Exchange Rate"
2025-01-31,2025-01-31,"GITHUB, INC.",,Presentment,,Main,-4.00,,,
""",
    "n26_until_2024": """"Date","Payee","Account number","Transaction type","Payment reference","Amount (EUR)","Exchange Rate"
"2025-01-31","GITHUB, INC.","","MasterCard Payment","","-4.0",""
""",
    "mercury": """Date (UTC),Description,Amount,Status,Source Account,Bank Description,Reference,Note,Category
01-31-2025,"GITHUB, INC.",-4.00,Sent,Mercury Checking xx8655,,,,
01-31-2025,LATER,-9.00,Pending,Mercury Checking xx8655,,,,
""",
    "paypal": """"Date","Time","TimeZone","Name","Type","Status","Currency","Gross","Fee","Net","From Email Address","To Email Address","Transaction ID","Balance"
"01/31/2025","10:00:00","PST","GITHUB, INC.","Payment","Completed","USD","-3.50","-0.50","-4.00","a","b","1AB","996.00"
""",
    "stripe": """id,Type,Source,Amount,Fee,Net,Currency,Created (UTC),Available On (UTC),Description
txn_1,charge,ch_1,25.00,1.03,23.97,usd,2025-01-31 10:00,2025-02-02 00:00,"GITHUB, INC."
""",
    "stripe_report": """balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,reporting_category,description
txn_1,2025-01-31 10:02:11,2025-02-02 00:00:00,usd,25.00,1.03,23.97,charge,"GITHUB, INC."
""",
    "square": """Date,Time,Time Zone,Gross Sales,Total Collected,Fees,Net Total,Transaction ID,Payment ID,Description,Event Type
01/31/2025,10:00:00,Eastern,$25.00,$25.00,-$1.03,$23.97,T1,P1,"GITHUB, INC.",Payment
""",
    "venmo": """Account Statement - (@me) ,,,,,,,,,,,,,,
Account Activity,,,,,,,,,,,,,,
,ID,Datetime,Type,Status,Note,From,To,Amount (total),Amount (tip),Amount (fee),Funding Source,Destination,Beginning Balance,Ending Balance
,,,,,,,,,,,,,$8.00,
,324,2025-01-31T18:43:08,Payment,Complete,"GITHUB, INC.",Me,You,- $4.00,,,Venmo balance,,,
,,,,,,,,,,,,,,$4.00
""",
}
NET = {"stripe": "23.97", "stripe_report": "23.97", "square": "23.97"}
FEES = {
    "stripe": "-1.03",
    "stripe_report": "-1.03",
    "square": "-1.03",
    "revolut": "-0.50",
    "revolut_business": "-0.50",
    "paypal": "-0.50",
}
IDS = {
    "bank_of_america_card": "24001234567",
    "american_express": "'320250310'",
    "wise": "CARD-1",
    "paypal": "1AB",
    "stripe": "txn_1",
    "stripe_report": "txn_1",
    "square": "P1",
    "venmo": "324",
}


def test_each_preset_has_a_file_here_and_no_name_of_another_format() -> None:
    assert set(load_presets()) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_preset_keeps_the_contract_and_reads_what_the_bank_means(name: str) -> None:
    """Money out is negative, the amount net of the fee, the day the bank's own."""
    preset, data = load_presets()[name], FILES[name].encode()
    strangers = [text.encode() for other, text in FILES.items() if other != name]
    check_importer(preset, [data], strangers=[*strangers, CHECKING.encode(), CARD.encode()])
    assert detect_format("a.csv", data, config()) == name
    row = read_file("a.csv", data, config(), 2).rows[0]
    assert (row.posted_date, str(row.amount)) == (date(2025, 1, 31), NET.get(name, "-4.00"))
    assert row.description.startswith("GITHUB, INC.") and row.bank_id == IDS.get(name, "")
    assert row.fee == (Decimal(FEES[name]) if name in FEES else None) or not row.fee
    assert row.balance in (None, Decimal("996.00"))


def test_pending_rows_accounts_and_credits() -> None:
    assert [r.state for r in read_file("a", FILES["revolut"].encode(), config(), 2).rows] == ["posted", "pending"]
    assert [r.state for r in read_file("a", FILES["mercury"].encode(), config(), 2).rows] == ["posted", "pending"]
    card = read_file("a", FILES["capital_one_card"].encode(), config(), 2)
    assert [(s.account, str(s.rows[0].amount)) for s in card.statements] == [("1234", "-4.00"), ("5678", "2.50")]
    assert str(read_file("a", FILES["citi"].encode(), config(), 2).rows[1].amount) == "10.00"


def test_dates_that_can_be_read_in_two_ways_are_refused() -> None:
    """PayPal writes the day first in other countries; one day after the twelfth decides."""
    for day, wanted in (("31/01/2025", date(2025, 1, 31)), ("31.01.2025", None)):
        text = FILES["paypal"].replace("01/31/2025", day)
        if wanted:
            assert read_file("a", text.encode(), config(), 2).rows[0].posted_date == wanted
    with pytest.raises(ImportFileError, match="in two ways"):
        read_file("a", FILES["paypal"].replace("01/31/2025", "01/02/2025").encode(), config(), 2)


def test_the_workspaces_own_description_comes_first() -> None:
    mine = profile(columns={"date": "Date (UTC)", "description": "Description", "amount": "Amount"})
    assert detect_format("a", FILES["mercury"].encode(), config(mine)) == "p"


@pytest.mark.parametrize("name", FILES)
def test_sample_data_is_of_the_accounts_format(name: str) -> None:
    """What the gate's dry runs see is recognised as such a file, and as the account's."""
    account = BankAccount(id="bank", format=name)
    settings = Config(bank_accounts=(account,), business=config().business)
    ((file, data),) = make_sample_files(settings, date(2025, 3, 1)).items()
    assert load_presets()[name].identify(Sample(file, data))
    parsed = read_file(file, data, settings, 2)
    assert len(parsed.rows) == 9 and parsed.rows[0].amount == Decimal(2500)
    assert [found.id for found, _ in resolve_accounts(file, parsed, settings)] == ["bank"]


@pytest.mark.parametrize("format", ["ofx", "camt", "mt940"])
def test_sample_data_of_statement_formats_has_the_accounts_number(format: str) -> None:
    account = BankAccount(id="bank", format=format, match=Match(account="121000248/42"))
    settings = Config(bank_accounts=(account,))
    ((file, data),) = make_sample_files(settings, date(2025, 3, 1)).items()
    parsed = read_file(file, data, settings, 2)
    assert len(parsed.rows) == 9 and [found.id for found, _ in resolve_accounts(file, parsed, settings)] == ["bank"]
