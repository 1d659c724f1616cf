package keyring

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
)

// Who reads a keyring sees a whole one, whatever becomes of it meanwhile.
func TestReadBesideChanges(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	r := mustOpen(t, path, nil)
	kept := mustSeal(t, r, "acme", "kept")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprint("t", i)
			if _, err := r.Sealer(name); err != nil {
				t.Error(err)
			}
			if err := r.Destroy(name); err != nil {
				t.Error(err)
			}
		}
	})
	for range 100 {
		look, err := Open(path, Options{ReadOnly: true})
		if err != nil {
			t.Error(err)
			break
		}
		wantText(t, look, kept, "kept")
	}
	close(stop)
	wg.Wait()
}

// Tenants that need a key at once share the way to the disk, and each has its
// own.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	r := mustOpen(t, path, nil)
	mustSeal(t, r, "first", "text")
	const tenants = 200
	// While the disk is taken, all of them come.
	r.disk.Lock()
	var wg sync.WaitGroup
	sealed := make([][]byte, tenants)
	for i := range tenants {
		wg.Go(func() {
			s, err := r.Sealer(fmt.Sprint("t", i))
			if err != nil {
				t.Error(err)
				return
			}
			sealed[i] = s.Seal(nil, []byte("text"), []byte("place"))
		})
	}
	for waiting := 0; waiting < tenants; {
		r.mu.RLock()
		if r.next != nil {
			waiting = len(r.next.wanted)
		}
		r.mu.RUnlock()
	}
	r.disk.Unlock()
	wg.Wait()
	if lines := bytes.Count(mustRead(t, path), []byte("\n")); lines != 3 {
		t.Errorf("the file has %d lines, want a header, the first key and those of all others", lines)
	}
	again := mustOpen(t, path, nil)
	for _, s := range sealed {
		wantText(t, again, s, "text")
	}
}

// BenchmarkNewTenant measures a tenant's first key in a small and a large ring.
func BenchmarkNewTenant(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r, err := Open(filepath.Join(b.TempDir(), "k"), Options{})
			if err != nil {
				b.Fatal(err)
			}
			var wg sync.WaitGroup
			for c := range 16 {
				wg.Go(func() {
					for i := c; i < n; i += 16 {
						if _, err := r.Sealer(fmt.Sprint("t", i)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			for i := 0; b.Loop(); i++ {
				if _, err := r.Sealer(fmt.Sprint("new", i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
