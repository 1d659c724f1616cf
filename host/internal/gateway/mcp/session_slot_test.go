package mcp

import (
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway/gatewaytest"
)

// A client that leaves while its session is made has no session, and its place is free
// once.
func TestSessionOpenedAfterItsRequest(t *testing.T) {
	t.Parallel()
	all := newSessions(4, true, time.Minute)
	place, ok := all.reserve(gatewaytest.User("a", "alice"))
	if !ok {
		t.Fatal("no place")
	}
	place.release()
	server, _ := mcp.NewInMemoryTransports()
	connected, err := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), server, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := place.open(connected); err == nil || all.count() != 0 || all.taken != 0 || len(all.places)+len(all.tenants) != 0 {
		t.Errorf("opened: %v, with %d sessions and %d places", err, all.count(), all.taken)
	}
	if err := connected.Wait(); err != nil {
		t.Errorf("the session was not closed: %v", err)
	}
}
