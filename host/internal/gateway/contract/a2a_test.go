package contract_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"skep/host/internal/gateway/contract"
)

// TestA2A (G-001, G-003, G-024, G-025, G-026, G-031, G-040, G-041, G-042, G-051, G-052,
// G-053, G-054, G-057): the contract of gateways, held by A2A over JSON-RPC, and with the
// library's own server as the foreign agent.
func TestA2A(t *testing.T) {
	t.Parallel()
	contract.Run(t, a2aProtocol())
}

func a2aProtocol() contract.Protocol {
	return contract.Protocol{
		Name: "a2a", Table: "sign_cards = false\npush = false", Realms: true, Users: true,
		Dial:  func(t testing.TB, url, token string) contract.Client { return &a2aClient{url: url, token: token} },
		Serve: serveA2A,
		Without: map[string]string{
			"03/realm": "each message of the protocol begins a task, and a task has an outcome",
			"03/user":  "each message of the protocol begins a task, and a task has an outcome",
			"03/right": "the protocol has no message without an answer that could be denied",
			"13":       "a message names no sender: the token shows who speaks",
			"17/realm": "a message has no deadline",
			"17/user":  "a message has no deadline",
			"26/back":  "a task has no place for what its message brought",
		},
	}
}

// a2aClient calls a host with JSON-RPC of version 1.0.
type a2aClient struct{ url, token string }

// agent is the path of the agent of a message.
func (c *a2aClient) agent(m contract.Message) string {
	return c.url + "/a2a/hive/" + url.PathEscape(m.To)
}

// rpc is a response of JSON-RPC.
type rpc struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// a2aReasons are the codes of errors, of which one stands for several reasons.
var a2aReasons = map[int]contract.Reason{
	-32700: contract.Invalid, -32600: contract.Invalid, -32601: contract.Invalid, -32602: contract.Invalid, -32001: contract.Unknown, -32002: contract.Conflict,
	-32004: contract.Invalid, -32000: contract.Busy, -32603: contract.Internal,
}

func (r rpc) err() error {
	if r.Error == nil {
		return nil
	}
	reason, known := a2aReasons[r.Error.Code]
	if reason == contract.Busy && strings.Contains(r.Error.Message, "shutting down") {
		reason = contract.Stopping
	}
	if !known {
		return fmt.Errorf("the error %d %s", r.Error.Code, r.Error.Message)
	}
	return &contract.Refused{Reason: reason, Text: r.Error.Message}
}

// post sends a request and returns the response of a success.
func (c *a2aClient) post(ctx context.Context, url string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("A2A-Version", "1.0")
	r.Header.Set("Authorization", "Bearer "+c.token)
	rsp, err := http.DefaultClient.Do(r)
	if err != nil || rsp.StatusCode == http.StatusOK {
		return rsp, err
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		return nil, err
	}
	reason, known := map[int]contract.Reason{
		401: contract.NoCredential, 404: contract.Unknown, 413: contract.Large, 431: contract.Large, 429: contract.Busy, 503: contract.Stopping,
	}[rsp.StatusCode]
	if !known {
		return nil, fmt.Errorf("%s: %s", rsp.Status, text)
	}
	return nil, &contract.Refused{Reason: reason, Text: string(text)}
}

// call makes a request whose result is one value.
func (c *a2aClient) call(ctx context.Context, url string, body []byte) (json.RawMessage, error) {
	rsp, err := c.post(ctx, url, body)
	if err != nil {
		return nil, err
	}
	defer rsp.Body.Close()
	var got rpc
	if err := json.NewDecoder(rsp.Body).Decode(&got); err != nil {
		return nil, err
	}
	return got.Result, got.err()
}

func request(method string, params any) []byte {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		panic(err)
	}
	return raw
}

type object = map[string]any

// message is a message in the protocol's form.
func (c *a2aClient) message(m contract.Message) object {
	metadata := object{}
	if m.Hops > 0 {
		metadata["skep_hops"] = m.Hops
	}
	for name, value := range m.Extra {
		metadata[name] = value
	}
	parts := []any{object{"text": m.Text}}
	for _, p := range m.Parts {
		parts = append(parts, object{"raw": base64.StdEncoding.EncodeToString(p.Data), "filename": p.Name, "mediaType": p.Type})
	}
	out := object{"messageId": m.ID, "role": "ROLE_USER", "parts": parts}
	if m.Thread != "" && m.Kind != contract.Answer {
		out["contextId"] = m.Thread
	}
	if m.Kind == contract.Answer {
		out["taskId"] = m.On
	}
	if len(metadata) > 0 {
		out["metadata"] = metadata
	}
	return object{"message": out}
}

// Encode implements [contract.Client].
func (c *a2aClient) Encode(m contract.Message) []byte { return request("SendMessage", c.message(m)) }

// Post implements [contract.Client].
func (c *a2aClient) Post(ctx context.Context, body []byte) (contract.State, error) {
	return c.state(ctx, contract.Message{To: "boss"}, body)
}

func (c *a2aClient) state(ctx context.Context, m contract.Message, body []byte) (contract.State, error) {
	raw, err := c.call(ctx, c.agent(m), body)
	if err != nil {
		return contract.State{}, err
	}
	var result struct{ Task json.RawMessage }
	if err := json.Unmarshal(raw, &result); err != nil {
		return contract.State{}, err
	}
	if result.Task != nil {
		raw = result.Task
	}
	return taskState(raw)
}

// a2aTask is a task as a client reads it.
type a2aTask struct {
	ID        string     `json:"id"`
	ContextID string     `json:"contextId"`
	Status    a2aStatus  `json:"status"`
	Artifacts []artifact `json:"artifacts"`
}

type a2aStatus struct {
	State   string `json:"state"`
	Message struct {
		Parts []a2aPart `json:"parts"`
	} `json:"message"`
}

type artifact struct {
	Name  string    `json:"name"`
	Parts []a2aPart `json:"parts"`
}

type a2aPart struct {
	Text      string          `json:"text"`
	Data      json.RawMessage `json:"data"`
	Raw       []byte          `json:"raw"`
	Filename  string          `json:"filename"`
	MediaType string          `json:"mediaType"`
	Metadata  struct {
		Question string `json:"skep_question"`
	} `json:"metadata"`
}

var a2aStates = map[string]contract.Status{
	"TASK_STATE_WORKING": contract.Working, "TASK_STATE_SUBMITTED": contract.Working, "TASK_STATE_INPUT_REQUIRED": contract.Asks,
	"TASK_STATE_COMPLETED": contract.Done, "TASK_STATE_FAILED": contract.Failed, "TASK_STATE_CANCELED": contract.Cancelled,
}

func taskState(raw []byte) (contract.State, error) {
	var t a2aTask
	if err := json.Unmarshal(raw, &t); err != nil {
		return contract.State{}, err
	}
	s := contract.State{Status: a2aStates[t.Status.State], Thread: t.ContextID, Raw: string(raw)}
	if s.Status == "" {
		return s, fmt.Errorf("the task is %s", raw)
	}
	for _, p := range t.Status.Message.Parts {
		if s.Text = p.Text; s.Status == contract.Asks {
			s.Questions = append(s.Questions, contract.Question{ID: p.Metadata.Question, Text: p.Text})
		}
	}
	for _, a := range t.Artifacts {
		s.Subject = a.Name
		for _, p := range a.Parts {
			switch {
			case p.Raw != nil:
				s.Parts = append(s.Parts, contract.Part{Name: p.Filename, Type: p.MediaType, Data: p.Raw})
			case p.Data != nil:
				s.Text += string(p.Data)
			default:
				s.Text += p.Text
			}
		}
	}
	return s, nil
}

// Send implements [contract.Client].
func (c *a2aClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	return c.state(ctx, m, c.Encode(m))
}

// Look implements [contract.Client].
func (c *a2aClient) Look(ctx context.Context, m contract.Message) (contract.State, error) {
	return c.state(ctx, m, request("GetTask", object{"id": m.ID}))
}

// Cancel implements [contract.Client].
func (c *a2aClient) Cancel(ctx context.Context, m contract.Message) error {
	_, err := c.call(ctx, c.agent(m), request("CancelTask", object{"id": m.ID}))
	return err
}

// Read implements [contract.Client]: the message is sent once more, as a stream. The
// protocol reads a stream from its start: chunks before the wanted one are left out.
func (c *a2aClient) Read(ctx context.Context, m contract.Message, from int64, each func(contract.Piece)) (last contract.State, err error) {
	rsp, err := c.post(ctx, c.agent(m), request("SendStreamingMessage", c.message(m)))
	if err != nil {
		return last, err
	}
	defer rsp.Body.Close()
	err = eachEvent(rsp.Body, func(raw []byte) error {
		var got rpc
		if err := json.Unmarshal(raw, &got); err != nil || got.Error != nil {
			return errors.Join(err, got.err())
		}
		var e struct {
			Task           json.RawMessage `json:"task"`
			StatusUpdate   *a2aUpdate      `json:"statusUpdate"`
			ArtifactUpdate *a2aUpdate      `json:"artifactUpdate"`
		}
		if err := json.Unmarshal(got.Result, &e); err != nil {
			return err
		}
		switch {
		case e.Task != nil:
			each(contract.Piece{})
		case e.ArtifactUpdate != nil:
			e.ArtifactUpdate.show(&last, from, each)
		case e.StatusUpdate != nil:
			last.Status = a2aStates[e.StatusUpdate.Status.State]
			for _, p := range e.StatusUpdate.Status.Message.Parts {
				if last.Status == contract.Working {
					each(contract.Piece{Progress: p.Text})
				}
			}
		}
		return nil
	})
	if err == nil && (last.Status == "" || last.Status == contract.Working) {
		err = errors.New("the stream ended without a state")
	}
	return last, err
}

// a2aUpdate is an event about a status or an artifact.
type a2aUpdate struct {
	Status   a2aStatus `json:"status"`
	Artifact artifact  `json:"artifact"`
	Last     bool      `json:"lastChunk"`
	Metadata struct {
		Chunk int64 `json:"chunk"`
	} `json:"metadata"`
}

func (u *a2aUpdate) show(last *contract.State, from int64, each func(contract.Piece)) {
	for _, p := range u.Artifact.Parts {
		switch {
		case u.Last:
			last.Text += p.Text
		case u.Metadata.Chunk >= from:
			each(contract.Piece{N: u.Metadata.Chunk, Chunk: p.Text})
		}
	}
}

// serveA2A runs a foreign agent on the library's server.
func serveA2A(t testing.TB, address string, handle contract.Handler) (string, func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+a2asrv.WellKnownAgentCardPath, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(&sdk.AgentCard{
			Name: "foreign", Description: "answers", Version: "1", Capabilities: sdk.AgentCapabilities{Streaming: true},
			SupportedInterfaces: []*sdk.AgentInterface{sdk.NewAgentInterface(url+"/agent", sdk.TransportProtocolJSONRPC)},
			Skills:              []sdk.AgentSkill{{ID: "answer", Name: "answer", Description: "answers", Tags: []string{"x"}}},
		})
	})
	mux.Handle("/agent", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(a2aForeign{handle})))
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	return url, func() { _ = server.Close() }
}

// a2aForeign is a foreign agent as the library runs it.
type a2aForeign struct{ handle contract.Handler }

// Execute implements the library's executor.
func (f a2aForeign) Execute(ctx context.Context, x *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		if x.StoredTask == nil && !yield(sdk.NewSubmittedTask(x, x.Message), nil) {
			return
		}
		m := contract.Message{ID: x.Message.ID, Thread: x.Message.ContextID}
		for _, p := range x.Message.Parts {
			m.Text += p.Text()
		}
		hops, _ := x.Message.Metadata["skep_hops"].(float64)
		m.Hops = int(hops)
		var id sdk.ArtifactID
		s, err := f.handle(ctx, m, func(p contract.Piece) {
			if p.Chunk == "" {
				return
			}
			e := sdk.NewArtifactEvent(x, sdk.NewTextPart(p.Chunk))
			if id != "" {
				e = sdk.NewArtifactUpdateEvent(x, id, sdk.NewTextPart(p.Chunk))
			}
			id = e.Artifact.ID
			yield(e, nil)
		})
		var refused *contract.Refused
		switch {
		case errors.As(err, &refused):
			yield(sdk.NewStatusUpdateEvent(x, sdk.TaskStateRejected, sdk.NewMessageForTask(sdk.MessageRoleAgent, x, sdk.NewTextPart(refused.Text))), nil)
			return
		case err != nil:
			yield(nil, err)
			return
		}
		if s.Status == contract.Done && id == "" && !yield(sdk.NewArtifactEvent(x, sdk.NewTextPart(s.Text)), nil) {
			return
		}
		states := map[contract.Status]sdk.TaskState{
			contract.Done: sdk.TaskStateCompleted, contract.Failed: sdk.TaskStateFailed, contract.Cancelled: sdk.TaskStateCanceled, contract.Asks: sdk.TaskStateInputRequired,
		}
		yield(sdk.NewStatusUpdateEvent(x, states[s.Status], sdk.NewMessageForTask(sdk.MessageRoleAgent, x, sdk.NewTextPart(s.Text))), nil)
	}
}

// Cancel implements the library's executor.
func (a2aForeign) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		yield(sdk.NewStatusUpdateEvent(x, sdk.TaskStateCanceled, nil), nil)
	}
}
