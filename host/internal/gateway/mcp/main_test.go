package mcp_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

// tests are the tests of the package; Run runs them and drops the connections of their clients.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer http.DefaultClient.CloseIdleConnections()
	return t.M.Run()
}

// No session, stream or call of a test leaves a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }
