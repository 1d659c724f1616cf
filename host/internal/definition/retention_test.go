package definition

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/swarm"
	"skep/host/internal/turn/process"
	"skep/host/internal/turn/wasm/binary"
)

func noPrograms() *programs { return newPrograms(process.Options{}, "off") }

func newTestModules(t *testing.T) *moduleStore {
	t.Helper()
	s, err := newModuleStore(t.TempDir(), nil, binary.DefaultCaps(), noPrograms())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustKeep(t *testing.T, s *moduleStore, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := s.save(digestOf([]byte(text)), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestModuleCopies(t *testing.T) {
	t.Parallel()
	s := newTestModules(t)
	mustKeep(t, s, "one", "two", "one")
	if got, err := s.dir.Read(digestOf([]byte("one")), binary.DefaultCaps()); string(got) != "one" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	path := s.dir.path(digestOf([]byte("two")))
	for name, want := range map[string]os.FileMode{string(s.dir): 0o700, path: 0o400} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	for digest, want := range map[string]string{
		digestOf([]byte("three")): "does not exist", "../lock": "not the digest", "": "not the digest", strings.ToUpper(digestOf([]byte("one"))): "not the digest",
	} {
		if _, err := s.Module(t.Context(), digest); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", digest, err, want)
		}
	}
}

func TestDamagedModuleCopy(t *testing.T) {
	t.Parallel()
	s := newTestModules(t)
	mustKeep(t, s, "one")
	path := s.dir.path(digestOf([]byte("one")))
	overwrite(t, path, "two")
	if m, err := s.Module(t.Context(), digestOf([]byte("one"))); m != nil || err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("%v, %v", m, err)
	}
	overwrite(t, path, "cut")
	overwrite(t, path, "short of it")
	mustKeep(t, s, "one")
	if got, err := s.dir.Read(digestOf([]byte("one")), binary.DefaultCaps()); string(got) != "one" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Chmod(path, 0o646); err != nil {
		t.Fatal(err)
	}
	if _, err := s.dir.Read(digestOf([]byte("one")), binary.DefaultCaps()); err == nil || !strings.Contains(err.Error(), "others could replace") {
		t.Errorf("%v", err)
	}
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o400); err != nil {
		t.Fatal(err)
	}
}

func TestModuleDirectory(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	dir := string(DataModules(data))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "x.part")
	if err := os.WriteFile(left, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := newModuleStore(data, nil, binary.DefaultCaps(), noPrograms()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was half-written stays: %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := newModuleStore(data, nil, binary.DefaultCaps(), noPrograms()); err == nil || !strings.Contains(err.Error(), "others could replace") {
		t.Errorf("%v", err)
	}
}

// testRetention has a host's modules, which were left by earlier hosts.
func testRetention(t *testing.T, texts ...string) *Retention {
	old := newTestModules(t)
	mustKeep(t, old, texts...)
	return &Retention{
		modules: &moduleStore{dir: old.dir, used: map[string]bool{}}, now: time.Now, log: slog.New(slog.DiscardHandler),
		prune: func(context.Context, time.Time, time.Time) (swarm.Pruned, error) { return swarm.Pruned{}, nil },
		named: func(context.Context) (map[string]bool, error) {
			return map[string]bool{digestOf([]byte("named")): true}, nil
		},
	}
}

func (r *Retention) left(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir(string(r.modules.dir))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestUnnamedModulesGo(t *testing.T) {
	t.Parallel()
	r := testRetention(t, "named", "used", "old", "older")
	mustKeep(t, r.modules, "used")
	if err := os.WriteFile(filepath.Join(string(r.modules.dir), "README.wasm"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !r.round(t.Context(), time.Now()) || r.left(t) != 3 || r.dropped.Load() != 2 {
		t.Errorf("%d left, %d dropped", r.left(t), r.dropped.Load())
	}
	for _, text := range []string{"named", "used"} {
		if _, err := r.modules.dir.Read(digestOf([]byte(text)), binary.DefaultCaps()); err != nil {
			t.Error(err)
		}
	}
	// Nothing has changed, so nothing is read again.
	r.named = func(context.Context) (map[string]bool, error) { return nil, errors.New("read again") }
	if !r.round(t.Context(), time.Now()) {
		t.Error("the round failed")
	}
	r.prune = func(context.Context, time.Time, time.Time) (swarm.Pruned, error) {
		return swarm.Pruned{Records: 1}, nil
	}
	if r.round(t.Context(), time.Now()) {
		t.Error("the records were not read again")
	}
	if got, want := r.Stats(), (RetentionStats{Records: 1, Modules: 2}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// An erased or damaged record must not cost a module that others name.
func TestModulesStayWhenRecordsCannotBeRead(t *testing.T) {
	t.Parallel()
	r := testRetention(t, "old")
	r.named = func(context.Context) (map[string]bool, error) { return nil, errors.New("damaged") }
	if r.round(t.Context(), time.Now()) || r.left(t) != 1 {
		t.Errorf("%d left", r.left(t))
	}
}

func TestRetentionRounds(t *testing.T) {
	t.Parallel()
	r := testRetention(t)
	r.records, r.tasks = time.Hour, 0
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begun := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		r.prune = func(ctx context.Context, records, tasks time.Time) (swarm.Pruned, error) {
			if !tasks.IsZero() || time.Since(records) != time.Hour {
				t.Errorf("prunes records before %v, tasks before %v", records, tasks)
			}
			at = append(at, time.Since(begun))
			switch len(at) {
			case 1: // more than a round takes
				<-ctx.Done()
				return swarm.Pruned{Records: 5}, context.Cause(ctx)
			case 2:
				return swarm.Pruned{}, errors.New("the disk is full")
			case 5:
				cancel()
			}
			return swarm.Pruned{}, nil
		}
		r.Run(ctx)
		// The start, after a round cut short, after an error, and at leisure.
		for i, want := range []time.Duration{time.Minute, time.Minute + retainFor, time.Minute, 10 * time.Minute, 10 * time.Minute} {
			last := time.Duration(0)
			if i > 0 {
				last = at[i-1]
			}
			if gap := at[i] - last; gap < want*8/10 || gap > want*12/10 {
				t.Errorf("round %d begins %v after the one before, want about %v", i+1, gap, want)
			}
		}
	})
	if r.prunedRecords.Load() != 5 {
		t.Errorf("%d records", r.prunedRecords.Load())
	}
}
