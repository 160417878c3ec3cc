"""One declaration of a primitive; everything else (stubs, schemas, documentation, dispatch) is derived from it."""
