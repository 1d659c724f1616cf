package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	jsonwire "skep/host/internal/gateway/wire"
)

// uampText is the text of a message of 4 KiB.
var uampText = strings.Repeat("hello ", 4<<10/6)

// uampAgent is an agent of the partner lab, which signs what it sends.
type uampAgent struct {
	id  string
	key seal.Key
}

func newUAMPAgent() (a uampAgent, err error) {
	seed := sha256.Sum256([]byte("bench"))
	k, err := seal.NewKey("", ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		return a, err
	}
	text := k.Public().Multikey()
	a.id = "did:key:" + text
	a.key = k.WithID(a.id + "#" + text)
	return a, nil
}

// labKey is the key of the partner lab.
const labKey = "the-key-of-lab-at-hive"

// uampSwarm is a host whose agent answers over UAMP, too.
func uampSwarm(a uampAgent) string {
	return strings.Replace(benchSwarm, "[[auth.keys]]", `expose = ["uamp"]
[gateways.uamp]
did = "did:web:bench.example"
asks = 10_000
[gateways.uamp.rate_limit]
requests = 0
[gateways.uamp.partners.lab]
ids = ["`+a.id+`"]
[[auth.keys]]
id = "lab"
role = "agent"
key = "`+labKey+`"
[[auth.keys]]`, 1)
}

// overUAMP compares a signed ask of 4 KiB over UAMP, from its envelope to the end of its
// stream, with POST /message of the same text at the same host; and the canonical form with plain
// encoding.
func overUAMP(b *bench) {
	agent := must(newUAMPAgent())
	host := must(startHost(b.ctx, uampSwarm(agent)))
	defer host.stop()
	posted := fmt.Sprintf(`{"body":%q,"subject":"q"}`, uampText)
	for _, clients := range []int{1, 16} {
		rates := must(b.rates(
			requesting(func() httpRequest { return message(host.url, posted) }, clients, "boss got"),
			agent.asking(host.url, clients)))
		target := none()
		if clients == 16 {
			target = atLeast(0.6)
		}
		b.report.compare(fmt.Sprintf("UAMP ask, signed, 4 KiB, %d clients", clients), rates[1], rate, "POST /message", rates[0], target)
	}
	b.canonicalForms(agent.newEnvelope())
}

// canonicalForms compares the canonical form of an envelope, and its hash, with its plain encoding by
// package json; and those of an envelope that was received with decoding it and encoding it again.
func (b *bench) canonicalForms(e envelope.Envelope) {
	plain := newPlainEnvelope(e)
	check(plain.check(e))
	received := must(json.Marshal(plain))
	costs := must(b.costs(
		repeated("plain encoding", func() error { _, err := json.Marshal(plain); return err }),
		repeated("canonical form", func() error { _, err := e.Text(); return err }),
		repeated("canonical form and its hash", func() error { _, err := e.Sum(); return err }),
		repeated("decoding and encoding", func() error { return recode(received) }),
		repeated("canonical form and its hash of what is received", func() error {
			form, err := jsonwire.Canonical(received, jsonwire.RFC8785, 16)
			_ = sha256.Sum256(form)
			return err
		})))
	b.report.compare("UAMP's canonical form, 4 KiB", costs[1], seconds, "plain encoding", costs[0], atMost(1.2))
	b.report.compare("UAMP's canonical form and its hash, 4 KiB", costs[2], seconds, "plain encoding", costs[0], atMost(1.2))
	b.report.compare("the same of an envelope that is received", costs[4], seconds, "decoding and plain encoding", costs[3], atMost(1.2))
}

// recode decodes a text and encodes it again.
func recode(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	_, err := json.Marshal(value)
	return err
}

func (a uampAgent) newEnvelope() envelope.Envelope {
	return envelope.Envelope{
		ID: envelope.ID(uuid.NewString()), Time: time.Now(), From: a.id, To: []string{"did:web:bench.example:agents:hive:boss"}, Intent: envelope.Ask,
		Window: envelope.DefaultWindow, Body: envelope.NewBody("text/plain", []byte(uampText)),
	}
}

// asking is a subject that asks the benchmark's agent from n clients.
func (a uampAgent) asking(url string, n int) subject {
	return subject{"a UAMP ask", func(span time.Duration) (int, time.Duration, error) {
		cl := clientOf(n)
		defer cl.CloseIdleConnections()
		return parallel(n, span, func(int) error { return a.ask(cl, url) })
	}}
}

// ask sends a signed envelope and reads the stream with its answer.
func (a uampAgent) ask(cl *http.Client, url string) error {
	text, name, err := a.newSigned()
	if err != nil {
		return err
	}
	post := postTo(url+"/v1/messages", string(text)).as(labKey).with("Content-Type", "application/uamp+json;v=1")
	if err := post.expect(cl, ""); err != nil {
		return err
	}
	stream := getFrom(url + "/v1/stream/" + name).as(labKey)
	if err := stream.expect(cl, "boss got"); err != nil {
		return errors.Join(errors.New("the stream has no answer"), err)
	}
	return nil
}
