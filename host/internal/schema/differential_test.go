package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/schema"
	"skep/spec/conformance"
	"skep/spec/mail"
)

// FuzzModelAgainstSchema: package mail takes a document exactly if the schemas do,
// and what it read it writes again, unchanged and valid (R-001, R-002, S-01).
func FuzzModelAgainstSchema(f *testing.F) {
	for _, load := range []func() ([]conformance.Vector, error){conformance.Messages, conformance.Interswarm} {
		all, err := load()
		if err != nil {
			f.Fatal(err)
		}
		for _, v := range all {
			f.Add(v.Raw)
		}
	}
	s := load(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		agreeOnMessage(t, s, raw)
		agreeOnInterswarm(t, s, raw)
	})
}

// FuzzChoicesAgainstSchema is the same for documents that a fuzzer seldom finds,
// since they are JSON and nearly right.
func FuzzChoicesAgainstSchema(f *testing.F) {
	f.Add([]byte{})
	for i := range 48 {
		f.Add(dice(uint64(i), 96))
	}
	s := load(f)
	f.Fuzz(func(t *testing.T, decisions []byte) {
		agreeOnMessage(t, s, (&choices{decisions}).message())
		agreeOnInterswarm(t, s, (&choices{decisions}).interswarm())
	})
}

// TestModelAgainstSchema runs a corpus of the above in every test run, and sees to
// it that a good part of it is valid.
func TestModelAgainstSchema(t *testing.T) {
	t.Parallel()
	s := load(t)
	const rounds = 2000
	valid := 0
	for i := range rounds {
		raw, wrap := sparse(uint64(i))
		agreeOnMessage(t, s, raw)
		agreeOnInterswarm(t, s, wrap)
		if s.Message(raw) == nil {
			valid++
		}
	}
	if valid < rounds/10 || valid > rounds*9/10 {
		t.Errorf("%d of %d messages are valid, want a mixture", valid, rounds)
	}
}

// dice returns n bytes that depend on seed alone.
func dice(seed uint64, n int) []byte {
	b := make([]byte, n)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// sparse returns documents in which most decisions are the valid one; how many
// depends on the seed.
func sparse(seed uint64) (message, interswarm []byte) {
	b := dice(seed, 96)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		if rnd.IntN(2+int(seed%16)) > 0 {
			b[i] = 0
		}
	}
	return (&choices{b}).message(), (&choices{b}).interswarm()
}

func agreeOnMessage(t *testing.T, s *schema.Set, raw []byte) {
	t.Helper()
	m, err := mail.ParseMessage(raw)
	agree(t, raw, m, err, mail.ParseMessage, s.Message)
}

func agreeOnInterswarm(t *testing.T, s *schema.Set, raw []byte) {
	t.Helper()
	w, err := mail.ParseInterswarm(raw)
	agree(t, raw, w, err, mail.ParseInterswarm, s.Interswarm)
}

func agree[T interface {
	AppendJSON([]byte) ([]byte, error)
}](t *testing.T, raw []byte, v T, modelErr error, parse func([]byte) (T, error), judge func([]byte) error) {
	t.Helper()
	schemaErr := judge(raw)
	if (modelErr == nil) != (schemaErr == nil) {
		// The length of lists is a limit of the model, not a matter of shape.
		if errors.Is(modelErr, mail.ErrLimit) {
			return
		}
		t.Fatalf("model says %v, schema says %v\n%s", modelErr, schemaErr, raw)
	}
	if modelErr != nil {
		return
	}
	written, err := v.AppendJSON(nil)
	if err != nil {
		t.Fatalf("cannot write what was read: %v\n%s", err, raw)
	}
	if err := judge(written); err != nil {
		t.Fatalf("what was written is invalid: %v\n%s\n%s", err, raw, written)
	}
	again, err := parse(written)
	if err != nil {
		t.Fatalf("cannot read what was written: %v\n%s", err, written)
	}
	if diff := cmp.Diff(v, again); diff != "" {
		t.Fatalf("read after write (-first +again):\n%s", diff)
	}
	if diff := cmp.Diff(meaning(t, raw), meaning(t, written)); diff != "" {
		t.Fatalf("written with another meaning (-read +written):\n%s", diff)
	}
}

// meaning decodes a valid document with the standard library and takes out what is
// the same as nothing: empty optional fields.
func meaning(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"message", "payload"} {
		if p, ok := doc[k].(map[string]any); ok {
			dropEmpty(p, "sender_swarm", "recipient_swarm", "recipient_swarms")
		}
	}
	dropEmpty(doc, "auth_token", "metadata")
	return doc
}

func dropEmpty(obj map[string]any, keys ...string) {
	for _, k := range keys {
		switch v := obj[k].(type) {
		case string:
			if v == "" {
				delete(obj, k)
			}
		case []any:
			if len(v) == 0 {
				delete(obj, k)
			}
		case map[string]any:
			if len(v) == 0 {
				delete(obj, k)
			}
		}
	}
}
