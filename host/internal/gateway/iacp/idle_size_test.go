//go:build !race

package iacp_test

// mostIdleBytes bounds the heap and the stacks of an idle connection, both sides of it.
const mostIdleBytes = 40 << 10
