package sqlite

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// putBlobs gives a tenant a task with blobs.
func putBlobs(t *testing.T, s *Store, tenant string, data ...string) {
	t.Helper()
	st := testStep(fmt.Sprint("t", len(data)), 1)
	st.Task.Key.Tenant = tenant
	for _, d := range data {
		st.Blobs = append(st.Blobs, swarm.Blob{ID: sha256.Sum256([]byte(d)), Data: []byte(d)})
	}
	mustDo(t, s.Commit(t.Context(), st))
}

func blobNames(t *testing.T, dir string) (names [][]byte) {
	t.Helper()
	rows, err := openRaw(t, dir).QueryContext(t.Context(), "SELECT name FROM blobs ORDER BY bid")
	mustDo(t, err)
	defer rows.Close()
	for rows.Next() {
		var name []byte
		mustDo(t, rows.Scan(&name))
		names = append(names, name)
	}
	return names
}

// A write that waits for a tenant's first key, or for the key of its first blob, has given its
// caller's processor back.
func TestFirstKeysAreMadeWithoutProcessor(t *testing.T) {
	t.Parallel()
	s := openSealed(t, t.TempDir(), &keyring.Options{})
	const tenant = "fresh"
	step := testStep("first", 1)
	step.Task.Key.Tenant = tenant
	calls := 0
	step.Encoded = func() {
		if calls++; calls == 1 && s.codec.ring.HasKey(tenant) {
			t.Error("the tenant has a key before the processor is given back")
		}
	}
	mustDo(t, s.Commit(t.Context(), step))
	step = testStep("second", 1)
	step.Task.Key.Tenant = tenant
	step.Blobs = []swarm.Blob{{ID: sha256.Sum256([]byte(planted)), Data: []byte(planted)}}
	calls = 0
	step.Encoded = func() {
		if calls++; calls > 1 {
			return
		}
		if _, err := s.namer(t.Context(), tenant); !errors.Is(err, swarm.ErrNotFound) {
			t.Errorf("the tenant has a key for blobs before the processor is given back: %v", err)
		}
	}
	mustDo(t, s.Commit(t.Context(), step))
	if calls == 0 {
		t.Error("the processor is never given back")
	}
}

// The file does not show which blobs are in it to one who tries what might be:
// not by the address, and not by what another tenant has.
func TestBlobNamesTellNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	for _, tenant := range []string{"acme", "other"} {
		putBlobs(t, s, tenant, planted)
	}
	names := blobNames(t, dir)
	if len(names) != 2 || bytes.Equal(names[0], names[1]) {
		t.Errorf("names %x", names)
	}
	id := swarm.BlobID(sha256.Sum256([]byte(planted)))
	mustDo(t, s.Close())
	for _, text := range []string{planted, string(id[:]), id.String()} {
		if found := holders(t, dir, text); found != nil {
			t.Errorf("%q is in %q", text, found)
		}
	}
}

// A new key changes neither what blobs are called nor what they are.
func TestBlobsOutliveKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	putBlobs(t, s, "acme", "plain")
	mustDo(t, s.Close())
	s = openSealed(t, dir, &keyring.Options{})
	s.chores.stopped.Wait()
	putBlobs(t, s, "acme", "plain", "sealed")
	names := blobNames(t, dir)
	mustDo(t, s.Rotate(t.Context(), "acme"))
	putBlobs(t, s, "acme", "plain", "sealed", "new")
	after := blobNames(t, dir)
	if len(names) != 2 || len(after) != 3 || !bytes.Equal(after[0], names[0]) || !bytes.Equal(after[1], names[1]) {
		t.Errorf("names were %x and are %x", names, after)
	}
	for _, data := range []string{"plain", "sealed", "new"} {
		if got, err := s.Blob(t.Context(), "acme", sha256.Sum256([]byte(data))); string(got) != data || err != nil {
			t.Errorf("%q: %q, %v", data, got, err)
		}
	}
	wantCounted(t, s)
}

// A blob opens in its own place only, and says so where the file was changed.
func TestBlobsThatWereExchanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	putBlobs(t, s, "acme", "one", "two")
	putBlobs(t, s, "other", "one")
	exec(t, openRaw(t, dir), "UPDATE blobs SET body = (SELECT body FROM blobs b WHERE b.bid = 3) WHERE bid = 1")
	if got, err := s.Blob(t.Context(), "acme", sha256.Sum256([]byte("one"))); !errors.Is(err, errBody) {
		t.Errorf("%q, %v", got, err)
	}
	exec(t, openRaw(t, dir), "UPDATE namers SET body = (SELECT body FROM namers n WHERE n.tenant <> namers.tenant)")
	if got, err := s.Blob(t.Context(), "acme", sha256.Sum256([]byte("two"))); !errors.Is(err, errBody) {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Erase(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
}
