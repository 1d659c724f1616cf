//go:build race

package pulse_test

// manyEvents is less than without the race detector, under which each event takes about 10 times as long.
const manyEvents = 100_000
