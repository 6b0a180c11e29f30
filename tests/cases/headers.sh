#!/bin/sh
# The hooks and the simulated CUDA compile without warnings against every other version of NVIDIA's headers that is at hand: those
# that `make deps` unpacked, toolkits in the usual places, and the folders in CUDA_HEADERS.
set -eu
cd "$SOURCE_DIR"

version_of() {
	sed -n 's/^#define CUDA_VERSION *\([0-9]*\).*/\1/p' "$1/cuda.h"
}

# syntax FOLDER FLAG... FILE...: as the Makefile compiles, without the code.
syntax() {
	folder=$1
	shift
	${CC:-cc} -std=gnu11 -fsyntax-only -fPIC -pthread -ftls-model=initial-exec -Wall -Wextra -Werror -D_GNU_SOURCE -DVT_VERSION='"0"' \
		-Iinclude -Isrc -isystem "$folder" "$@"
}

# What this build was made with has been compiled already.
# shellcheck disable=SC2086
done_before=$(printf '#include <cuda.h>\n@CUDA_VERSION' | ${CC:-cc} -E -P $CUDA_FLAGS - | sed -n 's/^@//p')
echo "this build: $done_before"
n=0
for folder in build/cuda/include /usr/local/cuda*/include /opt/cuda/include /usr/include ${CUDA_HEADERS:-}; do
	if [ ! -e "$folder/cuda.h" ] || [ ! -e "$folder/cudaTypedefs.h" ] || [ ! -e "$folder/cuda_runtime_api.h" ]; then
		continue
	fi
	version=$(version_of "$folder")
	case " $done_before " in *" $version "*) continue ;; esac
	done_before="$done_before $version"
	echo "$version: $folder"
	if [ "$version" -lt 11080 ]; then
		echo "older than 11.8: not meant to work"
		continue
	fi
	syntax "$folder" -fvisibility=hidden -Wshadow -Wconversion src/hooks/*.c
	syntax "$folder" -Itests/sim tests/sim/sim_*.c tests/sim/cudart_*.c tests/sim/nvml_*.c tests/sim/c10_*.c
	n=$((n + 1))
done
if [ $n -eq 0 ]; then
	echo "no other headers than those of version $done_before: give folders in CUDA_HEADERS"
	exit 77
fi
