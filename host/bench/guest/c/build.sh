#!/bin/sh
# Builds the C guests and records what they were built from. CLANG and WASM_LD
# name other tools. A machine without them uses the modules that are kept here.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")"
: "${CLANG:=clang}" "${WASM_LD:=wasm-ld}"
: >BUILT
for name in agent extism; do
	"$CLANG" --target=wasm32 -O2 -mbulk-memory -ffreestanding -Wall -Wextra -c -o "$name.o" "$name.c"
	"$WASM_LD" --no-entry --strip-all -z stack-size=65536 -o "$name.wasm" "$name.o"
	rm "$name.o"
	echo "$name $(sha256sum <"$name.wasm" | cut -d' ' -f1) $(cat work.h "$name.c" | sha256sum | cut -d' ' -f1)" >>BUILT
done
