#!/bin/sh
# The reader on mutations of a good trace, under ASan and UBSan: some seconds alone, some with libFuzzer where clang has it.
set -eu

case $MODE in
tsan | cov)
	echo "built with sanitizers of its own; run in the other modes"
	exit 77
	;;
esac

src=$SOURCE_DIR
flags="-std=gnu11 -g -O1 -D_GNU_SOURCE -I$src/include -I$src/src -I$src/tests -fno-sanitize-recover=all"
files="$src/tests/fuzz/fuzz_reader.c $src/src/trace/reader.c $src/src/trace/schema.c $src/src/trace/error.c"
export ASAN_OPTIONS=detect_leaks=1

# shellcheck disable=SC2086
${CC:-cc} $flags -DFUZZ_ALONE -fsanitize=address,undefined $files -o alone
mkdir -p corpus
./alone seed corpus/good
./alone 0 corpus/good
./alone "${FUZZ_SECONDS:-5}"

# shellcheck disable=SC2086
if clang $flags -fsanitize=fuzzer,address,undefined $files -o fuzzer 2>clang.log; then
	./fuzzer -seed=1 -timeout=10 -max_total_time="${FUZZ_SECONDS:-5}" corpus >fuzzer.log 2>&1 || {
		tail -n 60 fuzzer.log
		exit 1
	}
	tail -n 1 fuzzer.log
else
	echo "no libFuzzer here: $(head -n 1 clang.log)"
fi
