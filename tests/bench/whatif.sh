#!/bin/sh
# How fast vramtrace whatif replays, in one thread, and what a line of its sweep takes.
exec "$BUILD_DIR/bench/whatif" "$@"
