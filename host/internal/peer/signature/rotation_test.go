package signature

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A new key is published for a day before it signs, and the one before stays published. A
// promotion that was cut short is repeated.
func TestRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gateways", "a2a.key")
	if _, err := ReadRotation(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	now := time.Now()
	first, made, err := OpenRotation(path, now)
	if err != nil || !made || first.Next != nil || first.Old != nil {
		t.Fatalf("%+v, %v, %v", first, made, err)
	}
	rotated, err := Rotate(path, now)
	if err != nil || rotated.Next == nil || rotated.Current.PublicKey() != first.Current.PublicKey() || rotated.NextFrom.Before(now.Add(Overlap-time.Minute)) {
		t.Fatalf("%+v, %v", rotated, err)
	}
	if _, err := Rotate(path, now); !errors.Is(err, ErrRotating) {
		t.Errorf("a second rotation: %v", err)
	}
	early, made, err := OpenRotation(path, rotated.NextFrom.Add(-time.Second))
	if err != nil || made || early.Current.PublicKey() != first.Current.PublicKey() {
		t.Errorf("before its time: %+v, %v", early, err)
	}
	if err := os.Link(path, path+oldSuffix); err != nil { // a crash in the middle
		t.Fatal(err)
	}
	due, _, err := OpenRotation(path, rotated.NextFrom)
	if err != nil || due.Next != nil || due.Old == nil || due.Current.PublicKey() != rotated.Next.PublicKey() || due.Old.PublicKey() != first.Current.PublicKey() {
		t.Errorf("at its time: %+v, %v", due, err)
	}
	if err := os.Chmod(path+oldSuffix, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenRotation(path, now); err == nil {
		t.Error("a key that others could read is taken")
	}
}

// Of processes that put a new key in force at once, one does; the old key stays published.
func TestPromoteAtOnce(t *testing.T) {
	t.Parallel()
	for range 50 {
		path := filepath.Join(t.TempDir(), "a2a.key")
		first, _, err := OpenRotation(path, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		rotated, err := Rotate(path, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				r, _, err := OpenRotation(path, rotated.NextFrom)
				if err != nil || r.Next != nil || r.Current.PublicKey() != rotated.Next.PublicKey() || r.Old == nil || r.Old.PublicKey() != first.Current.PublicKey() {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
		all.Wait()
	}
}
