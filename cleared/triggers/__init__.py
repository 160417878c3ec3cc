"""What starts runs by itself: schedules, files, events, webhooks.

It imports ``runs`` and below. Begin with ``event_source`` and ``pending_deliveries``.
"""
