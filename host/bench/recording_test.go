package main

import (
	"bytes"
	"net/http"
	"path/filepath"
	"regexp"
	"testing"

	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// The recording has what a host writes for the same post, and a replay writes what is
// recorded, all of them sealed: only names, times and measured amounts differ.
func TestRecordingIsWhatAHostWrites(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	url, stop, err := runHost(ctx, benchSwarm, filepath.Join(dir, "data"), 0)
	if err != nil {
		t.Fatal(err)
	}
	err = message(url, trivialBody).expect(http.DefaultClient, "")
	stop()
	if err != nil {
		t.Fatal(err)
	}
	recorder := &recorder{Store: sealedStore(t, t.TempDir()), tasks: map[swarm.TaskKey]*recorded{}}
	if err := runTasks(ctx, recorder, 1); err != nil {
		t.Fatal(err)
	}
	replayed := sealedStore(t, t.TempDir())
	for _, task := range recorder.tasks {
		if err := task.apply(ctx, replayed, 7); err != nil {
			t.Fatal(err)
		}
	}
	want := stored(t, sealedStore(t, filepath.Join(dir, "data")))
	if got := stored(t, recorder.Store); got != want {
		t.Errorf("the recorded tasks have left\n%s\nthe host\n%s", got, want)
	}
	if got := stored(t, replayed); got != want {
		t.Errorf("the replay has left\n%s\nthe host\n%s", got, want)
	}
}

func sealedStore(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := openSealed(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// What differs from run to run.
var masks = []struct{ what, by string }{
	{`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|replay-7`, "ID"},
	{`20\d\d-\d\d-\d\dT[0-9:.]+(Z|\+00:00)`, "TIME"},
	{`"(bytes|nonce|digest|definition)":"[^"]+"`, `"$1":"BYTES"`},
	{`"(cpu|cpu_ms|cpu_ns|fuel)":[0-9.]+`, `"$1":N`},
}

// stored is all that a store has of the tenant, without what differs.
func stored(t *testing.T, s *sqlite.Store) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Export(t.Context(), swarm.DefaultTenant, &b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, m := range masks {
		text = regexp.MustCompile(m.what).ReplaceAllString(text, m.by)
	}
	return text
}
