"""
name: Daily Ingest
trigger: [schedule, file_watch]
schedule: 0 6 * * *
watch: import/
description: Import new bank transactions of every account, classify by vendor, route by confidence
"""
# Words of the bank's text, who that is, the account it goes to, how sure that is (0 to 1).
# The first line that fits counts. Add your own vendors here; what is in no line waits for you.
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


def says(text, words):
    # As words of their own: AWS is in "AWS*EMEA" and "AWS1234", not in "LAWSON".
    at = text.find(words)
    while at >= 0:
        end = at + len(words)
        if not text[at - 1:at].isalpha() and not text[end:end + 1].isalpha():
            return True
        at = text.find(words, at + 1)
    return False


def counted(number, noun):
    return str(number) + " " + noun + ("" if number == 1 else "s")


files = importer_scan()
if not files:
    ctx_log("No new files to import")
    {"imported": 0, "confirmed": 0, "review": 0}
else:
    threshold = config_get("thresholds.auto_confirm")
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
            text = txn["description"].upper()
            # Money that comes in is taken for income; on a card, for a purchase that was returned.
            other = UNKNOWN_INCOME if amount > 0 and is_asset else UNKNOWN_EXPENSE
            vendor = None
            confidence = 0.0
            evidence = "no confident match"

            for words, name, account_id, sure in VENDORS:
                if says(text, words):
                    other = account_id
                    vendor = name
                    confidence = sure
                    evidence = "vendor table: " + words
                    break

            if other == IN_TRANSIT and one_account:
                # The other side's file will never come, so a person says what it was.
                confidence = 0.0
                evidence = evidence + ", but the books know one bank account only"
            elif vendor and amount > 0 and accounts_get(other)["account_type"] == "expense":
                evidence = evidence + ", a refund"

            if confidence >= threshold:
                status = "auto-confirmed"
                total_confirmed = total_confirmed + 1
            else:
                status = "pending-review"
                total_review = total_review + 1

            # Money out credits the bank's account, money in debits it: so a refund goes back to the account
            # that the purchase went to.
            journal_add_double(
                date=txn["date"], description=txn["description"],
                debit_account=other if amount < 0 else bank,
                credit_account=bank if amount < 0 else other,
                amount=abs(amount), counterparty=vendor, reference=txn["reference"],
                confidence=confidence, status=status, evidence=evidence)
            if status == "pending-review":
                queue_add_review(entry_id="pending", description=txn["description"], confidence=confidence)
            total_imported = total_imported + 1

        importer_mark_processed(f["name"])

    git_commit("import: " + counted(total_imported, "transaction") + " from " + counted(len(files), "file"))
    ctx_log("Done: " + str(total_confirmed) + " auto-confirmed, " + str(total_review) + " for review")
    {"imported": total_imported, "confirmed": total_confirmed, "review": total_review}
