"""What starts runs by itself: schedules, files, events; and the service that waits for them."""
