#!/bin/sh
# The reader on mutations of a good trace, and unpacking on those of a packed one, under ASan and UBSan: some seconds alone,
# some with libFuzzer where clang has it.
set -eu

case $MODE in
asan | tsan | cov)
	echo "built with sanitizers of its own; run in the other modes"
	exit 77
	;;
esac

src=$SOURCE_DIR
flags="-std=gnu11 -g -O1 -D_GNU_SOURCE -I$src/include -I$src/src -I$src/tools -I$src/tests -fno-sanitize-recover=all"
trace="$src/src/trace/reader.c $src/src/trace/parts.c $src/src/trace/decode.c $src/src/trace/near_read.c $src/src/trace/schema.c $src/src/trace/error.c"
pack="$src/tools/pack/unpack.c $src/tools/pack/ungroup.c $src/tools/pack/columns.c $src/tools/pack/file.c $src/tools/model/memory.c"
export ASAN_OPTIONS=detect_leaks=1

whatif=
for name in pickle settings whatif whatif_predict whatif_built whatif_snapshot whatif_snapshot_facts allocator allocator_set \
	allocator_release allocator_expandable allocator_addresses; do
	whatif="$whatif $src/tools/analysis/$name.c"
done
# fuzz TARGET FILE...: what tests/fuzz/TARGET.c tests is in the files.
fuzz() {
	target=$1
	shift
	mkdir "$target"
	# shellcheck disable=SC2086
	${CC:-cc} $flags -DFUZZ_ALONE -fsanitize=address,undefined "$src/tests/fuzz/$target.c" "$@" -o "$target/alone" -lzstd
	mkdir "$target/corpus"
	"$target/alone" seed "$target/corpus/good"
	"$target/alone" 0 "$target/corpus/good"
	"$target/alone" "${FUZZ_SECONDS:-3}"

	# shellcheck disable=SC2086
	if clang $flags -fsanitize=fuzzer,address,undefined "$src/tests/fuzz/$target.c" "$@" -o "$target/fuzzer" -lzstd \
		2>clang.log; then
		"$target/fuzzer" -seed=1 -timeout=10 -max_total_time="${FUZZ_SECONDS:-3}" "$target/corpus" >fuzzer.log 2>&1 || {
			tail -n 60 fuzzer.log
			exit 1
		}
		tail -n 1 fuzzer.log
	else
		echo "no libFuzzer here: $(head -n 1 clang.log)"
	fi
}

# shellcheck disable=SC2086
fuzz fuzz_reader $trace
# shellcheck disable=SC2086
fuzz fuzz_packed $trace $pack
# shellcheck disable=SC2086
fuzz fuzz_snapshot $whatif $src/tools/model/memory.c $src/src/trace/tree.c
