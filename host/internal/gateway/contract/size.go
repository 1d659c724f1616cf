//go:build !race

package contract

// binaryBytes is the size of the part that is not text.
const binaryBytes = 10 << 20
