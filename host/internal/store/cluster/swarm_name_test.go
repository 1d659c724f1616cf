package cluster

import (
	"errors"
	"regexp"
	"testing"

	"skep/host/internal/store/pgtest"
)

// tryJoin joins a host of a swarm, and ends it.
func tryJoin(t *testing.T, dsn, swarm string, hid int64) error {
	t.Helper()
	m, err := Join(t.Context(), Options{DSN: dsn, HID: hid, Swarm: swarm, Version: "2"})
	if err == nil {
		err = m.Close()
	}
	return err
}

// TestSwarmName: a host of another swarm is refused before it is in the roster, also one of another version, and where
// no host is alive. Its error has the statement by which the swarm is renamed; then hosts of the old name are refused.
func TestSwarmName(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	joinHost(t, dsn) // it gives no sign of life
	err := tryJoin(t, dsn, "b's", 100)
	if err == nil {
		t.Fatal("a host of another swarm has joined")
	}
	if err := tryJoin(t, dsn, testSwarm, 101); err != nil {
		t.Error(err)
	}
	s := session{dsn: dsn}
	refused, listErr := s.change(t.Context(), "SELECT FROM roster WHERE hid = 100")
	if err := errors.Join(listErr, s.close()); err != nil || refused != 0 {
		t.Errorf("a host that was refused is in the roster %d times: %v", refused, err)
	}
	change(t, dsn, regexp.MustCompile("UPDATE .*").FindString(err.Error()))
	if err := tryJoin(t, dsn, "b's", 102); err != nil {
		t.Errorf("after the swarm was renamed: %v", err)
	}
	if err := tryJoin(t, dsn, testSwarm, 103); err == nil {
		t.Error("a host of the old name has joined")
	}
}
