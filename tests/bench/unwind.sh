#!/bin/sh
# What a call stack costs, by several ways in one process.
exec "$BUILD_DIR/bench/unwind"
