#!/bin/sh
# The owner of the fleet: makes it and its workspaces where there are none, lets the workers in, and serves the page.
# Said again, each step finds that it was done; a worker is let in once, so one that was revoked stays out. The page
# waits for no worker: they are let in beside it, as they tell their keys.
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

let_in() {
    told="$TOLD/$1" known="$CLEARED_HOME/let-in/$1"
    if [ -s "$told" ] && ! cmp -s "$told" "$known"; then
        cp "$told" "$known.new" && cleared fleet trust "$(cat "$known.new")" > /dev/null && mv "$known.new" "$known"
    fi
}

while kill -0 $$ 2> /dev/null; do # the page has this number, once it is there
    for worker in $WORKERS; do
        let_in "$worker" || echo "$worker is not let in yet" >&2
    done
    sleep 1
done &
exec cleared fleet server --port "$PORT"
