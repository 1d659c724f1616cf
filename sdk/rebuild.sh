#!/bin/sh
# Rebuilds the conformance guests that are not written in Go, and the example tally.
#
#   sdk/rebuild.sh          build them, and keep them in spec/conformance/guests
#                           and examples/tally
#   sdk/rebuild.sh check    build them, and compare with what is kept
#
# A language whose tools are missing is skipped, with a word about it; with
# SKEP_TOOLCHAINS=required that is a failure. The tools are clang and wasm-ld;
# cargo and rustc with the target wasm32-unknown-unknown; npm ci in
# sdk/assemblyscript. CLANG, WASM_LD, CARGO, RUSTC and ASC name others. The same
# compiler gives the same bytes; another one must give the same behaviour.
set -eu
LC_ALL=C
export LC_ALL
mode=${1:-keep}
sdk=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$sdk")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: "${CLANG:=clang}" "${WASM_LD:=wasm-ld}" "${CARGO:=cargo}" "${RUSTC:=rustc}" "${ASC:=$sdk/assemblyscript/node_modules/.bin/asc}"
export RUSTC
failed=0

# kept NAME prints where its module and the list BUILT lie.
kept() {
	case $1 in
	tally) echo "$root/examples/tally" ;;
	*) echo "$root/spec/conformance/guests" ;;
	esac
}

sources() {
	cd "$sdk"
	case $1 in
	c) ls c/skep.h c/conformance/*.c ;;
	rust) ls rust/Cargo.toml rust/conformance/*.rs rust/src/*.rs ;;
	assemblyscript) ls assemblyscript/asconfig.json assemblyscript/assembly/*.ts assemblyscript/conformance/*.ts ;;
	tally) ls ../examples/tally/*.[ch] ;;
	esac
}

digest() { (sources "$1" | while read -r f; do cat "$sdk/$f"; done) | sha256sum | cut -d' ' -f1; }

# tools NAME prints which compiler there is, or fails.
tools() {
	case $1 in
	c | tally) command -v "$WASM_LD" >/dev/null && "$CLANG" --version 2>/dev/null | head -n 1 ;;
	rust)
		dir=$("$RUSTC" --print target-libdir --target wasm32-unknown-unknown 2>/dev/null) || return 1
		ls "$dir"/libstd-*.rlib >/dev/null 2>&1 && command -v "$CARGO" >/dev/null && "$RUSTC" --version
		;;
	assemblyscript) command -v "$ASC" >/dev/null && echo "asc $("$ASC" --version 2>/dev/null)" ;;
	esac
}

build() {
	case $1 in
	c)
		make -s -B -C "$sdk/c" CLANG="$CLANG" WASM_LD="$WASM_LD" build/conform.wasm
		mv "$sdk/c/build/conform.wasm" "$work/c.wasm"
		;;
	rust)
		(cd "$sdk/rust" && CARGO_TARGET_DIR=$work/target "$CARGO" build --quiet --offline --release \
			--target wasm32-unknown-unknown --example conform)
		mv "$work/target/wasm32-unknown-unknown/release/examples/conform.wasm" "$work/rust.wasm"
		;;
	assemblyscript)
		(cd "$sdk/assemblyscript" && "$ASC" conformance/conform.ts --config asconfig.json --outFile "$work/assemblyscript.wasm")
		;;
	tally) # in two steps: clang as a linker driver would run whatever wasm-opt it finds
		"$CLANG" --target=wasm32 -Oz -ffreestanding -mbulk-memory -c -o "$work/tally.o" "$root/examples/tally/tally.c"
		"$WASM_LD" --no-entry --strip-all -o "$work/tally.wasm" "$work/tally.o"
		;;
	esac
}

# behaves NAME tries the fresh module.
behaves() {
	case $1 in
	tally) (cd "$root" && bin/skep agent check "$work/tally.wasm") ;;
	*) (cd "$root" && SKEP_CONFORM_GUESTS=$work go test -count=1 -run "TestGuestsConform/$1\$" ./host/internal/conform) ;;
	esac
}

# compare NAME TOOLS looks whether the fresh module is the kept one.
compare() {
	if cmp -s "$work/$1.wasm" "$(kept "$1")/$1.wasm"; then
		echo "$1: the same bytes ($2)"
	elif grep -q "^$1 .* $2\$" "$(kept "$1")/BUILT"; then
		echo "$1: not what $2 makes of the sources; run sdk/rebuild.sh" >&2
		failed=1
	elif behaves "$1"; then
		echo "$1: other bytes, the same behaviour ($2)"
	else
		failed=1
	fi
}

for name in assemblyscript c rust tally; do
	dir=$(kept $name)
	if ! with=$(tools $name); then
		echo "$name: skipped, its compiler is not here" >&2
		[ "${SKEP_TOOLCHAINS:-}" = required ] && failed=1
		[ "$mode" = check ] || grep "^$name " "$dir/BUILT" >"$work/$name.BUILT" || true
		continue
	fi
	build $name
	if [ "$mode" = check ]; then
		compare $name "$with"
		continue
	fi
	chmod 644 "$work/$name.wasm"
	mv "$work/$name.wasm" "$dir/$name.wasm"
	echo "$name $(sha256sum "$dir/$name.wasm" | cut -d' ' -f1) $(digest $name) $with" >"$work/$name.BUILT"
	echo "$name: $(wc -c <"$dir/$name.wasm") bytes ($with)"
done
if [ "$mode" != check ]; then
	(cd "$work" && cat assemblyscript.BUILT c.BUILT rust.BUILT) >"$(kept c)/BUILT"
	cat "$work/tally.BUILT" >"$(kept tally)/BUILT"
fi
exit $failed
