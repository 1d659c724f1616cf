package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// TestPhrases: what was packed with the phrases can be read only with the same ones.
func TestPhrases(t *testing.T) {
	const want = "91c2d7cdf85aec4cfdd4c89da89e6644ea88a0c3a3d53c295e8d01df60336a2b"
	if sum := sha256.Sum256(phrasesText); hex.EncodeToString(sum[:]) != want {
		t.Errorf("phrases.txt has the sum %x. It never changes: add a codec with other phrases", sum)
	}
}

// TestShorten: a body comes back as it was, whatever its length, and one that packing would not make
// smaller stays as it is.
func TestShorten(t *testing.T) {
	c := &codec{}
	noise := make([]byte, maxShort)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(noise) // never fails
	event := []byte(`{"event":"task_complete","timestamp":"2026-01-02T03:04:05Z","extra_data":{"caller":"a","response":"","state":"completed"}}`)
	for _, tc := range []struct {
		name string
		raw  []byte
		want byte
	}{
		{"nothing", nil, codecPlain},
		{"shorter than any phrase", event[:minShort-2], codecPlain},
		{"an event", event, codecShort},
		{"the longest that has phrases", bytes.Repeat([]byte("a"), maxShort-1), codecShort},
		{"longer", bytes.Repeat([]byte("a"), maxShort), codecPacked},
		{"noise", noise[:len(noise)-1], codecPlain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body, err := wrap(tc.raw)
			if err != nil {
				t.Fatal(err)
			}
			packed := c.shorten(body)
			if packed[0] != tc.want || len(packed) > len(body) {
				t.Errorf("shorten() has the codec %d and %d bytes of %d, want codec %d", packed[0], len(packed), len(body), tc.want)
			}
			if raw, err := unwrap(packed); err != nil || !bytes.Equal(raw, tc.raw) {
				t.Errorf("unwrap() = %d bytes, %v", len(raw), err)
			}
		})
	}
}

// TestShortenByLevel: hosts that share a store write what is packed with phrases once all of them read it,
// and read either.
func TestShortenByLevel(t *testing.T) {
	level := sharedLevel - 1
	s, err := Open(t.Context(), t.TempDir(), Options{Level: func() int { return level }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 2 {
		level = sharedLevel - 1 + i
		if err := s.Commit(t.Context(), phrasedStep(i)); err != nil {
			t.Fatal(err)
		}
		short := 0
		err := s.walk(t.Context(), "acme", func(items []item) error {
			for _, it := range items {
				if len(it.body) > 0 && it.body[0] == codecShort {
					short++
				}
			}
			return nil
		})
		if err != nil || (short > 0) != (i > 0) {
			t.Errorf("at level %d %d bodies are packed with phrases, %v", level, short, err)
		}
	}
	for i := range 2 {
		task, err := s.Load(context.Background(), phrasedStep(i).Task.Key)
		if err != nil || task.Task.Owner != "user:alice@hive" {
			t.Errorf("task %d is %+v, %v", i, task.Task, err)
		}
	}
}

// TestSealedSize: a page counts what its bodies have in them, not what they take in the file, and a
// file that lies about it is damaged.
func TestSealedSize(t *testing.T) {
	ring, err := keyring.Open(t.TempDir()+"/k", keyring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := ring.Sealer("acme")
	if err != nil {
		t.Fatal(err)
	}
	c := closer{opener{&codec{ring: ring}, placeOf(swarm.TaskKey{Task: "t"})}, sealer}
	at := spot{inEvents, "", 1}
	for _, n := range []int{0, 500, 1 << 20} {
		body, err := wrap(bytes.Repeat([]byte("a"), n))
		if err != nil {
			t.Fatal(err)
		}
		sealed := c.close(c.shorten(body), at)
		if size := contentSize(sealed); size != n || len(sealed) > 100+n/20 {
			t.Errorf("%d bytes are sealed in %d, which says %d", n, len(sealed), size)
		}
		if raw, err := c.open(sealed, at); err != nil || len(raw) != n {
			t.Errorf("open() = %d bytes, %v", len(raw), err)
		}
		if sealed[0] == codecSealed {
			continue
		}
		sealed[1] ^= 1
		if _, err := c.open(sealed, at); !errors.Is(err, errBody) {
			t.Errorf("open() of one with another length = %v", err)
		}
	}
}

// phrasedStep begins a task whose record has phrases.
func phrasedStep(n int) swarm.Mutation {
	key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "acme", Swarm: "hive", Instance: "user:alice"}, Task: fmt.Sprint("t", n)}
	return swarm.Mutation{Task: swarm.Task{
		Key: key, Owner: "user:alice@hive", Contributors: []string{"user:alice@hive"}, State: swarm.StateRunning, MaxSteps: 100, Entrypoint: "supervisor",
	}}
}

// TestOnOwnStack: a panic there is its caller's.
func TestOnOwnStack(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "no such thing") {
			t.Errorf("recovered %v", p)
		}
	}()
	onOwnStack(func() { panic("no such thing") })
	t.Error("it went on")
}
