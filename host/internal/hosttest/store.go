package hosttest

import (
	"bytes"
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"skep/abi"
	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Replay runs the turn again on its record.
func Replay(t *testing.T, file, data string) {
	t.Helper()
	cfg, err := config.Load(file, config.Options{BundleDir: Bundles()})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store = StoreOf(t, data, cfg.Store)
	turns, err := datadir.Replay(t.Context(), datadir.ReplayOptions{Config: cfg, DataDir: data, CacheDir: guests.CacheDir(t), Task: "t"})
	if err != nil || len(turns) == 0 {
		t.Fatal(turns, err)
	}
	for _, turn := range turns {
		if turn.Difference != "" {
			t.Errorf("%+v", turn)
		}
	}
}

// Files returns the content of all files in the data directory.
func (r *Host) Files(t *testing.T) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(r.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary one
		}
		all = append(all, text...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// reader opens the host's store to read, while it runs.
func (r *Host) reader(t *testing.T) *sqlite.Reader {
	t.Helper()
	s, err := datadir.OpenReader(t.Context(), r.Data, r.Config.Store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Recorded returns the inputs of a task's turns and the answers to their ops, from the
// journal.
func (r *Host) Recorded(t *testing.T, task string) (all []byte) {
	t.Helper()
	s := r.reader(t)
	keys, err := s.Find(t.Context(), task, 2)
	if err != nil || len(keys) != 1 {
		t.Fatalf("task %s: %v, %v", task, keys, err)
	}
	for n := int64(1); ; n++ {
		rec, err := s.Record(t.Context(), keys[0], n)
		if errors.Is(err, swarm.ErrNotFound) && n > 1 {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec.Header.Input...)
		for _, e := range rec.Entries {
			all = fmt.Appendf(all, "\n%s %v", e.Answer, e.Err)
		}
	}
}

// Exported returns all that the store keeps of the default tenant, unsealed.
func (r *Host) Exported(t *testing.T) []byte {
	t.Helper()
	var kept bytes.Buffer
	if err := r.reader(t).Export(t.Context(), swarm.DefaultTenant, &kept); err != nil {
		t.Fatal(err)
	}
	return kept.Bytes()
}

// TaskParts reads what a host has of a task, while it runs.
func TaskParts(t testing.TB, data, task string) (parts []swarm.Snapshot, err error) {
	ctx := t.Context()
	r, err := datadir.OpenReader(ctx, data, StoreOf(t, data, config.Store{}))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	keys, err := r.Find(ctx, task, 10)
	for _, key := range keys {
		part, broken := r.Load(ctx, key)
		parts, err = append(parts, part), cmp.Or(err, broken)
	}
	return parts, err
}

// CountTurns counts the turns that a host has recorded of a task, while it runs.
func CountTurns(t testing.TB, data, task string) (n int64, err error) {
	ctx := t.Context()
	r, err := datadir.OpenReader(ctx, data, StoreOf(t, data, config.Store{}))
	if err != nil {
		return 0, err
	}
	defer r.Close()
	keys, err := r.Find(ctx, task, 2)
	if err == nil && len(keys) != 1 {
		err = fmt.Errorf("%d tasks are called %s", len(keys), task)
	}
	for err == nil {
		if _, err = r.Record(ctx, keys[0], n+1); err == nil {
			n++
		}
	}
	if errors.Is(err, swarm.ErrNotFound) {
		err = nil
	}
	return n, err
}

// StoreVersion returns a function whose result changes with each transaction that a running
// host commits to its store (https://sqlite.org/pragma.html#pragma_data_version). On a server it is the
// number of the host's write groups.
func StoreVersion(t *testing.T, data string) func() int64 {
	t.Helper()
	if OnServer() {
		return pgtest.Number(t, StoreOf(t, data, config.Store{}).DSN.Reveal(), "SELECT sum(seq)::bigint FROM hosts")
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "skep.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1) // a version counts for its connection
	return func() (version int64) {
		if err := db.QueryRow("PRAGMA data_version").Scan(&version); err != nil {
			t.Error(err)
		}
		return version
	}
}

// OpenStore opens the store of a host that does not run. The caller closes it.
func OpenStore(t *testing.T, data string) *sqlite.Store {
	t.Helper()
	s, err := datadir.OpenStore(t.Context(), data, StoreOf(t, data, config.Store{}), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// StoredMail reads what a host's agents got in a task, and what of it was given up.
func StoredMail(t *testing.T, s *sqlite.Store, name, task string) (got []string) {
	t.Helper()
	instances, err := s.Instances(t.Context(), swarm.DefaultTenant, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range instances {
		snap, err := s.Load(t.Context(), swarm.TaskKey{InstanceKey: key, Task: task})
		if errors.Is(err, swarm.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for agent := range snap.Task.History {
			got = append(got, receivedMail(t, s, snap.Task.Key, agent)...)
		}
	}
	dead, err := s.DeadLetters(t.Context(), swarm.DefaultTenant, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range dead {
		if l.Task.Task == task {
			got = append(got, fmt.Sprintf("%s: dead letter to %s: %s", name, l.Peer, l.Dead.Reason))
		}
	}
	slices.Sort(got)
	return got
}

func receivedMail(t *testing.T, s *sqlite.Store, key swarm.TaskKey, agent string) (got []string) {
	t.Helper()
	entries, err := s.History(t.Context(), key, agent, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if e.Kind != abi.KindIn {
			continue
		}
		m, err := mail.ParseMessage(e.Message)
		if err != nil {
			t.Fatal(err)
		}
		if seen[m.ID] {
			t.Errorf("task %s: message %s stands twice in the history of %s in %s", key.Task, m.ID, agent, key.Swarm)
		}
		seen[m.ID] = true
		got = append(got, fmt.Sprintf("%s.%s %s [%s] from %s: %s", key.Swarm, agent, m.Type, m.Payload.Subject, m.Payload.Sender.Name, m.Payload.Body))
	}
	return got
}
