//go:build race

package wasm

// slowdown is what the race detector costs a compiler: only test binaries have
// it, and their children are held to limits of the same proportion.
const slowdown = 10
