#!/bin/sh
# Installs what vramtrace needs to be built and tested on Debian and Ubuntu: only what is missing, and nothing at all
# when nothing is. `make deps` runs it.
#   CUDA_INC   where the Makefile found the CUDA headers; when empty, they are taken from the distribution's non-free
#              section into build/cuda
#   DEPS=ci    also what .ci/run uses beyond `make test`
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

packages='gcc g++ libc6-dev libunwind-dev uthash-dev libcmocka-dev libelf-dev libdw-dev libzstd-dev libiberty-dev zlib1g-dev
	libprotobuf-c-dev protobuf-c-compiler libncurses-dev python3 python3-dev python3-greenlet patchelf'
[ "${DEPS:-}" != ci ] || packages="$packages clang clang-format clang-tidy cppcheck gcc-aarch64-linux-gnu
	libc6-dev-arm64-cross qemu-user-static chromium"

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	echo "make deps works with Debian's apt, which is not here. Install by hand: a C compiler, and the development"
	echo "files of libunwind, uthash, CMocka, libelf, libdw (elfutils), zstd, zlib, protobuf-c (with protoc-c) and"
	echo "libiberty (binutils); python3 and patchelf; the CUDA toolkit's headers, 11.8 or newer (CUDA_HOME=folder when"
	echo "make does not find them)."
	exit 1
fi

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo --preserve-env=DEBIAN_FRONTEND "$@"
	else
		echo "make deps: not root, and there is no sudo; as root, run: $*" >&2
		exit 1
	fi
}

missing=
for p in $packages; do
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
if [ -n "$missing" ]; then
	echo "installing:$missing"
	as_root apt-get -qq update
	# shellcheck disable=SC2086
	as_root apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends $missing >/dev/null
fi

# Downloads packages without installing them, from the mirror that this system takes its own from. The sources file is
# one of our own, DIR/packages.sources, which nothing but this reads.
#   download DIR ARCHITECTURE COMPONENTS PACKAGE...      leaves DIR/debs/*.deb
download() {
	dir=$1 architecture=$2 components=$3
	shift 3
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	mirror=$(apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)' 'Created-By: Packages' |
		awk -F'|' -v c="$codename" '$2 == c && $3 == "main" { print $1; exit }')
	if [ -z "$mirror" ] || [ -z "$codename" ]; then
		echo "make deps: found no package mirror of this system to take $* from" >&2
		exit 1
	fi
	rm -rf "$dir"
	mkdir -p "$dir/debs" "$dir/apt/sources.d" "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
	{
		echo "# Written by make deps, and read by nothing else; the system's own sources are as they were."
		echo "Types: deb"
		echo "URIs: $mirror"
		echo "Suites: $codename"
		echo "Components: $components"
		echo "Architectures: $architecture"
		for k in /usr/share/keyrings/$(distribution)-archive-keyring.gpg \
			/usr/share/keyrings/$(distribution)-archive-keyring.pgp; do
			[ ! -e "$k" ] || { echo "Signed-By: $k"; break; }
		done
	} >"$dir/packages.sources"
	cp "$dir/packages.sources" "$dir/apt/sources.d/"
	echo "downloading $* ($architecture) from \"$components\" of $mirror, by its own sources file $dir/packages.sources"
	apt=$PWD/$dir/apt
	packages=$*
	set -- -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt/sources.d" \
		-o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User="$(id -un)" \
		-o APT::Architecture="$architecture" -o APT::Architectures="$architecture"
	apt-get "$@" update
	# shellcheck disable=SC2086
	(cd "$dir/debs" && apt-get "$@" download $packages)
	rm -rf "$dir/apt"
}

distribution() {
	# shellcheck disable=SC1091
	(. /etc/os-release && echo "${ID:-}")
}

# The package holds 2.8 GB of libraries beside the headers and depends on as much again, while headers are all that is
# used: only they are unpacked, and nothing is installed.
take_cuda_headers() {
	components='contrib non-free'
	[ "$(distribution)" != ubuntu ] || components=multiverse
	echo "No CUDA headers found. Taking them from nvidia-cuda-dev, which is not free software (NVIDIA's licence): about"
	echo "800 MB to download, of which the headers are kept, in build/cuda/include."
	download build/cuda "$(dpkg --print-architecture)" "$components" nvidia-cuda-dev
	dpkg-deb --fsys-tarfile build/cuda/debs/*.deb |
		tar -x -C build/cuda --strip-components=2 --no-same-owner ./usr/include
	rm -rf build/cuda/debs
	version=$(sed -n 's/^#define CUDA_VERSION *\([0-9]*\).*/\1/p' build/cuda/include/cuda.h)
	if [ "${version:-0}" -lt 11080 ]; then
		rm -rf build/cuda
		echo "make deps: this release has CUDA headers of version ${version:-?}; vramtrace needs 11080 (11.8) or" \
			"newer. Install a newer toolkit and give CUDA_HOME=folder." >&2
		exit 1
	fi
	echo "CUDA headers $version are in build/cuda/include"
}

# What the cross-compiled recorder is compiled with and run with: libunwind of the other architecture.
take_arm64_libraries() {
	download build/arm64 arm64 main libunwind-dev libunwind8 liblzma5
	for deb in build/arm64/debs/*.deb; do
		dpkg-deb -x "$deb" build/arm64
	done
	rm -rf build/arm64/debs
}

[ -n "${CUDA_INC:-}" ] || take_cuda_headers
[ "${DEPS:-}" != ci ] || [ -d build/arm64/usr ] || take_arm64_libraries
