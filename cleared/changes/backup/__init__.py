"""A whole workspace in one sealed file: history, files, and what its machine knows beside them."""
