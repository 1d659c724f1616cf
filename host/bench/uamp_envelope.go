package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	jsonwire "skep/host/internal/gateway/wire"
)

// largeEnvelope is an envelope without a signature in its canonical form, cut where its id and
// where its signature stand: a new one costs its caller a copy and a hash.
type largeEnvelope struct{ head, middle, tail string }

func newLargeEnvelope(e envelope.Envelope) (l largeEnvelope, err error) {
	text, err := e.Text()
	if err != nil {
		return l, err
	}
	head, rest, hasID := strings.Cut(string(text), e.ID.String())
	middle, tail, hasTo := strings.Cut(rest, `"to":`)
	if !hasID || !hasTo {
		return l, fmt.Errorf("the canonical form %.200q has no id or no to", text)
	}
	return largeEnvelope{head, middle, `"to":` + tail}, nil
}

// sign is the text of an envelope with a new id, signed.
func (l largeEnvelope) sign(k seal.Key) (string, error) {
	begin := l.head + envelope.NewID().String() + l.middle
	sum := sha256.New()
	_, _ = sum.Write([]byte(begin)) // a hash takes all
	_, _ = sum.Write([]byte(l.tail))
	sig, err := k.Sign([sha256.Size]byte(sum.Sum(nil)))
	return begin + `"sig":"` + sig + `",` + l.tail, err
}

// plainEnvelope are the members of the benchmark's envelope, for package json.
type plainEnvelope struct {
	ID     string    `json:"id"`
	Time   string    `json:"ts"`
	From   string    `json:"from"`
	To     []string  `json:"to"`
	Intent string    `json:"intent"`
	Body   plainBody `json:"body"`
}

type plainBody struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

func newPlainEnvelope(e envelope.Envelope) plainEnvelope {
	return plainEnvelope{e.ID.String(), e.Time.UTC().Format("2006-01-02T15:04:05.999Z"), e.From, e.To, string(e.Intent), plainBody{e.Body.Type, e.Body.Content}}
}

// check returns why the canonical form of an envelope has other members.
func (p plainEnvelope) check(e envelope.Envelope) error {
	want, err := e.Text()
	if err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if text, err = jsonwire.Canonical(text, jsonwire.RFC8785, 16); err == nil && !bytes.Equal(text, want) {
		err = fmt.Errorf("the plain encoding has not the members of %.200q", want)
	}
	return err
}
