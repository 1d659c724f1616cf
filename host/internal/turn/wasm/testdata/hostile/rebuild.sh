#!/bin/sh
# Assembles the hostile modules that are written as text.
#
#   rebuild.sh          assemble them, and keep the results beside their sources
#   rebuild.sh check    assemble them, and compare with what is kept
#
# It needs wat2wasm of wabt; WAT2WASM names another one. Types are not checked:
# some modules are wrong on purpose. A module of more than 4 KiB is kept gzipped.
set -eu
LC_ALL=C
export LC_ALL
mode=${1:-keep}
cd "$(dirname "$0")"
: "${WAT2WASM:=wat2wasm}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

if ! command -v "$WAT2WASM" >/dev/null; then
	echo "skipped, $WAT2WASM is not here" >&2
	[ "$mode" = check ] && [ "${SKEP_TOOLCHAINS:-}" != required ]
	exit
fi

# digest FILE: enough of it to notice a slip.
digest() { sha256sum "$1" | cut -c1-16; }

# kept PATH writes the module that is kept for a source.
kept() {
	if [ -e "$1.wasm.gz" ]; then gzip -dc "$1.wasm.gz"; else cat "$1.wasm"; fi
}

keep() {
	rm -f "$1.wasm" "$1.wasm.gz"
	if [ "$(wc -c <"$work/out")" -gt 4096 ]; then
		gzip -9nc "$work/out" >"$1.wasm.gz"
	else
		cp "$work/out" "$1.wasm"
	fi
	echo "$1.wat $(digest "$1.wat") $(digest "$work/out")" >>"$work/BUILT"
}

echo "wat2wasm $("$WAT2WASM" --version)" >"$work/BUILT"
for source in */*.wat; do
	"$WAT2WASM" --enable-all --no-check "$source" -o "$work/out"
	if [ "$mode" != check ]; then
		keep "${source%.wat}"
	elif ! kept "${source%.wat}" | cmp -s - "$work/out"; then
		echo "$source: not what its .wasm was built from; run rebuild.sh" >&2
		failed=1
	fi
done
if [ "$mode" != check ]; then
	mv "$work/BUILT" BUILT
	chmod 644 BUILT
fi
exit $failed
