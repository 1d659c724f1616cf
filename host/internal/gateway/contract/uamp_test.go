package contract_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway/contract"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	jsontext "skep/host/internal/gateway/wire"
)

// TestUAMP (U-050, U-051, G-042, contract): the contract of gateways, held by UAMP over HTTP/2
// with TLS in both directions.
func TestUAMP(t *testing.T) {
	t.Parallel()
	c := newUAMPCertificate(t)
	contract.Run(t, c.secure(uampProtocol(), c.serve, func(t testing.TB) *http.Client {
		calls := &http.Transport{TLSClientConfig: c.trusted(), ForceAttemptHTTP2: true}
		t.Cleanup(calls.CloseIdleConnections)
		return &http.Client{Transport: calls}
	}))
}

func uampProtocol() contract.Protocol {
	began := time.Now() // the time of all envelopes: a repeat has the same bytes
	return contract.Protocol{
		Name: "uamp", Self: uampKey("depot-1").id, Realms: true, NoHold: true,
		Partner: fmt.Sprintf("ids = [%q, %q, \"did:web:foreign.example:*\"]", uampKey("depot-1").id, uampKey("depot-7").id),
		Table:   "did = \"did:web:hive.example\"\nclock_skew = \"12h\"\n",
		Without: map[string]string{
			"06/realm":    "it has no word for a call that waits for a person",
			"17/realm":    "an envelope has no deadline",
			"22/question": "it has no word for a call that waits for a person",
			"25":          "an envelope has at most 16 MiB, and its content is in base64",
			"26/back":     "what ext has reaches the agent; deltas have no place for it",
		},
		Sign: signAgain,
		IDs: func(name string) (ids []string) {
			if name == "depot" { // its ids are among the lines of a partner that is called
				return []string{""}
			}
			for _, agent := range []string{name, name + "-1", name + "-7"} {
				ids = append(ids, uampKey(agent).id)
			}
			if name == "shop" {
				ids = ids[1:]
			}
			return ids
		},
		Dial: func(t testing.TB, url, token string) contract.Client {
			calls := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(calls.CloseIdleConnections)
			return uampClient{url: url, token: token, at: began, calls: calls}
		},
	}
}

// uampAgent is an agent of a partner, with the did:key that its name gives.
type uampAgent struct {
	id  string
	key seal.Key
}

func uampKey(name string) uampAgent {
	seed := sha256.Sum256([]byte(name))
	k, err := seal.NewKey("", ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		panic(err)
	}
	text := k.Public().Multikey()
	return uampAgent{"did:key:" + text, k.WithID("did:key:" + text + "#" + text)}
}

// uampClient is a realm's agent.
type uampClient struct {
	url, token string
	at         time.Time
	calls      *http.Client
}

// sender is the agent of a token that the partner's ids allow.
func (c uampClient) sender() string {
	for _, name := range []string{"depot", "shop"} {
		if strings.Contains(c.token, "-realm-"+name) {
			return name + "-1"
		}
	}
	for _, name := range []string{"dim", "greedy", "chatty", "watched", "far"} {
		if strings.Contains(c.token, "-"+name+"-") {
			return name
		}
	}
	return "depot-1" // of a token that was made for depot
}

// uampID is the id of a message of the suite as an envelope has it.
func uampID(id string) envelope.ID {
	return envelope.ID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(id)).String())
}

// thread is the conversation of a message.
func (c uampClient) thread(m contract.Message) string {
	if m.Thread != "" {
		return m.Thread
	}
	return "conversation of " + m.ID
}

// newEnvelope makes an unsigned envelope of a message.
func (c uampClient) newEnvelope(m contract.Message) (envelope.Envelope, seal.Key) {
	from := m.From
	if from == "" || from == uampKey(c.sender()).id {
		from = c.sender()
	}
	agent := uampKey(from)
	e := envelope.Envelope{
		ID: uampID(m.ID), Time: c.at, From: agent.id, To: []string{"did:web:hive.example:agents:hive:" + m.To}, Intent: envelope.Ask,
		Window: envelope.DefaultWindow, Body: envelope.NewBody("text/plain", []byte(m.Text)),
		Ext: map[string]json.RawMessage{"x-conversation": quoted(c.thread(m)), "x-hops": json.RawMessage(strconv.Itoa(m.Hops))},
	}
	switch m.Kind {
	case contract.Tell:
		e.Intent = envelope.Inform
	case contract.Answer:
		e.Intent, e.ReplyTo = envelope.Confirm, uampID(m.On)
	}
	if m.Subject != "" {
		e.Ext["x-subject"] = quoted(m.Subject)
	}
	for name, value := range m.Extra {
		e.Ext[name] = quoted(value)
	}
	return e, agent.key
}

func quoted(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

// signedText is an envelope as it is sent.
func signedText(e envelope.Envelope, k seal.Key) []byte {
	sum, err := e.Sum()
	if err == nil {
		e.Sig, err = k.Sign(sum)
	}
	if err != nil {
		panic(err)
	}
	text, err := e.Text()
	if err != nil {
		panic(err)
	}
	return text
}

// signAgain signs an envelope of depot-1 that was changed, where it has a canonical form.
func signAgain(body []byte) []byte {
	text, err := jsontext.Canonical(body, jsontext.RFC8785, 64, "sig")
	if err != nil {
		return body
	}
	sig, err := uampKey("depot-1").key.Sign(sha256.Sum256(text))
	if err != nil {
		panic(err)
	}
	return slices.Concat([]byte(`{"sig":`), quoted(sig), []byte(","), text[1:])
}

// Encode implements [contract.Client].
func (c uampClient) Encode(m contract.Message) []byte { return signedText(c.newEnvelope(m)) }

// Send implements [contract.Client].
func (c uampClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	s, err := c.Post(ctx, c.Encode(m))
	if err != nil || m.Kind == contract.Tell {
		return s, err
	}
	return c.Read(ctx, m, 0, func(contract.Piece) {})
}

// Post implements [contract.Client].
func (c uampClient) Post(ctx context.Context, body []byte) (contract.State, error) {
	rsp, err := c.call(ctx, http.MethodPost, "/v1/messages", string(body), "")
	if err != nil {
		return contract.State{}, err
	}
	_ = rsp.Body.Close()
	return contract.State{Status: contract.Working}, nil
}

// call makes a request; a refusal is an error.
func (c uampClient) call(ctx context.Context, method, path, body, after string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/uamp+json;v=1")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	rsp, err := c.calls.Do(req)
	if err != nil || rsp.StatusCode < http.StatusMultipleChoices {
		return rsp, err
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		return nil, err
	}
	return nil, uampRefusal(rsp.StatusCode, text)
}

// uampFault is the body of an error, or a problem.
type uampFault struct {
	Code, Message, Detail string
	Details               struct{ Reason string }
}

// uampReasons are the codes of refusals, uampStatuses the answers of the host itself.
var (
	uampReasons = map[string]contract.Reason{
		"4.00": contract.Invalid, "4.01": contract.NoCredential, "4.03": contract.Denied, "4.04": contract.Unknown, "4.13": contract.Large, "4.15": contract.Invalid,
		"4.22": contract.Conflict, "4.29": contract.Busy, "5.04": contract.Busy, "5.00": contract.Internal,
	}
	uampStatuses = map[int]contract.Reason{
		http.StatusUnauthorized: contract.NoCredential, http.StatusRequestEntityTooLarge: contract.Large, http.StatusTooManyRequests: contract.Busy,
		http.StatusServiceUnavailable: contract.Stopping, http.StatusBadRequest: contract.Invalid,
	}
)

func uampRefusal(status int, text []byte) error {
	var f uampFault
	var signed struct{ Body struct{ Content string } }
	if json.Unmarshal(text, &signed) == nil && signed.Body.Content != "" {
		text = []byte(signed.Body.Content)
	}
	if json.Unmarshal(text, &f) != nil || f.Code == "" {
		return &contract.Refused{Reason: uampStatuses[status], Text: string(text)}
	}
	reason := uampReasons[f.Code]
	if f.Details.Reason == "stopping" {
		reason = contract.Stopping
	}
	return &contract.Refused{Reason: reason, Text: f.Message + f.Detail}
}

// Look implements [contract.Client].
func (c uampClient) Look(ctx context.Context, m contract.Message) (contract.State, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	open := false
	s, err := c.Read(ctx, m, 0, func(p contract.Piece) {
		if open = open || p == (contract.Piece{}); open {
			cancel()
		}
	})
	if open {
		return contract.State{Status: contract.Working, Thread: c.thread(m)}, nil
	}
	return s, err
}

// Read implements [contract.Client]. It opens the stream again after each window.
func (c uampClient) Read(ctx context.Context, m contract.Message, from int64, each func(contract.Piece)) (s contract.State, err error) {
	reader := &uampReader{each: each, from: from}
	for !reader.ended {
		after := ""
		if reader.next > 0 {
			after = strconv.FormatInt(reader.next-1, 10)
		}
		rsp, err := c.call(ctx, http.MethodGet, "/v1/stream/str-"+string(uampID(m.ID)), "", after)
		if err != nil {
			return s, err
		}
		before := reader.next
		err = reader.read(rsp.Body)
		_ = rsp.Body.Close()
		if err != nil {
			return s, err
		}
		if reader.next == before && !reader.ended { // the host has ended it
			return s, io.ErrUnexpectedEOF
		}
	}
	reader.state.Thread = c.thread(m)
	return reader.state, nil
}

// uampReader reads deltas from the first one on, and shows chunks from one on: progress has
// numbers of deltas, too.
type uampReader struct {
	each  func(contract.Piece)
	from  int64
	next  int64 // delta
	chunk int64 // the number of the next one
	ended bool
	state contract.State
}

func (r *uampReader) read(body io.Reader) error {
	in := bufio.NewScanner(body)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := in.Text()
		if line == ":" {
			r.each(contract.Piece{})
		}
		if data, is := strings.CutPrefix(line, "data: "); is {
			if err := r.delta(data); err != nil {
				return err
			}
		}
	}
	return in.Err()
}

// delta reads one delta.
func (r *uampReader) delta(data string) error {
	d, err := (envelope.Reader{Strict: true, MaxBytes: 1 << 20, MaxDepth: 64}).ReadDelta([]byte(data), "")
	if err != nil {
		return err
	}
	if int64(d.Seq) != r.next {
		return fmt.Errorf("delta %d comes in place of %d", d.Seq, r.next)
	}
	r.next++
	var p struct {
		Text, Message string
		Base64        string          `json:"chunk_b64"`
		Answer        json.RawMessage `json:"answer"`
		Type          string
	}
	if err := json.Unmarshal(d.Payload, &p); err != nil {
		return err
	}
	r.state.Raw += data
	switch d.Type {
	case envelope.DeltaChunk:
		text := p.Text
		if p.Base64 != "" {
			raw, err := base64.StdEncoding.DecodeString(p.Base64)
			if err != nil {
				return err
			}
			text = string(raw)
		}
		if r.chunk++; r.chunk > r.from {
			r.each(contract.Piece{N: r.chunk - 1, Chunk: text})
		}
		return nil
	case envelope.DeltaProgress:
		r.each(contract.Piece{Progress: p.Text})
		return nil
	case envelope.DeltaDone:
		r.state.Status, r.state.Text = contract.Done, string(p.Answer)
		if p.Type != "application/json" {
			err = json.Unmarshal(p.Answer, &r.state.Text)
		}
	case envelope.DeltaCancel:
		r.state.Status = contract.Cancelled
	default:
		r.state.Status, r.state.Text = contract.Failed, p.Message
	}
	r.ended = true
	return err
}

// Cancel implements [contract.Client].
func (c uampClient) Cancel(ctx context.Context, m contract.Message) error {
	e, k := c.newEnvelope(m)
	e.ID, e.Intent, e.ReplyTo, e.Ext = envelope.NewID(), envelope.Cancel, e.ID, nil
	e.Body = envelope.NewBody("text/plain", nil)
	_, err := c.Post(ctx, slices.Clone(signedText(e, k)))
	return err
}
