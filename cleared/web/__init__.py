"""The page: decide, look into anything, in a browser. Needs the packages of ``[web]``."""
