"""
name: Daily Ingest
trigger: [schedule, file_watch]
schedule: 0 6 * * *
watch: import/
description: Import new bank transactions of every account, classify by vendor, route by confidence
"""
# Words of the bank's text, who that is, the account it goes to, how sure that is (0 to 1).
# The first line that fits counts. Add your own vendors here; what is in no line waits for you.
# A fifth column narrows a line, or splits its amount; all of it may be left out:
#     {"money": "out", "bank": 1010, "min": 10, "max": 500, "split": {5150: "20.00", 3200: "40%"}}
# only money out ("in": only money in), only of the bank account 1010 in the books, only from 10 to 500; 20.00 of it go
# to 5150, 40 % to 3200, the rest to the line's own account.
VENDORS = [
    ("GITHUB", "GitHub", 5020, 0.98),
    ("AWS", "Amazon Web Services", 5020, 0.96),
    # Between your own accounts: each side goes through 1090, which is nil again once both files are in.
    ("PAYMENT TO CHASE CARD", "Own credit card", 1090, 0.99),
    ("PAYMENT THANK YOU", "Own bank account", 1090, 0.99),
    ("ONLINE TRANSFER", "Own account", 1090, 0.80),
]
UNKNOWN_INCOME = 4010
UNKNOWN_EXPENSE = 5030
IN_TRANSIT = 1090


def folded(text):
    # Two blanks are one: banks pad their texts.
    return " ".join(text.upper().split())


def says(text, words):
    # As words of their own: AWS is in "AWS*EMEA" and "AWS1234", not in "LAWSON".
    at = text.find(words)
    while at >= 0:
        end = at + len(words)
        if not text[at - 1:at].isalpha() and not text[end:end + 1].isalpha():
            return True
        at = text.find(words, at + 1)
    return False


def fits(only, amount, bank):
    # Whether the fifth column lets the line count for this amount (negative: money out) of this bank account.
    way = "out" if amount < 0 else "in"
    if only.get("money", way) != way or only.get("bank", bank) != bank:
        return False
    if "min" in only and abs(amount) < decimal(str(only["min"])):
        return False
    return "max" not in only or abs(amount) <= decimal(str(only["max"]))


def divided(amount, account, split):
    # Account and amount of each part, without signs: first what the split names, then the rest.
    parts = []
    rest = amount
    for other in split:
        said = split[other]
        if said.endswith("%"):
            share = decimal(said[:-1])
            part = money_allocate(amount, [share, 100 - share])[0]
        else:
            part = decimal(said)
        parts.append((other, part))
        rest = rest - part
    parts.append((account, rest))
    return parts


def described(only, split):
    said = [name + " " + str(only[name]) for name in only if name != "split"]
    said = said + ["split " + str(account) + " " + split[account] for account in split]
    return " (" + ", ".join(said) + ")" if said else ""


def counted(number, noun):
    return str(number) + " " + noun + ("" if number == 1 else "s")


files = importer_scan()
if not files:
    ctx_log("No new files to import")
    {"imported": 0, "confirmed": 0, "review": 0}
else:
    threshold = config_get("thresholds.auto_confirm")
    table = [(folded(row[0]), row) for row in VENDORS]
    one_account = len(config_get("bank_accounts", [])) < 2
    total_imported = 0
    total_confirmed = 0
    total_review = 0

    for f in files:
        bank = f["ledger_account"]
        is_asset = accounts_get(bank)["account_type"] == "asset"
        txns = importer_parse(f["name"])
        ctx_log("Parsed " + counted(len(txns), "transaction") + " from " + f["name"])

        for txn in txns:
            amount = txn["amount"]
            text = folded(txn["description"])
            # Money that comes in is taken for income; on a card, for a purchase that was returned.
            other = UNKNOWN_INCOME if amount > 0 and is_asset else UNKNOWN_EXPENSE
            vendor = None
            confidence = 0.0
            evidence = "no confident match"
            split = {}

            for words, row in table:
                only = row[4] if len(row) > 4 else {}
                if says(text, words) and fits(only, amount, bank):
                    other = row[2]
                    vendor = row[1]
                    confidence = row[3]
                    split = only.get("split", {})
                    evidence = "vendor table: " + row[0] + described(only, split)
                    break

            if other == IN_TRANSIT and one_account:
                # The other side's file will never come, so a person says what it was.
                confidence = 0.0
                evidence = evidence + ", but the books know one bank account only"
            elif vendor and amount > 0 and accounts_get(other)["account_type"] == "expense":
                evidence = evidence + ", a refund"

            parts = divided(abs(amount), other, split)
            if [part for account, part in parts if part <= 0]:
                # A fixed part is more than there is, so a person says how it is split.
                parts = [(other, abs(amount))]
                confidence = 0.0
                evidence = evidence + ", but the parts do not fit"

            if confidence >= threshold:
                status = "auto-confirmed"
                total_confirmed = total_confirmed + 1
            else:
                status = "pending-review"
                total_review = total_review + 1

            # Money out credits the bank's account, money in debits it: so a refund goes back to the account
            # that the purchase went to.
            if len(parts) == 1:
                journal_add_double(
                    date=txn["date"], description=txn["description"],
                    debit_account=other if amount < 0 else bank,
                    credit_account=bank if amount < 0 else other,
                    amount=abs(amount), counterparty=vendor, reference=txn["reference"],
                    confidence=confidence, status=status, evidence=evidence)
            else:
                whole = [(bank, abs(amount))]
                debits, credits = (parts, whole) if amount < 0 else (whole, parts)
                journal_add(
                    date=txn["date"], description=txn["description"],
                    lines=[{"account_id": account, "debit": part} for account, part in debits]
                    + [{"account_id": account, "credit": part} for account, part in credits],
                    counterparty=vendor, reference=txn["reference"],
                    confidence=confidence, status=status, evidence=evidence)
            if status == "pending-review":
                queue_add_review(entry_id="pending", description=txn["description"], confidence=confidence)
            total_imported = total_imported + 1

        importer_mark_processed(f["name"])

    git_commit("import: " + counted(total_imported, "transaction") + " from " + counted(len(files), "file"))
    ctx_log("Done: " + str(total_confirmed) + " auto-confirmed, " + str(total_review) + " for review")
    {"imported": total_imported, "confirmed": total_confirmed, "review": total_review}
