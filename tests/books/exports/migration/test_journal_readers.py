"""hledger and beancount files: what is read, what is read over and counted, what is refused with its line."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleared.books.bank_files.base import ImportFileError
from cleared.books.exports.migration.beancount_reader import read_beancount
from cleared.books.exports.migration.hledger_reader import read_hledger
from cleared.books.exports.migration.source_books import SourceAmounts

HLEDGER = """; a comment
decimal-mark .
account Assets:Bank  ; type: C
account Income
    ; type: R
commodity $1,000.00
P 2025-01-01 EUR $1.10
comment
2025-01-01 not read
    a  1
end comment

2025/1/2=2025-01-03 ! (17) Shop  ; paid: cash
    ; of two lines
    Expenses:Food and drink   $1,234.50  ; posting
    Assets:Bank              $-1,234.50 = $0.00

2025-01-05 Salary
\tAssets:Bank\t10 USD
    Income
"""
BEANCOUNT = """option "title" "x"
plugin "evil"
2025-01-01 open Assets:Bank USD
2025-01-02 ! "Shop" "Food; and \\"drink\\"
over two lines" #tag ^link ; comment
  key: "value"
  Expenses:Food   1,234.50 USD ; posting
  Assets:Bank
2025-01-03 balance Assets:Bank 5 USD
* a heading
2025-01-05 txn "Salary"
  * Assets:Bank  10 USD
  Income:Salary  -10.00 USD
"""


def test_an_hledger_journal_is_read() -> None:
    books = read_hledger(HLEDGER, "USD", 2)
    shop, salary = books.entries
    assert (shop.line, str(shop.day), shop.description) == (13, "2025-01-02", "Shop")
    assert [(p.account, p.amount) for p in shop.postings] == [
        ("Expenses:Food and drink", Decimal("1234.50")),
        ("Assets:Bank", Decimal("-1234.50")),
    ]
    assert shop.notes == "code 17; paid: cash; of two lines; posting"
    assert [(p.account, str(p.amount)) for p in salary.postings] == [("Assets:Bank", "10.00"), ("Income", "-10.00")]
    assert dict(books.left_out) == {
        "prices": 1,
        "balance assertions": 1,
        "second dates": 1,
        "marks of pending transactions (!)": 1,
    }
    assert (books.type_of("Assets:Bank:Savings"), books.type_of("Income")) == ("asset", "revenue")


def test_a_beancount_file_is_read() -> None:
    books = read_beancount(BEANCOUNT, "USD", 2)
    shop, salary = books.entries
    assert (shop.line, shop.counterparty, shop.description) == (4, "Shop", 'Food; and "drink"\nover two lines')
    assert [(p.account, str(p.amount)) for p in shop.postings] == [
        ("Expenses:Food", "1234.50"),
        ("Assets:Bank", "-1234.50"),
    ]
    assert salary.description == "Salary" and len(salary.postings) == 2
    assert books.left_out == {
        "plugins, which were not run": 1,
        "balance assertions": 1,
        "marks of pending transactions (!)": 1,
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("include /etc/passwd\n", "another file would be read"),
        ("alias a=b\n", "renamed"),
        ("= expenses\n  (budget)  *-1\n", "an automatic transaction"),
        ("~ monthly\n  a  1\n", "a periodic transaction"),
        ("apply account x\n", "renamed"),
        ("2025-01-02 a\n  A  1 USD\n  B  -1 EUR\n", "'-1 EUR' is in EUR, the books are in USD"),
        ("2025-01-02 a\n  A  1 USD @ 2 EUR\n  B\n", "has a price"),
        ("2025-01-02 a\n  A  1 USD\n  B  -2 USD\n", "does not balance: -1.00 is left"),
        ("2025-01-02 a\n  A  1\n  B\n  C\n", "more than one posting"),
        ("2025-01-02 a\n  (A)  1\n", "virtual"),
        ("2025-01-02 a\n  A  = 5\n  B  5\n", "a balance is assigned"),
        ("2025-01-02 a\n  A  1,000\n  B\n", "a thousand times as much"),
        ("2025-01-02 a\n  A  1.001 USD\n  B\n", "a thousand times as much"),
        ("decimal-mark .\n2025-01-02 a\n  A  1.0010 USD\n  B\n", "finer than the currency"),
        ("2025-02-30 a\n  A  1\n  B\n", "does not begin with a day"),
        ("01/02 a\n  A  1\n  B\n", "does not begin with a day"),
        ("2025-01-02 a\n  A  1  ; date:2024-01-01\n  B\n", "a date of its own"),
        ("2025-01-02 a\n  A  1  ; [2024-01-01]\n  B\n", "a date of its own"),
        ("  A  1\n", "belongs to nothing"),
        ("2025-01-02 a\n  A  1e5\n  B\n", "is in e"),
        ("2025-01-02 a\n  A  5*3\n  B\n", "is in *"),
    ],
)
def test_what_hledger_would_work_out_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ImportFileError) as caught:
        read_hledger(text, "USD", 2)
    assert says in caught.value.message and caught.value.place is not None and caught.value.place.line is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('include "/etc/passwd"\n', "no file is read but the one that is named"),
        ("2025-01-01 pad Assets:A Equity:B\n", "entries that are not written out"),
        ('2025-01-01 * "a"\n  Assets:A  1 USD\n  Assets:B  -1 EUR\n', "the books are in USD"),
        ('2025-01-01 * "a"\n  Assets:A  1 USD {2 EUR}\n  Assets:B\n', "has a price"),
        ('2025-01-01 * "a"\n  Assets:A  (1+1) USD\n  Assets:B\n', "is not"),
        ('2025-01-01 * "a"\n  Assets:A  6/2 USD\n  Assets:B\n', "is in / USD"),
        ('2025-01-01 * "a"\n  Assets:A  1 USD\n  Assets:B  -2 USD\n', "does not balance"),
        ('2025-01-01 * "a"\n  Assets:A  1 USD\n  nothing here\n', "no posting"),
        ('2025-01-01 * "a" "b" "c"\n  Assets:A  1 USD\n', "not a transaction"),
        ('2025-01-01 * "a\n  Assets:A  1 USD\n', "a string that does not end"),
        ('2025-13-01 * "a"\n', "not a transaction"),
        ("import os\n", "not a directive"),
        ("  Assets:A  1 USD\n", "belongs to nothing"),
    ],
)
def test_what_beancount_would_work_out_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ImportFileError) as caught:
        read_beancount(text, "USD", 2)
    assert says in caught.value.message and caught.value.place is not None and caught.value.place.line is not None


@settings(max_examples=60)
@given(st.text('2025-01 *!()";:=@{}[]\n\t AbUSD$.,\\~', max_size=200) | st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_hledger, read_beancount):
        try:
            books = read(f"2025-01-01 * {text}", "USD", 2)
        except ImportFileError:
            continue
        assert all(sum(p.amount for p in entry.postings) == 0 for entry in books.entries)


@settings(max_examples=60)
@given(st.integers(-(10**10), 10**10), st.sampled_from(["{:,.2f}", "${:,.2f}", "{:.2f} USD", "USD {:,.2f}"]))
def test_amounts_are_exact_however_they_are_written(cents: int, style: str) -> None:
    amount = Decimal(cents) / 100
    assert SourceAmounts("USD", 2).read_amount(style.format(amount)) == amount
    swapped = style.format(amount).translate(str.maketrans(".,", ",."))
    assert SourceAmounts("USD", 2).read_amount(swapped) == amount
