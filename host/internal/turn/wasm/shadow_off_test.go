//go:build !race

package wasm

const shadow = 1
