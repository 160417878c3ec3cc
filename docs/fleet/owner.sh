#!/bin/sh
# The owner of the fleet: makes it and its workspaces where there are none, lets the workers in, and serves the page.
# Said again, each step finds that it was done; a worker is let in once, so one that was revoked stays out.
set -eu

mkdir -p "$GIT" "$TOLD" "$CLEARED_HOME/made" "$CLEARED_HOME/let-in"
owner=$(cleared fleet init --database "$DATABASE" --store "$FILES" | grep -o 'ed25519:.*')

for name in $WORKSPACES; do
    shared="$GIT/$name.git"
    if [ ! -d "$shared" ]; then
        rm -rf "$shared.new" "$CLEARED_HOME/made/$name"
        cleared init "$CLEARED_HOME/made/$name" --name "$name"
        git clone --quiet --bare "$CLEARED_HOME/made/$name" "$shared.new"
        git -C "$shared.new" config receive.denyNonFastForwards true
        git -C "$shared.new" config receive.denyDeletes true
        mv "$shared.new" "$shared"
    fi
    cleared fleet add "$name" "$shared"
done

echo "$owner" > "$TOLD/owner"
for worker in $WORKERS; do
    until [ -s "$TOLD/$worker" ]; do sleep 1; done
    if ! cmp -s "$TOLD/$worker" "$CLEARED_HOME/let-in/$worker"; then
        cp "$TOLD/$worker" "$CLEARED_HOME/let-in/$worker.new"
        cleared fleet trust "$(cat "$CLEARED_HOME/let-in/$worker.new")" > /dev/null
        mv "$CLEARED_HOME/let-in/$worker.new" "$CLEARED_HOME/let-in/$worker"
    fi
done
exec cleared fleet server --port "$PORT"
