"""
name: Vendor Name
description: A readable vendor name from a bank description
args: [description]
"""
# Words that name the way of paying, not the one who was paid.
NOISE = [
    "ACH", "AUTOPAY", "CARD", "CHECKCARD", "CO", "CREDIT", "DEBIT", "DES", "ENTRY", "ID", "INDN", "ONLINE",
    "ORIG", "PAYMENT", "PMT", "POS", "PPD", "PURCHASE", "RECURRING", "SEC", "TRN", "WEB",
]
PREFIXES = ["ORIG CO NAME:", "SQ *", "TST*", "PAYPAL *", "PP*", "SP ", "GOOGLE *"]

name = description.strip()
for prefix in PREFIXES:
    if name.upper().startswith(prefix):
        name = name[len(prefix):]

for mark in ["*", "#", ":", "_", "\t", "\n", "\r"]:
    name = name.replace(mark, " ")

words = []
for word in name.split():
    plain = word.strip(".,;-/()")
    digits = len([c for c in plain if c.isdigit()])
    if not plain or plain.upper() in NOISE:
        continue
    # Store numbers, dates and trace numbers say nothing about who it is.
    if digits * 2 >= len(plain):
        continue
    words.append(plain)

result = " ".join(words[:3])
if not result:
    result = description.strip()
elif result == result.upper() or result == result.lower():
    result = " ".join([word if len(word) < 4 and word.isupper() else word.capitalize() for word in result.split()])
result
