#!/bin/sh
# Makes the relocatable package and tries it: `make dist` runs it.
#   dist.sh BUILD NAME TARBALL GLIBC_MAX
# bin/vramtrace finds its libraries in lib/ beside it; libvramtrace.so finds libunwind there. Nothing of the system is
# needed but glibc (GLIBC_MAX or newer).
set -eu
cd "$(dirname "$0")/.."
build=$1 name=$2 tarball=$3 glibc_max=$4
stage=$(dirname "$tarball")/$name
rm -rf "$stage"
mkdir -p "$stage/bin" "$stage/lib" "$stage/include/vramtrace" "$stage/share/man/man1" "$stage/examples/simulated-cuda"

# The libraries that a file needs, and theirs, except glibc's own: one path a line.
needed_by() {
	ldd "$1" | sed -n 's/^\t\([^ ]*\) => \(.*\) (0x.*/\2/p' | grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv)\.so'
}
bundle() {
	for path; do
		install -m 644 "$(realpath "$path")" "$stage/lib/$(basename "$path")"
	done
}

install -m 755 "$build/vramtrace" "$stage/bin/vramtrace"
install -m 755 "$build/libvramtrace.so" "$stage/lib/libvramtrace.so"
unwind=$(${CC:-gcc} -print-file-name=libunwind.so.8)
[ -f "$unwind" ] || { echo "dist: libunwind.so.8 is not installed" >&2; exit 1; }
# shellcheck disable=SC2046
bundle "$unwind" $(needed_by "$unwind") $(needed_by "$build/vramtrace")
for file in "$stage"/lib/*.so*; do
	strip --strip-debug "$file"
	[ "$file" = "$stage/lib/libvramtrace.so" ] || patchelf --set-rpath '$ORIGIN' "$file"
done
strip --strip-debug "$stage/bin/vramtrace"
patchelf --set-rpath '$ORIGIN/../lib' "$stage/bin/vramtrace"

install -m 644 README.md LICENSE "$stage/"
install -m 644 include/vramtrace/vramtrace.h "$stage/include/vramtrace/"
install -m 644 tools/man/*.1 "$stage/share/man/man1/"
find examples -maxdepth 1 -type f -exec install -m 644 {} "$stage/examples/" \;
for program in "$build"/examples/*-shared; do
	install -m 755 "$program" "$stage/examples/$(basename "$program" -shared)"
done
install -m 644 "$build/sim/libcuda.so.1" "$build/sim/libcudart.so.13" "$stage/examples/simulated-cuda/"

sh tests/elf.sh glibc "$glibc_max" "$stage"/bin/* "$stage"/lib/*.so* "$stage"/examples/simulated-cuda/*.so*

tar -c -C "$(dirname "$stage")" --sort=name --owner=0 --group=0 --numeric-owner \
	--mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}" "$name" | gzip -n9 >"$tarball"

# Unpacked elsewhere, with an empty environment: every library comes from the package, and the demo's report appears.
trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT
mkdir "$trial/elsewhere"
tar -xzf "$tarball" -C "$trial/elsewhere"
cd "$trial/elsewhere/$name"
strays=$(needed_by "$PWD/bin/vramtrace" | grep -v "^$PWD/" || true)
[ -z "$strays" ] || { echo "dist: bin/vramtrace takes from the system: $strays" >&2; exit 1; }
env -i LD_LIBRARY_PATH="$PWD/examples/simulated-cuda" bin/vramtrace run -o demo.vt -- examples/demo >report.txt 2>&1 ||
	{ cat report.txt; echo "dist: the demo failed in the unpacked package" >&2; exit 1; }
grep -q 'demo.vt' report.txt || { cat report.txt; echo "dist: no report from the unpacked package" >&2; exit 1; }
cd - >/dev/null
echo "$tarball ($(du -h "$tarball" | cut -f 1))"
