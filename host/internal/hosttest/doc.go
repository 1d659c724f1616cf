// Package hosttest owns what the tests of a whole host share: it starts hosts in this
// process and in processes of their own, posts to them, waits, and reads what they
// keep. The packages below it hold the tests, one topic each. Only tests import it. It
// must not know what a test expects.
package hosttest

import (
	"os"
	"testing"

	"skep/host/internal/turn/process"
)

// Main is the TestMain of a package that uses [Run]: the test binary is also the
// process between a host and its subprocesses. The package's own subprocesses run in
// others, which exit if the environment asks for them.
func Main(m *testing.M, others ...func()) {
	if len(os.Args) > 1 && os.Args[1] == process.Command {
		os.Exit(process.Exec(os.Args[2:], os.Stderr))
	}
	for _, serve := range others {
		serve()
	}
	code := m.Run()
	program.remove()
	os.Exit(code)
}
