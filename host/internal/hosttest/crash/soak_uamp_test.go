package crash_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

// uampCaller asks goal by signed envelopes, and reads the stream of the answer to its end.
func (s *soak) uampCaller() *soakCaller {
	h := s.http("/v1/messages", soakKey+"uamp")
	k, err := seal.NewKey("", ed25519.NewKeyFromSeed(bytes.Repeat([]byte("g"), ed25519.SeedSize)))
	if err != nil {
		s.t.Fatal(err)
	}
	did := "did:key:" + k.Public().Multikey()
	key := k.WithID(did + "#" + k.Public().Multikey())
	base := strings.TrimSuffix(h.url, "/v1/messages")
	goal := "did:web:localhost%3A" + base[strings.LastIndex(base, ":")+1:] + ":agents:hive:goal"
	return &soakCaller{name: "uamp", leave: h.CloseIdleConnections, spoil: h.spoil("Content-Type", envelope.MediaType), prepare: func(_, text string) func(time.Duration) (string, error) {
		signed := s.signed(key, envelope.Envelope{ID: envelope.NewID(), Intent: envelope.Ask, Time: time.Now(), From: did, To: []string{goal}, Window: 64, Body: envelope.NewBody("text/plain", []byte(text))})
		return func(limit time.Duration) (string, error) {
			rsp, _, err := h.do(limit, http.MethodPost, h.url, signed, "Content-Type", envelope.MediaType)
			if err != nil {
				return "", err
			}
			_, answer, err := h.do(limit, http.MethodGet, base+rsp.Header.Get("Location"), "", "Accept", "text/event-stream")
			if err == nil && !strings.Contains(answer, `"done"`) {
				err = errors.New(answer)
			}
			return answer, err
		}
	}}
}

// signed is the text of an envelope with its signature.
func (s *soak) signed(key seal.Key, e envelope.Envelope) string {
	sum, err := e.Sum()
	if err == nil {
		e.Sig, err = key.Sign(sum)
	}
	if err != nil {
		s.t.Error(err)
	}
	text, err := e.Text()
	if err != nil {
		s.t.Error(err)
	}
	return string(text)
}
