//go:build !race

package sandbox

// slowdown is that of an ordinary build.
const slowdown = 1
