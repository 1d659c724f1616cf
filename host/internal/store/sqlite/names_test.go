package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// wantNoName looks for names in the files of a database.
func wantNoName(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, file := range []string{fileName, fileName + "-wal"} {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, name := range names {
			if n := bytes.Count(content, []byte(name)); n > 0 {
				t.Errorf("%s holds %q %d times", file, name, n)
			}
		}
	}
}

// nameMuch gives a store many tasks of the test's tenant whose names are told
// apart, with submissions and values, and lets retention and agents remove them.
func nameMuch(t *testing.T, s *Store) {
	t.Helper()
	scope := swarm.KVScope{Kind: swarm.KVInstance}
	for i := range 900 {
		st := testStep(fmt.Sprintf("NAME-OF-TASK-%06d", i), 1)
		st.Task.State = swarm.StateCompleted
		st.KV = []swarm.KVWrite{{Scope: scope, Name: fmt.Sprintf("NAME-OF-VALUE-%06d", i), Value: make([]byte, 200)}}
		post := testPost(st.Task.Key.Task, 1)
		post.Key, post.Answer = fmt.Sprintf("NAME-OF-KEY-%06d", i), 1
		_, err := s.Accept(t.Context(), st, post)
		mustDo(t, err)
	}
	for i := range 900 {
		st := testStep("other", int64(i+1))
		st.KV = []swarm.KVWrite{{Scope: scope, Name: fmt.Sprintf("NAME-OF-VALUE-%06d", i), Delete: true}}
		mustDo(t, s.Commit(t.Context(), st))
	}
	far := testTime.Add(24 * 365 * time.Hour)
	p, err := s.Prune(t.Context(), swarm.PruneRule{Records: far, Tasks: far, Submissions: far})
	mustDo(t, err)
	if p.Tasks != 900 || p.Submissions != 900 {
		t.Fatalf("pruned %+v", p)
	}
}

// What was removed before an erasure, in the course of time, has left its names
// in free pages. They go with the tenant.
func TestEraseReachesFreePages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	nameMuch(t, s)
	mustDo(t, s.Erase(t.Context(), testInstance.Tenant))
	wantNoName(t, dir, "NAME-OF-TASK", "NAME-OF-KEY", "NAME-OF-VALUE", "user:alice")
	var blank int
	mustDo(t, openRaw(t, dir).QueryRowContext(t.Context(), "SELECT count(*) FROM events WHERE id < 0").Scan(&blank))
	if blank != 0 {
		t.Errorf("%d blanks are left", blank)
	}
}

// An erasure that was cut short while it overwrote free pages goes on, and leaves
// nothing of that behind.
func TestBlankCutShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	nameMuch(t, s)
	mustDo(t, s.writer.submit(t.Context(), choreNote{chore{choreErase, testInstance.Tenant}}))
	mustDo(t, s.writer.submit(t.Context(), &freePageFill{}))
	mustDo(t, s.Close())
	s = openSealed(t, dir, &keyring.Options{})
	for deadline := time.Now().Add(time.Minute); ; wait() {
		kept, err := s.HasData(t.Context(), testInstance.Tenant)
		mustDo(t, err)
		if !kept {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the erasure does not go on")
		}
	}
	mustDo(t, s.Close())
	wantNoName(t, dir, "NAME-OF-TASK", "NAME-OF-KEY", "NAME-OF-VALUE")
	var blank int
	mustDo(t, openRaw(t, dir).QueryRowContext(t.Context(), "SELECT count(*) FROM events WHERE id < 0").Scan(&blank))
	if blank != 0 {
		t.Errorf("%d blanks are left", blank)
	}
}
