package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"unicode"

	"skep/host/internal/gateway/contract"
)

// TestMCP (G-001, G-003, G-025, G-026, G-053, G-057): the contract of gateways, held by MCP
// without sessions. Tools are called by users and by realms; the host's agents call no
// agents over MCP.
func TestMCP(t *testing.T) {
	t.Parallel()
	contract.Run(t, mcpProtocol())
}

// noMail is why no case of outgoing messages can be expressed.
const noMail = "agents write no mail over MCP: the tools of its servers are actions"

// noPieces is why no case of streams can be expressed.
const noPieces = "a result is whole: notifications show progress, and no pieces"

func mcpProtocol() contract.Protocol {
	p := contract.Protocol{
		Name: "mcp", Realms: true, Users: true,
		Dial: func(t testing.TB, url, token string) contract.Client {
			return &mcpClient{url: url + "/mcp", token: token, tasks: map[string]string{}}
		},
		Without: map[string]string{
			"02": noMail, "04": noMail, "15": noMail, "19": noMail, "23": noMail, "27": noMail, "17/late": noMail,
			"22/sent": noMail, "22/answer-read": noMail, "22/answer-accepted": noMail, "22/stream": noMail,
			"03/user":     "each call of a tool has a result",
			"03/right":    "each call of a tool has a result",
			"06/mail":     "callers are users: agents ask them by calls that wait for a person",
			"10/messages": "a task is continued by its id, and one of another caller is a new one of one's own",
			"13":          "a call names no sender: the token shows who speaks",
			"14/stream":   "a response begins with its first notification or its result; the call itself is cut off",
			"21":          noPieces,
			"26/back":     "a tool refuses arguments that its schema does not have",
		},
	}
	for number, reason := range map[string]string{
		"17": "a call has no deadline: the client closes the request",
		"18": "a call is withdrawn by closing its request, after which no state can be read in its place",
		"20": noPieces,
		"25": "a tool takes text, and a result has at most 4 MiB beside it",
		"26": "a tool refuses arguments that its schema does not have",
	} {
		p.Without[number+"/user"], p.Without[number+"/realm"] = reason, reason
	}
	return p
}

// mcpClient calls tools without a session. A call is known by its id in _meta, and its
// task by what the host made of it.
type mcpClient struct {
	url, token string
	mu         sync.Mutex
	tasks      map[string]string // by the ids of messages
}

// newestMCP is the version of the protocol without sessions.
const newestMCP = "2026-07-28"

// Encode implements [contract.Client].
func (c *mcpClient) Encode(m contract.Message) []byte {
	arguments := object{"message": m.Text}
	if m.Thread != "" {
		arguments["task_id"] = m.Thread
	}
	if m.Kind == contract.Answer {
		arguments["question_id"] = m.Question.ID
	}
	return c.request(m, arguments, nil)
}

func (c *mcpClient) request(m contract.Message, arguments object, meta object) []byte {
	all := object{
		"skep/id": m.ID, "io.modelcontextprotocol/protocolVersion": newestMCP,
		"io.modelcontextprotocol/clientInfo": object{"name": "suite", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": object{},
	}
	for name, value := range meta {
		all[name] = value
	}
	return request("tools/call", object{"name": m.To, "arguments": arguments, "_meta": all})
}

// Post implements [contract.Client].
func (c *mcpClient) Post(ctx context.Context, body []byte) (contract.State, error) {
	return c.call(ctx, "boss", body, func(contract.Piece) {})
}

// call makes a request and reads its notifications and its result.
func (c *mcpClient) call(ctx context.Context, tool string, body []byte, each func(contract.Piece)) (s contract.State, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return s, err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + c.token,
		"Mcp-Protocol-Version": newestMCP, "Mcp-Method": "tools/call", "Mcp-Name": inHeader(tool),
	} {
		r.Header.Set(name, value)
	}
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		return s, err
	}
	defer rsp.Body.Close()
	if !strings.HasPrefix(rsp.Header.Get("Content-Type"), "text/event-stream") {
		raw, err := io.ReadAll(rsp.Body)
		if err != nil {
			return s, err
		}
		return mcpResult(rsp.StatusCode, raw)
	}
	each(contract.Piece{})
	ended := false
	err = eachEvent(rsp.Body, func(raw []byte) (err error) {
		var note struct {
			Params struct{ Message string }
		}
		if bytes.Contains(raw, []byte(`"notifications/progress"`)) {
			err = json.Unmarshal(raw, &note)
			each(contract.Piece{Progress: note.Params.Message})
			return err
		}
		ended = true
		s, err = mcpResult(rsp.StatusCode, raw)
		return err
	})
	if err == nil && !ended {
		err = errors.New("the stream ended without a result")
	}
	return s, err
}

// inHeader is a text without what no field of a header has.
func inHeader(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// mcpResult is the state in a response.
func mcpResult(code int, raw []byte) (s contract.State, err error) {
	var got struct {
		rpc
		Result struct {
			IsError    bool                    `json:"isError"`
			Content    []struct{ Text string } `json:"content"`
			Structured struct {
				Task, Status, Text string
				TaskID             string                      `json:"task_id"`
				Questions          []struct{ ID, Text string } `json:"questions"`
			} `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		got.Error = nil
	}
	reason := map[int]contract.Reason{401: contract.NoCredential, 413: contract.Large, 431: contract.Large, 429: contract.Busy, 503: contract.Stopping}[code]
	switch {
	case reason != "":
		return s, &contract.Refused{Reason: reason, Text: string(raw)}
	case got.Error != nil && strings.HasPrefix(got.Error.Message, "unknown tool"):
		return s, &contract.Refused{Reason: contract.Unknown, Text: got.Error.Message}
	case got.Error != nil:
		return s, &contract.Refused{Reason: contract.Invalid, Text: got.Error.Message}
	case code == http.StatusBadRequest:
		return s, &contract.Refused{Reason: contract.Invalid, Text: string(raw)}
	case code != http.StatusOK:
		return s, fmt.Errorf("%d %s", code, raw)
	}
	r := got.Result
	if r.Structured.Status == "" && len(r.Content) > 0 {
		return s, mcpRefusal(r.Content[0].Text)
	}
	statuses := map[string]contract.Status{
		"working": contract.Working, "input_required": contract.Asks, "done": contract.Done, "failed": contract.Failed,
		"cancelled": contract.Cancelled, "timed_out": contract.Cancelled,
	}
	s = contract.State{Status: statuses[r.Structured.Status], Thread: r.Structured.TaskID, Text: r.Structured.Text, Raw: string(raw)}
	for _, q := range r.Structured.Questions {
		s.Questions = append(s.Questions, contract.Question{ID: q.ID, Text: q.Text, Person: true})
	}
	return s, nil
}

// mcpRefusal is what a tool says of a call that it does not take.
func mcpRefusal(text string) error {
	reason := contract.Invalid
	for word, r := range map[string]contract.Reason{
		"too many": contract.Busy, "try later": contract.Busy, "is known": contract.Unknown, "draining": contract.Stopping, "shutting down": contract.Stopping, "no message": contract.Unknown,
	} {
		if strings.Contains(text, word) {
			reason = r
		}
	}
	return &contract.Refused{Reason: reason, Text: text}
}

// Send implements [contract.Client].
func (c *mcpClient) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	s, err := c.call(ctx, m.To, c.Encode(m), func(contract.Piece) {})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tasks[m.ID] = s.Thread
	}
	return s, err
}

// Look implements [contract.Client]: a call with the task alone waits for its answer.
func (c *mcpClient) Look(ctx context.Context, m contract.Message) (contract.State, error) {
	c.mu.Lock()
	task := c.tasks[m.ID]
	c.mu.Unlock()
	if task == "" {
		task = m.Thread
	}
	look := m
	look.ID = m.ID + "-look"
	return c.call(ctx, m.To, c.request(look, object{"task_id": task}, nil), func(contract.Piece) {})
}

// Read implements [contract.Client]: the call is repeated with a token for progress.
func (c *mcpClient) Read(ctx context.Context, m contract.Message, _ int64, each func(contract.Piece)) (contract.State, error) {
	arguments := object{"message": m.Text}
	if m.Thread != "" {
		arguments["task_id"] = m.Thread
	}
	return c.call(ctx, m.To, c.request(m, arguments, object{"progressToken": "p"}), each)
}

// Cancel implements [contract.Client].
func (c *mcpClient) Cancel(context.Context, contract.Message) error {
	return errors.New("a call is withdrawn by closing its request")
}
