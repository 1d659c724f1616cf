package sqlite

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/state"
	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// A damaged record is missing in a list, which goes on behind it, and the log names it.
func TestListsWithoutDamagedRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bytes.Buffer
	s, err := Open(t.Context(), dir, Options{Keyring: &keyring.Options{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := swarm.InstanceKey{Tenant: "acme", Swarm: "hive", Instance: "user:a"}
	for i := range 5 {
		m := swarm.Mutation{Task: swarm.Task{
			Key: swarm.TaskKey{InstanceKey: key, Task: fmt.Sprint("t", i)}, Owner: "user:a@hive", State: swarm.StateCompleted,
			Created: testTime.Add(time.Duration(i) * time.Second), Updated: testTime,
		}}
		mustDo(t, s.Commit(t.Context(), m))
		_, err := s.GatewayState().Put(t.Context(), state.Record{Key: testState("acme", fmt.Sprint("r", i)), Value: []byte("v")})
		mustDo(t, err)
	}
	raw := openRaw(t, dir)
	exec(t, raw, "UPDATE tasks SET body = substr(body, 1, length(body) - 4) WHERE tid IN (2, 4, 5)")
	exec(t, raw, "UPDATE gateway_state SET value = substr(value, 1, length(value) - 4) WHERE CAST(name AS TEXT) IN ('r0', 'r1', 'r3')")

	var found []string
	before := time.Time{}
	for {
		page, err := s.Tasks(t.Context(), key, before, 1)
		mustDo(t, err)
		if len(page) == 0 {
			break
		}
		found, before = append(found, page[0].Key.Task), page[0].Created
	}
	all, err := s.Tasks(t.Context(), key, time.Time{}, 10)
	mustDo(t, err)
	if want := []string{"t2", "t0"}; !slices.Equal(found, want) || len(all) != 2 {
		t.Errorf("tasks %q and %d together, want %q", found, len(all), want)
	}
	found = nil
	page, err := s.GatewayState().List(t.Context(), testState("acme", ""), state.Key{}, 2)
	if mustDo(t, err); len(page) != 2 {
		t.Errorf("a page has %d records of 2: it looks like the last", len(page))
	}
	for after := (state.Key{}); ; {
		page, err := s.GatewayState().List(t.Context(), testState("acme", ""), after, 2)
		mustDo(t, err)
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			found, after = append(found, r.Key.Name+string(r.Value)), r.Key
		}
	}
	if want := []string{"r2v", "r4v"}; !slices.Equal(found, want) {
		t.Errorf("records %q, want %q", found, want)
	}
	for _, want := range []string{"acme user:a t4", `\"r3\" of realm`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
}
