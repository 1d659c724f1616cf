//go:build !race

package sandbox

const shadow = 1
