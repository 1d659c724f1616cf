package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// TestRESTUsesServerClock: what a host's REST interface does for a time, as the proof that it sends a request on to
// another host, goes by the server's clock.
func TestRESTUsesServerClock(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its host is on a server of its own")
	public := strings.Replace(hosttest.ScriptSwarm, "[swarm]", "[swarm]\npublic = true", 1)
	h := hostsRunning(t, 1, setClockAhead(t, pgtest.Schema(t)), public)[0]
	before := time.Now()
	list, err := h.Client().Swarms(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v, %v", list, err)
	}
	if seen, err := time.Parse(time.RFC3339, list[0].LastSeen); err != nil || seen.Sub(before) < 30*time.Minute {
		t.Errorf("a host whose server is an hour ahead of %v says that it is %v, %v", before, seen, err)
	}
}

// setClockAhead sets the clock of the server an hour ahead for sessions at a DSN, and returns another DSN for them.
func setClockAhead(t *testing.T, dsn string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	const ahead = "CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT pg_catalog.clock_timestamp() + interval '1 hour'$$"
	_, err = conn.Exec(t.Context(), ahead)
	if err := errors.Join(err, conn.Close(context.WithoutCancel(t.Context()))); err != nil {
		t.Fatal(err)
	}
	schema := conn.Config().RuntimeParams["search_path"]
	return strings.Replace(dsn, "search_path="+schema, "search_path="+schema+"%2Cpg_catalog", 1)
}
