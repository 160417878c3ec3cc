"""
name: Review Reminder
trigger: schedule
schedule: 0 8 * * 1-5
description: Count what waits for a decision and say how long the oldest has waited
"""


def day_number(date):
    # Days since a fixed day, from YYYY-MM-DD: enough to subtract two dates.
    y = int(date[:4])
    m = int(date[5:7])
    d = int(date[8:10])
    if m < 3:
        y = y - 1
        m = m + 12
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * (m - 3) + 2) // 5 + d


waiting = queue_pending()
if not waiting:
    ctx_log("Nothing waits for review")
    {"waiting": 0, "oldest_days": 0}
else:
    # Both times are UTC, so their dates can be subtracted.
    oldest = min([card["created_at"] for card in waiting])
    days = day_number(ctx_now()) - day_number(oldest)
    ctx_log(str(len(waiting)) + " waiting for review, the oldest for " + str(days) + " days")
    ctx_emit("review.waiting", {"count": len(waiting), "oldest_days": days})
    {"waiting": len(waiting), "oldest_days": days}
