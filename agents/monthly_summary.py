"""
name: Monthly Summary
trigger: schedule
schedule: 0 7 1 * *
description: Last month's income, expenses by account, profit, and what still waits for review
"""
# The month before today's.
today = ctx_today()
year = int(today[:4])
month = int(today[5:7]) - 1
if month == 0:
    year = year - 1
    month = 12

names = {}
types = {}
for account in accounts_list():
    names[account["account_id"]] = account["account_name"]
    types[account["account_id"]] = account["account_type"]

# Every row counts: a voided entry is cancelled by its reversal, not left out. Only the entries that close
# a year's books are not part of the year's result.
income = 0
spent = 0
by_account = {}
waiting = 0
costs = {}
shown = {}
first_of = {}
for entry in journal_query(year=year, month=month):
    if "@kind=closing" in (entry["tags"] or []):
        continue
    if entry["status"] == "pending-review":
        waiting = waiting + 1
    cost = 0
    for line in entry["lines"]:
        amount = (line["debit"] or 0) - (line["credit"] or 0)
        account_id = line["account_id"]
        if types.get(account_id) == "revenue":
            income = income - amount
        elif types.get(account_id) == "expense":
            spent = spent + amount
            cost = cost + amount
            by_account[account_id] = by_account.get(account_id, 0) + amount
    # What a person took back or corrected is one purchase with what stands for it now.
    first = entry["entry_id"]
    for tag in entry["tags"] or []:
        if tag.startswith("@rev=") or tag.startswith("@corrects="):
            earlier = tag[tag.find("=") + 1:]
            first = first_of.get(earlier, first)
    first_of[entry["entry_id"]] = first
    costs[first] = costs.get(first, 0) + cost
    if first not in shown or shown[first]["status"] == "voided":
        shown[first] = entry

expenses = {}
for account_id in sorted(by_account):
    if by_account[account_id] != 0:
        expenses[str(account_id) + " " + names.get(account_id, "")] = str(by_account[account_id])

largest = []
for first in costs:
    if costs[first] > 0:
        entry = shown[first]
        largest.append((costs[first], entry["entry_id"], entry["counterparty"], entry["description"]))

top = []
for cost, entry_id, counterparty, description in sorted(largest, reverse=True)[:5]:
    vendor = counterparty or script_run("vendor_name", description=description)
    top.append({"entry_id": entry_id, "vendor": vendor, "amount": str(cost)})

label = str(year) + "-" + ("0" + str(month))[-2:]
ctx_log(
    label + ": income " + str(income) + ", expenses " + str(spent) + ", net " + str(income - spent)
    + ", waiting for review " + str(waiting)
)
{
    "month": label,
    "income": str(income),
    "expenses": expenses,
    "expenses_total": str(spent),
    "net": str(income - spent),
    "largest": top,
    "waiting_for_review": waiting,
}
