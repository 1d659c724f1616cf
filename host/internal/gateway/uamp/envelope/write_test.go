package envelope_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/wire"
)

// plain are the members of an envelope as package json writes them, the oracle of what is written
// without it.
type plain struct {
	ID      string                     `json:"id"`
	Time    string                     `json:"ts"`
	From    string                     `json:"from"`
	To      []string                   `json:"to"`
	Intent  envelope.Intent            `json:"intent"`
	ReplyTo string                     `json:"reply_to,omitempty"`
	Context []plainReference           `json:"context,omitempty"`
	Stream  string                     `json:"stream_id,omitempty"`
	Window  int                        `json:"delta_window,omitempty"`
	Body    plainBody                  `json:"body"`
	Token   string                     `json:"cap_token,omitempty"`
	Sig     string                     `json:"sig,omitempty"`
	Ext     map[string]json.RawMessage `json:"ext,omitempty"`
}

type plainReference struct {
	ID   string `json:"id"`
	Hash string `json:"hash"`
}

type plainBody struct {
	Type        string `json:"type"`
	Content     string `json:"content"`
	Encoding    string `json:"encoding,omitempty"`
	Compression string `json:"compression,omitempty"`
}

func plainOf(e envelope.Envelope) plain {
	p := plain{
		ID: e.ID.String(), Time: e.Time.UTC().Format("2006-01-02T15:04:05.999Z"), From: e.From, To: e.To, Intent: e.Intent, ReplyTo: e.ReplyTo.String(),
		Stream: e.Stream, Token: e.CapToken, Sig: e.Sig, Ext: e.Ext, Body: plainBody(e.Body),
	}
	if e.Window != envelope.DefaultWindow {
		p.Window = e.Window
	}
	if p.Body.Encoding == "utf-8" {
		p.Body.Encoding = ""
	}
	if p.Body.Compression == "none" {
		p.Body.Compression = ""
	}
	for _, r := range e.Context {
		p.Context = append(p.Context, plainReference{r.ID.String(), r.Hash})
	}
	return p
}

// formOf is the form of an envelope by package json and the library of RFC 8785.
func formOf(t *testing.T, e envelope.Envelope) string {
	t.Helper()
	text, err := json.Marshal(plainOf(e))
	if err == nil {
		text, err = jcs.Transform(text)
	}
	if err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
	return string(text)
}

// checkWritten holds what is written of an envelope against package json and the library.
func checkWritten(t *testing.T, e envelope.Envelope) {
	t.Helper()
	got, err := e.Text()
	want := formOf(t, e)
	if err != nil || string(got) != want {
		t.Fatalf("text %s, %v\nwant %s", got, err, want)
	}
	literal, err := wire.Canonical(got, wire.AsSent, 64)
	if err != nil || len(e.Ext) == 0 && string(literal) != want {
		t.Fatalf("as sent %s, %v\nwant    %s", literal, err, want)
	}
	sig := e.Sig
	e.Sig = ""
	sum := sha256.Sum256([]byte(formOf(t, e)))
	e.Sig = sig
	if got, err := e.Sum(); err != nil || got != sum {
		t.Fatalf("sum %x, %v; want %x", got, err, sum)
	}
	e.Sig = "of another"
	sealed, err := e.Seal(func(got [sha256.Size]byte) (string, error) {
		if got != sum {
			t.Errorf("signs %x, want %x", got, sum)
		}
		return sig, nil
	})
	e.Sig = sig
	if sig != "" && (err != nil || string(sealed) != want) {
		t.Fatalf("sealed %s, %v\nwant   %s", sealed, err, want)
	}
}

// TestText (U-020, U-024, D-U1): an envelope of ours is written as package json and the library of
// RFC 8785 write it, with each member and without.
func TestText(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		checkWritten(t, randomEnvelope(rand.New(rand.NewPCG(seed, 0))))
	}
	checkWritten(t, envelope.Envelope{})
}

func randomEnvelope(r *rand.Rand) (e envelope.Envelope) {
	letters := []rune("aZ <&>\"\\/\n\x00\x1f\x7fäß\u2028\ue000\uff01😀")
	text := func() (text string) {
		for range r.IntN(2) * r.IntN(40) {
			text += string(letters[r.IntN(len(letters))])
		}
		return text
	}
	e = envelope.Envelope{
		ID: envelope.NewID(), Time: time.Unix(r.Int64N(1<<32), r.Int64N(1e9)), From: text(), Intent: envelope.Intents()[r.IntN(10)],
		ReplyTo: envelope.ID(text()), Stream: text(), Window: r.IntN(3) * 32, CapToken: text(), Sig: text(),
		Body: envelope.Body{Type: text(), Content: strings.Repeat(text(), r.IntN(20)), Encoding: []string{"", "utf-8", "base64"}[r.IntN(3)], Compression: []string{"", "none", "gzip"}[r.IntN(3)]},
	}
	for range r.IntN(3) {
		e.To = append(e.To, text())
		e.Context = append(e.Context, envelope.Reference{ID: envelope.ID(text()), Hash: text()})
	}
	for range r.IntN(4) {
		if e.Ext == nil {
			e.Ext = map[string]json.RawMessage{}
		}
		value, _ := json.Marshal(map[string]any{text(): []any{r.Float64(), r.Int64(), text(), nil}, text(): true})
		e.Ext[text()] = value
	}
	return e
}

// FuzzText looks for texts of an envelope that are not written as package json and the library
// write them.
func FuzzText(f *testing.F) {
	f.Add("text/plain", "2+2", "did:web:a.example", "x..y", "x-subject", "a\xffb")
	f.Add("", "\x00\"\\", strings.Repeat("ä", 200), "", "\U0001f600", "<\u2028>")
	f.Fuzz(func(t *testing.T, kind, content, agent, sig, name, value string) {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		e := envelope.Envelope{
			ID: envelope.ID(agent), From: agent, To: []string{agent, value}, Intent: envelope.Ask, Sig: sig, Stream: value, Window: len(content),
			Body: envelope.Body{Type: kind, Content: content, Encoding: value}, Ext: map[string]json.RawMessage{strings.ToValidUTF8(name, ""): raw},
		}
		checkWritten(t, e)
	})
}

// TestSealRefuses: what cannot be signed, or has no form, is not sent.
func TestSealRefuses(t *testing.T) {
	t.Parallel()
	none := errors.New("no key")
	if text, err := (envelope.Envelope{}).Seal(func([sha256.Size]byte) (string, error) { return "", none }); !errors.Is(err, none) || text != nil {
		t.Errorf("%s, %v", text, err)
	}
	for _, value := range []string{"", `1,"b":2`, `{"a":1,"a":2}`, "\"\xff\"", strings.Repeat("[", 1000) + strings.Repeat("]", 1000)} {
		e := envelope.Envelope{Ext: map[string]json.RawMessage{"a": json.RawMessage(value)}}
		if text, err := e.Text(); err == nil {
			t.Errorf("ext %.40q: %.100s", value, text)
		}
	}
}
