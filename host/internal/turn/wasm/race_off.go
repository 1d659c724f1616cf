//go:build !race

package wasm

// slowdown is the factor on time and memory of an ordinary build.
const slowdown = 1
