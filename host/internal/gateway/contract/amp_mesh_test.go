package contract_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/google/uuid"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/contract"
	"skep/host/internal/hosttest"
)

// ampRecord is a message at a broker: a text of a type for an agent. A mark stays with it when it is set
// aside.
type ampRecord struct {
	kind, agent, mark string
	text              []byte
}

// markField is the field beside a message that has its mark.
const markField = "mark"

// ampBroker is a connection of the partners to a broker.
type ampBroker interface {
	// publish returns when the broker has a message.
	publish(ctx context.Context, r ampRecord) error
	// bind makes messages for agents come, and unbind ends that.
	bind(agents []string) error
	unbind(agents []string) error
	// settle returns when the host has taken what a client has sent, and what it says about it has come.
	settle(ctx context.Context, c ampQueueClient) error
}

// ampMesh are the partners of one host at a broker.
type ampMesh struct {
	t     testing.TB
	at    ampBroker
	began string

	// ready is done when the host has answered at the broker.
	ready sync.Once

	mu sync.Mutex
	// asked has the messages that wait, by their ids and by their marks.
	asked map[string][]*ampQuestion
	// serving has the handlers of agents, and early what came for agents without one, in order.
	serving map[string]served
	early   map[string][]amptest.Message
}

// served is an agent that serves.
type served struct {
	ctx    context.Context
	handle contract.Handler
}

func newAMPMesh(t testing.TB) *ampMesh {
	return &ampMesh{
		t: t, began: time.Now().UTC().Format(time.RFC3339), asked: map[string][]*ampQuestion{}, serving: map[string]served{}, early: map[string][]amptest.Message{},
	}
}

// ask notes a message that waits for what comes about it.
func (m *ampMesh) ask(kind, agent, id string) *ampQuestion {
	q := &ampQuestion{mesh: m, kind: kind, agent: agent, id: id, mark: uuid.NewString(), got: make(chan ampHeard, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range []string{q.id, q.mark} {
		m.asked[key] = append(m.asked[key], q)
	}
	return q
}

// end forgets a message.
func (q *ampQuestion) end() {
	q.mesh.mu.Lock()
	defer q.mesh.mu.Unlock()
	for _, key := range []string{q.id, q.mark} {
		q.mesh.asked[key] = slices.DeleteFunc(q.mesh.asked[key], func(of *ampQuestion) bool { return of == q })
	}
}

// deliver hands on what has come about a message.
func (m *ampMesh) deliver(about string, h ampHeard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.asked[about] {
		select {
		case q.got <- h:
		default:
		}
	}
}

// receive takes a message that is not for the host. It must be signed.
func (m *ampMesh) receive(text []byte) {
	in, err := amptest.Parse(text)
	if err != nil {
		m.t.Error(err)
		return
	}
	to := in.Message.Destination.AgentID
	if strings.HasSuffix(to, "@hive") || to == "registry" {
		return // it is for the host
	}
	if !isSignedAMP(text, ampKeyOf(ampPartnerOf(to))) {
		m.t.Errorf("%s is not signed", text)
	}
	if in.Message.Type == "response" || in.Message.Type == "error" {
		m.deliver(in.Header("correlation_id"), ampHeard{text: text})
		return
	}
	m.mu.Lock()
	s, isServed := m.serving[to]
	if !isServed {
		m.early[to] = append(m.early[to], in)
	}
	m.mu.Unlock()
	if isServed {
		m.handle(s, in)
	}
}

// handle lets an agent handle a message. Events keep their order.
func (m *ampMesh) handle(s served, in amptest.Message) {
	if in.Message.Type == "event" {
		_, _ = answerAMP(s.ctx, in, s.handle)
		return
	}
	go func() {
		_, answer := answerAMP(s.ctx, in, s.handle)
		if answer == nil || s.ctx.Err() != nil {
			return
		}
		text := signAMP([]byte(answer.Text()), ampKeyOf(ampPartnerOf(answer.Message.Source.AgentID)))
		if err := m.at.publish(s.ctx, ampRecord{kind: answer.Message.Type, agent: answer.Message.Destination.AgentID, mark: uuid.NewString(), text: text}); err != nil && s.ctx.Err() == nil {
			m.t.Errorf("an answer for %s: %v", answer.Message.Destination.AgentID, err)
		}
	}()
}

// serve makes agents serve until stop is called. What came before they did comes first.
func (m *ampMesh) serve(handle contract.Handler, agents []string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s := served{ctx, handle}
	for _, agent := range agents {
		m.mu.Lock()
		for _, in := range m.early[agent] {
			m.handle(s, in)
		}
		delete(m.early, agent)
		m.serving[agent] = s
		m.mu.Unlock()
	}
	if err := m.at.bind(agents); err != nil {
		m.t.Fatal(err)
	}
	return func() {
		cancel()
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, agent := range agents {
			delete(m.serving, agent)
		}
		_ = m.at.unbind(agents) // the connection may have ended
	}
}

// awaitHost returns when the host takes what is sent to its agents.
func (m *ampMesh) awaitHost(t testing.TB) {
	t.Helper()
	m.ready.Do(func() {
		hosttest.Eventually(t, "the host answers at the broker", func() bool { return m.hello(t.Context(), "depot-1") == nil })
	})
}

// hello asks the registry, which any agent may.
func (m *ampMesh) hello(ctx context.Context, agent string) error {
	q := amptest.New("request", agent, "registry", amptest.Object{"query": amptest.Object{}})
	q.Message.ID, q.Message.Destination.Capability = uuid.NewString(), "discovery"
	_, err := m.ask("request", "registry", q.Message.ID).exchange(ctx, signAMP([]byte(q.Text()), ampKeyOf(ampPartnerOf(agent))))
	return err
}

// withoutProof is a message without what each attempt to send it has anew.
func withoutProof(text []byte) string {
	m := decodeAMP(text)
	object, _ := m["message"].(amptest.Object)
	headers, _ := object["headers"].(amptest.Object)
	delete(object, "timestamp")
	delete(headers, "signature")
	return fmt.Sprint(m)
}

// decodeAMP reads a text with its numbers as they were sent; nil for what is no object.
func decodeAMP(text []byte) (m amptest.Object) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&m) != nil || d.More() {
		return nil
	}
	return m
}

// signAMP signs a message with a key, over what Python's json.dumps(message, sort_keys=True) writes. What is
// no message stays as it is.
func signAMP(text []byte, key string) []byte {
	m := decodeAMP(text)
	object, ok := m["message"].(amptest.Object)
	if !ok {
		return text
	}
	headers, ok := object["headers"].(amptest.Object)
	if !ok && object["headers"] != nil {
		return text
	}
	if headers == nil {
		headers = amptest.Object{}
		object["headers"] = headers
	}
	delete(headers, "signature")
	headers["signature"] = amptest.Object{"algorithm": "HMAC-SHA256", "value": hex.EncodeToString(macOf(pythonForm.text(object), key))}
	signed, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return signed
}

// isSignedAMP reports whether a message was signed with a key, over its form of RFC 8785: one without
// fractions has its numbers there as they were sent.
func isSignedAMP(text []byte, key string) bool {
	object, _ := decodeAMP(text)["message"].(amptest.Object)
	headers, _ := object["headers"].(amptest.Object)
	signature, _ := headers["signature"].(amptest.Object)
	value, _ := signature["value"].(string)
	delete(headers, "signature")
	want, err := base64.StdEncoding.DecodeString(value)
	return err == nil && hmac.Equal(want, macOf(canonicalForm.text(object), key))
}

func macOf(text, key string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// sortedForm is a form of JSON with sorted members: what stands between values, and which character is the
// last that stands for itself.
type sortedForm struct {
	comma, colon string
	last         rune
}

// The forms: what json.dumps with sort_keys writes (https://docs.python.org/3/library/json.html), and what
// RFC 8785 has.
var (
	pythonForm    = sortedForm{", ", ": ", '~'}
	canonicalForm = sortedForm{",", ":", unicode.MaxRune}
)

func (f sortedForm) text(value any) string {
	switch v := value.(type) {
	case amptest.Object:
		var list []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = append(list, f.quote(name)+f.colon+f.text(v[name]))
		}
		return "{" + strings.Join(list, f.comma) + "}"
	case []any:
		var list []string
		for _, each := range v {
			list = append(list, f.text(each))
		}
		return "[" + strings.Join(list, f.comma) + "]"
	case string:
		return f.quote(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(value) // a number as it was sent, or a truth
}

func (f sortedForm) quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		short := strings.IndexRune("\"\\\n\r\t\b\f", r)
		switch {
		case short >= 0:
			b.WriteString([]string{`\"`, `\\`, `\n`, `\r`, `\t`, `\b`, `\f`}[short])
		case r >= ' ' && r <= f.last:
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String() + `"`
}
