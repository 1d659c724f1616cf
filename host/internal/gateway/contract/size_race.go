//go:build race

package contract

// binaryBytes is the size of the part that is not text. Readers of JSON take a minute for
// 10 MiB with the race detector on a busy machine; the tests without it send 10 MiB.
const binaryBytes = 1 << 20
