//go:build !race

package iacp_test

// mostIdleBytes bounds the heap and the stacks of an idle connection of the host.
const mostIdleBytes = 40 << 10
