"""The words with which banks head the columns of CSV files, and what stands in some of them, in several languages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cleared.books.bank_files.csv_table import fold_names
from cleared.workspace.settings.bank_section import PENDING_WORDS

FEES: Final = ("fee", "fees", "gebühr", "gebühren", "frais", "comisión", "commissione")
PAYEES: Final = (
    "payee",
    "merchant",
    "merchant name",
    "counterparty",
    "counter party",
    "name",
    "beneficiary",
    "recipient",
    "vendor",
    "empfänger",
    "zahlungsempfänger",
    "zahlungspflichtige",
    "zahlungspflichtiger",
    "begünstigter",
    "auftraggeber",
    "beguenstigter",
    "name zahlungsbeteiligter",
    "partnername",
    "partner name",
    "beneficiario",
    "ordenante",
    "bénéficiaire",
    "tiers",
    "controparte",
    "naam",
    "tegenpartij",
    "begunstigde",
    "mottagare",
    "odbiorca",
)
"""Heads of columns that name who was paid, or who paid."""
DETAILS: Final = (
    "description",
    "verwendungszweck",
    "details",
    "transaction description",
    "transaction details",
    "payment details",
    "text",
    "narrative",
    "particulars",
    "concepto",
    "libellé",
    "causale",
    "descrizione",
    "omschrijving",
    "mededelingen",
    "memo",
    "purpose",
)
"""Heads of columns that say what for."""
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "transaction_date": (
        "transaction date",
        "trans. date",
        "trans date",
        "value date",
        "wertstellung",
        "valuta",
        "started",
    ),
    "date": (
        "posting date",
        "posted date",
        "post date",
        "booking date",
        "buchungstag",
        "buchungsdatum",
        "completed date",
        "settlement date",
        "date",
        "datum",
        "fecha",
        "data",
        "created",
    ),
    "debit": ("debit", "withdrawal", "withdrawals", "paid out", "money out", "soll", "ausgaben", "belastung"),
    "credit": ("credit", "deposit", "deposits", "paid in", "money in", "haben", "einnahmen", "gutschrift"),
    "balance": ("running balance", "running bal.", "balance", "saldo", "kontostand"),
    "amount": ("amount", "net", "betrag", "umsatz", "montant", "importe", "value"),
    "description": (*DETAILS, *PAYEES, "buchungstext", "reference"),
    "state": (
        "status",
        "state",
        "transaction status",
        "transaction state",
        "booking status",
        "posting status",
        "payment status",
        "buchungsstatus",
        "umsatzstatus",
        "zahlungsstatus",
        "zustand",
        "estado",
        "statut",
        "état",
        "stato",
        "situação",
        "tila",
    ),
    "id": ("transaction id", "transaction reference", "id", "reference number", "fitid"),
    "currency": ("currency", "währung", "devise", "moneda"),
    "type": ("type", "transaction type", "category", "buchungsart"),
    "direction": (
        "debit/credit",
        "credit/debit",
        "dr/cr",
        "cr/dr",
        "transaction type",
        "type",
        "details",
        "direction",
    ),
}
"""Field → how banks head its column, in several languages."""
OUT_WORDS: Final = frozenset({"debit", "dr", "d", "withdrawal", "out"})
IN_WORDS: Final = frozenset({"credit", "cr", "c", "deposit", "in"})
POSTED_WORDS: Final = frozenset(
    {
        "posted",
        "booked",
        "completed",
        "complete",
        "cleared",
        "settled",
        "processed",
        "executed",
        "paid",
        "success",
        "successful",
        "succeeded",
        "final",
        "reconciled",
        "gebucht",
        "verbucht",
        "gebuchte",
        "abgeschlossen",
        "ausgeführt",
        "erledigt",
        "contabilizado",
        "contabilizada",
        "liquidado",
        "liquidada",
        "completado",
        "completada",
        "comptabilisé",
        "comptabilisée",
        "effectué",
        "effectuée",
        "exécuté",
        "exécutée",
        "contabilizzato",
        "contabilizzata",
        "eseguito",
        "eseguita",
        "geboekt",
        "verwerkt",
        "uitgevoerd",
        "bokförd",
        "genomförd",
        "zaksięgowana",
        "zrealizowana",
    }
)
"""What stands in a column of states in rows that the bank has posted."""
PENDING: Final = frozenset(PENDING_WORDS)


def is_headed(name: str, word: str) -> bool:
    """Whether a column's name, folded, is the word, or begins with it."""
    return name == word or name.startswith((f"{word} ", f"{word}(", f"{word}/", f"{word}*"))


def find_unread_state(names: Sequence[str], read: Iterable[str]) -> int | None:
    """Which column says of each row whether it is posted, by its name alone; None where there is none, or where it is
    one of those that are ``read``."""
    folded, known = fold_names(names), set(fold_names(read))
    for at, name in enumerate(folded):
        if name in WORDS["state"] and name not in known:
            return at
    return None
