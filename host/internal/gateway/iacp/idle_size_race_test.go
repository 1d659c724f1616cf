//go:build race

package iacp_test

// mostIdleBytes is larger than without the race detector, which keeps more for each value and
// stack.
const mostIdleBytes = 80 << 10
