#!/bin/sh
# Wrong models of PyTorch's allocator, each of which a unit test has to catch: tests/whatif_mutants.sh.
set -eu

if [ "$MODE" != release ] || [ ! -f "$BUILD_DIR/tests/unit/test_allocator.o" ]; then
	echo "once is enough: where the unit tests are built for release"
	exit 77
fi
sh "$SOURCE_DIR/tests/whatif_mutants.sh" "$BUILD_DIR"
