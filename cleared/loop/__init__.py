"""The loop that runs jobs, one at a time: rotation, stops, results, and what a job may do while it runs."""
