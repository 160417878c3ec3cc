"""Importing bank files: which files wait, whose they are, which rows are new, what a person should look at."""
