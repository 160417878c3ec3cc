"""``config.yaml``: its shape (``model``), reading it whole (``load``), changing one value (``edit``)."""
