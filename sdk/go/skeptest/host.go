package skeptest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/internal/abi"
	"skep/sdk/go/internal/link"
)

// host pretends to be skep for one turn.
type host struct {
	in     Input
	input  []byte
	output []byte
	state  json.RawMessage
	now    time.Time
	calls  []Call
	mail   []Mail
	logs   []string
	ended  bool // await_message or task_complete was accepted
	made   int  // messages and random values so far
	off    bool // the turn is called off
	emits  []Emit
	last   []byte // the body of the last error
	open   map[int32]*stream
	opened int32

	// What the turn leaves to its world if it ends well.
	world     *World
	staged    map[space]map[string]*string // nil deletes
	timers    []Timer
	cancelled []string
	blobs     map[string][]byte // by address

	metrics []Metric
	spans   []Span
}

var _ link.Host = (*host)(nil)

func newHost(in Input) *host {
	fill(&in)
	in.World.begin(&in.Message)
	h := &host{
		in: in, now: in.Start, state: mustJSON(in.State), open: map[int32]*stream{},
		world: in.World, staged: map[space]map[string]*string{}, blobs: map[string][]byte{},
	}
	turn := abi.TurnInput{
		V: abi.Version, Turn: 1, Priority: 4, DeadlineMS: 600_000,
		Task: abi.Task{ID: in.Message.Task, Owner: "user:test@test", Contributors: []string{}},
		Agent: abi.Agent{
			Address: in.Agent, Swarm: "test", Instance: "user:test@test",
			CommTargets: in.CommTargets, CanCompleteTasks: in.CanComplete,
		},
		Tools:   tools(in),
		Message: mustJSON(in.Message),
		History: history(in.History),
		State:   h.state,
		Params:  mustJSON(in.Params),
		Budget:  abi.Budget{HostCalls: 1000, OutputBytes: 1 << 20},
	}
	h.input = mustJSON(turn)
	return h
}

// What an input has that does not say otherwise.
const (
	defaultAgent = "agent"
	defaultTask  = "5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90"
)

func fill(in *Input) {
	m := &in.Message
	in.Agent = cmp.Or(in.Agent, defaultAgent)
	if in.World == nil {
		in.World = &World{}
	}
	in.Start = cmp.Or(in.Start, in.World.Now, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	if m.Time.IsZero() {
		m.Time = in.Start
	}
	m.ID = cmp.Or(m.ID, "8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11")
	m.Task = cmp.Or(m.Task, defaultTask)
	m.RefID = cmp.Or(m.RefID, "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21")
	m.Type = cmp.Or(m.Type, skep.TypeRequest)
	m.Sender.Type = cmp.Or(m.Sender.Type, skep.AddressUser)
	m.Sender.Name = cmp.Or(m.Sender.Name, "test")
	if len(m.Recipients) == 0 {
		m.Recipients = []skep.Address{{Type: skep.AddressAgent, Name: in.Agent}}
	}
}

func tools(in Input) []abi.Tool {
	var list []abi.Tool
	for _, name := range slices.Concat(mailTools, in.Tools) {
		if name == "task_complete" && !in.CanComplete {
			continue
		}
		tool := abi.Tool{Name: name, Parameters: json.RawMessage(`{"type":"object"}`)}
		if slices.Contains(in.Reads, name) {
			tool.Effect = "read"
		}
		list = append(list, tool)
	}
	return list
}

func history(entries []skep.Entry) abi.History {
	h := abi.History{Count: int64(len(entries)), Tail: []abi.HistoryEntry{}}
	for _, e := range entries {
		w := abi.HistoryEntry{Seq: e.Seq, Turn: e.Turn, Time: e.Time.Format(time.RFC3339Nano), Note: e.Note}
		switch {
		case e.Message != nil:
			w.Kind, w.Message = abi.KindIn, mustJSON(e.Message)
		case e.Call != nil:
			w.Kind, w.Call = abi.KindCall, &abi.Call{ID: e.Call.ID, Name: e.Call.Name, Args: e.Call.Args}
		case e.Result != nil:
			w.Kind, w.Result = abi.KindResult, &abi.Result{ID: e.Result.ID, OK: e.Result.OK, Text: e.Result.Text}
		default:
			w.Kind = abi.KindNote
		}
		h.Tail = append(h.Tail, w)
	}
	return h
}

// Input returns the encoded turn.
func (h *host) Input() []byte { return h.input }

// Output appends to the output.
func (h *host) Output(data []byte) abi.Code {
	h.output = append(h.output, data...)
	return abi.CodeOK
}

// Now reads the pretended clock.
func (h *host) Now() time.Time { return h.now }

// Sleep moves the pretended clock and waits for nothing.
func (h *host) Sleep(d time.Duration) { h.now = h.now.Add(max(d, 0)) }

// Call answers an op: first the test's own answer, then the default.
func (h *host) Call(op abi.Op, raw []byte) ([]byte, abi.Code) {
	s, err := h.start(op, raw, false)
	if err == nil {
		h.due(s)
		err = s.err
	}
	if err != nil {
		h.calls[len(h.calls)-1].Err = err
		h.fault(err)
		return h.last, abi.Code(err.Code)
	}
	return bytes.Join(s.chunks, nil), abi.CodeOK
}

// LastError is the body of the last refusal.
func (h *host) LastError() []byte { return h.last }

func (h *host) answer(op skep.Op, req json.RawMessage) (any, error) {
	if h.in.Answer != nil {
		if v, err := h.in.Answer(op, req); v != nil || err != nil {
			return v, err
		}
	}
	switch op {
	case skep.OpMail:
		return h.mailTool(req)
	case skep.OpLog:
		return h.log(req)
	case skep.OpClockNow:
		return abi.ClockResponse{Time: h.now.Format("2006-01-02T15:04:05.000000-07:00")}, nil
	case skep.OpRandom:
		h.made++
		return abi.RandomResponse{Value: fmt.Sprintf("%032x", h.made)}, nil
	case skep.OpEmit:
		return h.emit(req)
	case skep.OpHistory:
		return abi.HistoryResponse{Entries: []abi.HistoryEntry{}}, nil
	}
	return h.worldly(op, req)
}

// worldly answers the ops that reach beyond the turn.
func (h *host) worldly(op skep.Op, req json.RawMessage) (any, error) {
	known := map[skep.Op]func(json.RawMessage) (any, error){
		skep.OpKVGet: h.kvGet, skep.OpKVPut: h.kvPut, skep.OpKVDelete: h.kvDelete, skep.OpKVList: h.kvList, skep.OpKVCas: h.kvCas,
		skep.OpTimerSet: h.timerSet, skep.OpTimerCancel: h.timerCancel,
		skep.OpMetric: h.metric, skep.OpSpan: h.span, skep.OpBlobGet: h.blobGet, skep.OpBlobPut: h.blobPut,
		skep.OpHTTPFetch: h.fetch, skep.OpSecretExists: h.secretExists, skep.OpLLMChat: h.chat, skep.OpAction: h.action,
	}
	answer, ok := known[op]
	switch {
	case !ok:
		return nil, skep.Errorf(skep.Unsupported, "this host has no %s", op)
	case len(req) > maxRequest && (op != skep.OpBlobPut || len(req) > largestRequest):
		return nil, because(skep.Limit, "size", "a request of %d bytes, at most %d", len(req), maxRequest)
	}
	return answer(req)
}

// strict decodes a request as a host does: it has no members but the known ones.
func strict(req json.RawMessage, into any) error {
	dec := json.NewDecoder(bytes.NewReader(req))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return because(skep.Invalid, "json", "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// because is an error with a reason.
func because(code skep.Code, reason, format string, args ...any) *skep.Error {
	e := skep.Errorf(code, format, args...)
	e.Reason = reason
	return e
}

func (h *host) log(req json.RawMessage) (any, error) {
	var line abi.LogRequest
	if err := json.Unmarshal(req, &line); err != nil {
		return nil, skep.Errorf(skep.Invalid, "%v", err)
	}
	h.logs = append(h.logs, line.Message)
	return struct{}{}, nil
}

// emit records what the turn shows.
func (h *host) emit(req json.RawMessage) (any, error) {
	var ask abi.EmitRequest
	if err := json.Unmarshal(req, &ask); err != nil {
		return nil, skep.Errorf(skep.Invalid, "%v", err)
	}
	switch {
	case ask.Progress != nil:
		h.emits = append(h.emits, Emit{Kind: "progress", Text: ask.Progress.Text, Fraction: ask.Progress.Fraction})
	case ask.Chunk != nil:
		h.emits = append(h.emits, Emit{Kind: "chunk", Text: *ask.Chunk})
	case ask.Note != nil:
		h.emits = append(h.emits, Emit{Kind: "note", Text: *ask.Note})
	default:
		return nil, skep.Errorf(skep.Invalid, "nothing to show")
	}
	return abi.EmitResponse{Status: abi.EmitOK}, nil
}

// mailTool records a MAIL tool call, and refuses what a turn may no longer do.
func (h *host) mailTool(req json.RawMessage) (any, error) {
	var call abi.MailRequest
	if err := json.Unmarshal(req, &call); err != nil {
		return nil, skep.Errorf(skep.Invalid, "%v", err)
	}
	mail := Mail{Tool: call.Tool}
	if err := json.Unmarshal(call.Args, &mail); err != nil {
		return nil, skep.Errorf(skep.Invalid, "%s: %v", call.Tool, err)
	}
	switch {
	case !slices.Contains(mailTools, call.Tool):
		return nil, skep.Errorf(skep.NotFound, "no tool %q", call.Tool)
	case call.Tool == "task_complete" && !h.in.CanComplete:
		return nil, skep.Errorf(skep.Denied, "agent %q cannot complete tasks", h.in.Agent)
	case h.ended:
		return nil, skep.Errorf(skep.Conflict, "the turn has awaited or completed")
	}
	h.mail = append(h.mail, mail)
	return h.accepted(call.Tool), nil
}

func (h *host) accepted(tool string) abi.MailResponse {
	switch tool {
	case "await_message":
		h.ended = true
		return abi.MailResponse{Text: "SUCCESS: waiting for a new message"}
	case "task_complete":
		h.ended = true
		return abi.MailResponse{ID: h.id(), Text: "SUCCESS: task completed"}
	case "acknowledge_broadcast":
		return abi.MailResponse{Text: "SUCCESS: broadcast acknowledged"}
	case "ignore_broadcast":
		return abi.MailResponse{Text: "SUCCESS: broadcast ignored"}
	case "help":
		return abi.MailResponse{Text: "===== SUMMARY =====\nA pretended host."}
	case "send_request":
		return abi.MailResponse{ID: h.id(), RequestID: h.id(), Text: "SUCCESS: message sent"}
	}
	return abi.MailResponse{ID: h.id(), Text: "SUCCESS: message sent"}
}

func (h *host) id() string {
	h.made++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", h.made)
}
