#!/bin/sh
# A worker of the fleet: joins it, tells the owner its key, and works. Until it was let in it ends with 3, and is started
# again.
set -eu

cleared fleet join --database "$DATABASE" --store "$FILES" --owner "$(cat "$TOLD/owner")"
cp "$CLEARED_HOME/run-key.pub" "$TOLD/$NAME.new"
mv "$TOLD/$NAME.new" "$TOLD/$NAME"
exec cleared fleet worker
