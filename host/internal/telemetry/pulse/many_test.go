//go:build !race

package pulse_test

// manyEvents is a million.
const manyEvents = 1_000_000
