package mcp_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No session, stream or call of a test leaves a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
