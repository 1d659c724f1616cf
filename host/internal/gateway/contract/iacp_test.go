package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/contract"
	"skep/host/internal/gateway/iacp/iacptest"
)

// TestIACP (I-020, I-023, I-024, I-026, I-070): the contract of gateways, held by IaCP over
// its connections.
func TestIACP(t *testing.T) {
	t.Parallel()
	contract.Run(t, iacpProtocol())
}

// TestIACPConnection (I-059): what the contract has about bindings, also of messages of ours,
// which leave on the connections that partners open.
func TestIACPConnection(t *testing.T) {
	t.Parallel()
	p := iacpProtocol()
	contract.RunBindings(t, p, []contract.Binding{{
		Name: "spoke", Dial: p.Dial, Serve: serveIACP,
		Without: map[string]string{
			"23":      "the partner of the case has no key; TestAway of package iacp has one that comes back",
			"28/asks": "it is the runtime's limit, and held in TestIACP",
			"28/rate": "it is the runtime's limit, and held in TestIACP",
		},
	}})
}

// TestIACPPeer (I-028, I-057): the contract with partners that are called: messages of ours
// leave on the connections that the host opens, and wait for the partner while it is away.
func TestIACPPeer(t *testing.T) {
	t.Parallel()
	p := iacpProtocol()
	for key, reason := range iacpCalled {
		delete(p.Without, key)
		if reason != "" {
			p.Without[key] = reason
		}
	}
	delete(p.Without, "06/mail")
	p.Self = "depot-6"
	var foreign contract.Handler
	p.Dial = func(t testing.TB, url, token string) contract.Client {
		c := newIACPClient(t, url, token)
		c.foreign = foreign
		return c
	}
	p.IDs = func(name string) []string { return []string{map[string]string{"shop": "shop-*"}[name]} }
	p.Partner = `ids = ["depot-*", "x"]`
	p.Serve = func(t testing.TB, address string, handle contract.Handler) (string, func()) {
		if foreign == nil { // the cases that serve another agent come later
			foreign = handle
		}
		hub, err := iacptest.Listen(t.Context(), address, outToken, "ack")
		if err != nil {
			t.Fatal(err)
		}
		return "iacp://" + hub.Addr().String(), serveHub(t, hub, handle)
	}
	contract.Run(t, p)
}

// iacpCalled are the cases that partners without an address cannot have, and why they are
// left out for others too.
var iacpCalled = map[string]string{
	"02": "", "04": "", "15": "", "22/sent": "", "22/answer-read": "", "22/answer-accepted": "", "23": "", "27": "",
	"19": "it has no word that withdraws a message",
}

// outToken is what the host shows to partners that it calls.
const outToken = "token-shown-to-partners-012"

func iacpProtocol() contract.Protocol {
	without := map[string]string{
		"06/mail":     "a question of an agent is a message of its own, and answered in TestIACPPeer",
		"06/realm":    "it has no word for a call that waits for a person",
		"14":          "a stream cannot be read again; TestRevoked of package iacp ends connections",
		"17/late":     "nothing is called",
		"18":          "only a workflow can be withdrawn",
		"20":          "a stream cannot be read again",
		"21":          "a stream cannot be read again",
		"22/question": "it has no word for a call that waits for a person",
		"22/stream":   "a stream cannot be read again",
		"25":          "a payload is text",
		"26":          "what a text has besides reaches no agent; TestTyped of package iacp has payloads that reach it whole",
	}
	for _, out := range []string{"02", "04", "15", "19", "22/sent", "22/answer-read", "22/answer-accepted", "23", "27"} {
		without[out] = "messages of ours are in TestIACPConnection, and leave again after a restart in TestAway of package iacp"
	}
	return contract.Protocol{
		Name: "iacp", Realms: true, NoHold: true, Table: "listen = \"127.0.0.1:0\"\n", Without: without,
		Dial: func(t testing.TB, url, token string) contract.Client {
			return newIACPClient(t, url, token)
		},
	}
}

// iacpClient is an agent of a realm: it connects when it has something to send, and again
// when the connection was lost.
type iacpClient struct {
	t          testing.TB
	url, token string
	foreign    contract.Handler // answers questions, nil for none

	mu      sync.Mutex
	conn    *iacptest.Conn
	waiting map[string]chan iacptest.Message // by the id of the message
}

func newIACPClient(t testing.TB, url, token string) *iacpClient {
	return &iacpClient{t: t, url: url, token: token, waiting: map[string]chan iacptest.Message{}}
}

// iacpAddress asks a host where it listens.
func iacpAddress(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/skep/v1/gateways", http.NoBody)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer token-of-the-operator-0004")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var list struct {
		Gateways []struct{ Name, Detail string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return "", err
	}
	for _, g := range list.Gateways {
		if detail, ok := strings.CutPrefix(g.Detail, "listens on "); ok && g.Name == "iacp" {
			addr, _, _ := strings.Cut(detail, ";")
			return addr, nil
		}
	}
	return "", fmt.Errorf("no address in %+v", list)
}

func dialIACP(ctx context.Context, url, token string) (*iacptest.Conn, error) {
	addr, err := iacpAddress(ctx, url)
	if err != nil {
		return nil, err
	}
	return iacptest.Dial(addr, token, "ack")
}

// connect returns the connection, made if there is none.
func (c *iacpClient) connect(ctx context.Context) (*iacptest.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		return c.conn, nil
	}
	conn, err := dialIACP(ctx, c.url, c.token)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	var running sync.WaitGroup
	running.Go(func() { c.read(conn, &running) })
	c.t.Cleanup(func() {
		_ = conn.Close()
		running.Wait()
	})
	return conn, nil
}

// read hands on what comes, until the connection is lost: then nothing waits any more.
func (c *iacpClient) read(conn *iacptest.Conn, running *sync.WaitGroup) {
	for {
		m, err := conn.Read()
		c.mu.Lock()
		if err != nil {
			c.conn = nil
			for id, got := range c.waiting {
				close(got)
				delete(c.waiting, id)
			}
			c.mu.Unlock()
			return
		}
		key := m.Parent
		switch m.Type {
		case "ack":
			key = "ack " + key
		case "task_request":
			if c.foreign != nil {
				running.Go(func() { answerIACP(context.Background(), c.t, conn, m, c.foreign) })
			}
			fallthrough
		case "task_response", "tool_response":
			_ = conn.Send(m.Reply("ack", map[string]any{"message_id": m.ID}).Text()) // where it is lost, the next read fails
		}
		if got := c.waiting[key]; got != nil {
			got <- m
			delete(c.waiting, key)
		}
		c.mu.Unlock()
	}
}

// errLost is returned where the connection was lost before the answer.
var errLost = errors.New("the connection was lost")

// exchange sends a text and waits for what comes about a message.
func (c *iacpClient) exchange(ctx context.Context, id string, told bool, text []byte) (iacptest.Message, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return iacptest.Message{}, err
	}
	got := make(chan iacptest.Message, 2)
	c.mu.Lock()
	c.waiting[id] = got
	if told {
		c.waiting["ack "+id] = got
	}
	c.mu.Unlock()
	if err := conn.Send(text); err != nil {
		return iacptest.Message{}, err
	}
	select {
	case m, ok := <-got:
		if !ok {
			return m, errLost
		}
		return m, nil
	case <-ctx.Done():
		return iacptest.Message{}, context.Cause(ctx)
	}
}

// iacpID is a UUID for any id.
func iacpID(id string) string {
	if _, err := uuid.Parse(id); err == nil || id == "" {
		return id
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(id)).String()
}

// message is a message of the suite as the document has it.
func (c *iacpClient) message(m contract.Message) iacptest.Message {
	from := m.From
	if from == "" {
		from = acpClient{acptest.Client{Token: c.token}}.sender()
	}
	out := iacptest.New("task_request", from, m.To, map[string]any{"task_type": "mail.message", "parameters": map[string]any{"subject": m.Subject, "body": m.Text}})
	out.ID, out.Conversation, out.Timestamp = iacpID(m.ID), m.Thread, "2025-09-21T10:30:00Z"
	if m.Thread == "" {
		out.Conversation = iacpID("conversation of " + m.ID)
	}
	out.Metadata = map[string]any{"hops": m.Hops, "requires_response": m.Kind != contract.Tell}
	if !m.By.IsZero() {
		out.Metadata["expires_at"] = m.By.Format("2006-01-02T15:04:05.999999999Z07:00")
	}
	return out
}

// Encode implements [contract.Client].
func (c *iacpClient) Encode(m contract.Message) []byte { return c.message(m).Text() }

// Send implements [contract.Client].
func (c *iacpClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	out := c.message(m)
	if m.Kind != contract.Answer {
		return iacpState(c.exchange(ctx, out.ID, m.Kind == contract.Tell, out.Text()))
	}
	// An answer is never refused, since a refusal is an answer: what became of it is asked.
	out.Type, out.Parent, out.Payload = "task_response", iacpID(m.On), map[string]any{"status": "completed", "result": m.Text}
	if _, err := c.exchange(ctx, out.ID, true, out.Text()); err != nil {
		return contract.State{}, err
	}
	return c.Look(ctx, m)
}

// Post implements [contract.Client], over a connection of its own.
func (c *iacpClient) Post(ctx context.Context, body []byte) (contract.State, error) {
	conn, err := dialIACP(ctx, c.url, c.token)
	if err != nil {
		return contract.State{}, err
	}
	defer conn.Close()
	go func() { _ = conn.Send(body) }() // the host may not read all of it
	return iacpState(conn.Read())
}

// Look implements [contract.Client].
func (c *iacpClient) Look(ctx context.Context, m contract.Message) (contract.State, error) {
	out := c.message(m)
	asked := iacptest.New("message_status", out.Sender.ID, "", map[string]any{"message_id": out.ID})
	return iacpState(c.lookUp(ctx, out.ID, asked))
}

// lookUp waits for what comes about a message, or for a refusal to show it.
func (c *iacpClient) lookUp(ctx context.Context, id string, asked iacptest.Message) (m iacptest.Message, err error) {
	conn, err := dialIACP(ctx, c.url, c.token)
	if err != nil {
		return m, err
	}
	defer conn.Close()
	if err := conn.Send(asked.Text()); err != nil {
		return m, err
	}
	for {
		if m, err = conn.Read(); err != nil || m.Parent == id || m.Parent == asked.ID {
			return m, err
		}
	}
}

// Read implements [contract.Client].
func (*iacpClient) Read(context.Context, contract.Message, int64, func(contract.Piece)) (contract.State, error) {
	return contract.State{}, errors.ErrUnsupported
}

// Cancel implements [contract.Client].
func (*iacpClient) Cancel(context.Context, contract.Message) error { return errors.ErrUnsupported }

// iacpReasons are the codes and reasons of refusals.
var iacpReasons = map[string]contract.Reason{
	"INVALID_MESSAGE_FORMAT": contract.Invalid, "UNSUPPORTED_VERSION": contract.Invalid, "AGENT_NOT_FOUND": contract.Unknown,
	"PERMISSION_DENIED": contract.Denied, "AUTHENTICATION_FAILED": contract.NoCredential, "TIMEOUT": contract.Internal,
	"busy": contract.Busy, "stopping": contract.Stopping, "conflict": contract.Conflict, "expired": contract.Invalid, "too_large": contract.Large,
}

// iacpState is what a message of the host means.
func iacpState(m iacptest.Message, err error) (contract.State, error) {
	if err != nil {
		return contract.State{}, err
	}
	s := contract.State{Status: contract.Done, Thread: m.Conversation, Raw: m.Raw}
	code, _ := m.Payload["error_code"].(string)
	switch status, _ := m.Payload["status"].(string); {
	case m.Type == "error_response":
		details, _ := m.Payload["details"].(map[string]any)
		if reason, named := details["reason"].(string); named {
			code = reason
		}
		text, _ := m.Payload["error_message"].(string)
		return s, &contract.Refused{Reason: iacpReasons[code], Text: text}
	case m.Type == "ack":
	case status == "in_progress":
		s.Status = contract.Working
	case status == "failed":
		fault, _ := m.Payload["error"].(map[string]any)
		s.Status = contract.Failed
		s.Text, _ = fault["message"].(string)
	default:
		var isText bool
		if s.Text, isText = m.Payload["result"].(string); !isText {
			raw, err := json.Marshal(m.Payload["result"])
			return contract.State{Status: s.Status, Thread: s.Thread, Raw: s.Raw, Text: string(raw)}, err
		}
	}
	return s, nil
}

// serveIACP connects a foreign agent of a partner with a host.
func serveIACP(t testing.TB, url, token string, handle contract.Handler) (stop func()) {
	t.Helper()
	conn, err := dialIACP(t.Context(), url, token)
	if err != nil {
		t.Fatal(err)
	}
	agent := tokenName.FindStringSubmatch(token)[1]
	registers := iacptest.New("agent_register", agent, "", map[string]any{"agent_info": map[string]any{"agent_id": agent, "agent_name": "a spoke"}})
	if err := conn.Send(registers.Text()); err != nil {
		t.Fatal(err)
	}
	if m, err := conn.Read(); err != nil || m.Type != "agent_register_response" {
		t.Fatalf("a registration is answered by %s, %v", m.Raw, err)
	}
	stop, end := answerAll(t, conn, agent, handle)
	t.Cleanup(end)
	return stop
}

// serveHub lets the foreign agent x answer on the connections of a hub.
func serveHub(t testing.TB, hub *iacptest.Hub, handle contract.Handler) (stop func()) {
	var mu sync.Mutex
	stopped, stops, ends := false, []func(){}, []func(){}
	accepted := make(chan struct{})
	t.Cleanup(func() { // after stop, so that no connection comes any more
		for _, end := range ends {
			end()
		}
	})
	go func() {
		defer close(accepted)
		for {
			conn, err := hub.Spoke()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // a host that is killed may leave in the handshake
			}
			mu.Lock()
			if stopped {
				_ = conn.Close()
			} else {
				stop, end := answerAll(t, conn, "x", handle)
				stops, ends = append(stops, stop), append(ends, end)
			}
			mu.Unlock()
		}
	}()
	return func() {
		_ = hub.Close()
		mu.Lock()
		stopped = true
		for _, stop := range stops {
			stop()
		}
		mu.Unlock()
		<-accepted
	}
}

// answerAll lets a foreign agent answer what comes on a connection: what it is told one
// after the other, and each question while others wait. Stop closes the connection, and end gives up
// what is still to be answered.
func answerAll(t testing.TB, conn *iacptest.Conn, agent string, handle contract.Handler) (stop, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var answering sync.WaitGroup
	told := make(chan iacptest.Message, 1000)
	answering.Go(func() {
		for {
			select {
			case m := <-told:
				answerIACP(ctx, t, conn, m, handle)
			case <-ctx.Done():
				return
			}
		}
	})
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			m, err := conn.Read()
			if err != nil {
				return
			}
			switch m.Type {
			case "ack", "connection_close":
			case "agent_register":
				_ = conn.Send(m.Reply("agent_register_response", map[string]any{"status": "registered", "agents": []any{map[string]any{"agent_id": agent}}}).Text())
			default:
				_ = conn.Send(m.Reply("ack", map[string]any{"message_id": m.ID}).Text())
				if m.Type == "context_share" {
					told <- m
				} else {
					go answerIACP(ctx, t, conn, m, handle)
				}
			}
		}
	}()
	stop = func() {
		_ = conn.Close()
		<-read
	}
	end = func() {
		cancel()
		answering.Wait()
	}
	return stop, end
}

// answerIACP lets a foreign agent answer a message of ours.
func answerIACP(ctx context.Context, t testing.TB, conn *iacptest.Conn, m iacptest.Message, handle contract.Handler) {
	in := contract.Message{ID: m.ID, From: m.Sender.ID, To: m.Recipient.ID, Thread: m.Conversation}
	if hops, ok := m.Metadata["hops"].(float64); ok {
		in.Hops = int(hops)
	}
	content, _ := m.Payload["parameters"].(map[string]any)
	if m.Type == "context_share" {
		in.Kind = contract.Tell
		content, _ = m.Payload["data"].(map[string]any)
	}
	in.Text, _ = content["body"].(string)
	in.Subject, _ = content["subject"].(string)
	s, err := handle(ctx, in, func(contract.Piece) {})
	reply := m.Reply("task_response", map[string]any{"status": "completed", "result": s.Text})
	var refused *contract.Refused
	switch {
	case in.Kind == contract.Tell:
		return
	case errors.As(err, &refused):
		reply = m.Reply("error_response", map[string]any{"error_code": "INVALID_MESSAGE_FORMAT", "error_message": refused.Text, "retry_allowed": false})
	case err != nil:
		t.Error(err)
		return
	case s.Status == contract.Failed:
		reply.Payload = map[string]any{"status": "failed", "error": s.Text}
	}
	if err := conn.Send(reply.Text()); err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}
