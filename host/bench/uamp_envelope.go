package main

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
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
