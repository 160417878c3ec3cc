"""``config.yaml``: its shape (``model``), reading it whole (``load``), changing it without losing comments (``edit``)."""
