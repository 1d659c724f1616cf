// Package isolation owns the self-test of what keeps tenants apart: it starts a
// private host with two tenants, lets one of them try everything against the
// other, and says of each attempt whether it came to nothing. It must not know
// how its report is shown, and nothing of the host but its public API: what it
// proves holds for everybody who has a key. [Run] starts every goroutine and
// waits for all of them.
package isolation
