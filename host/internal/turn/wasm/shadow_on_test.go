//go:build race

package wasm

// shadow is how much more the host's own memory takes under the race detector,
// which keeps a shadow of it; a guest's linear memory has none.
const shadow = 4
