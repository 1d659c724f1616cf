package swarm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// TaskTrace is the trace of a task, from its creation or reopening to its end.
type TaskTrace struct {
	// Span is the context of the task's own span, Caller the one that the message had which
	// created or reopened the task, without its state; zero for none.
	Span   Trace     `json:"span"`
	Caller Trace     `json:"caller,omitzero"`
	Since  time.Time `json:"since"`
}

// traces makes the contexts of tasks and turns. Their ids are HMACs of what they stand for, so
// that each attempt and each host makes the same ones. nil makes none.
type traces struct {
	secret []byte
	// sample decides whether a trace without a caller is kept.
	sample func(id [16]byte) bool
}

func newTraces(secret []byte, sample func(id [16]byte) bool) *traces {
	if sample == nil {
		return nil
	}
	return &traces{secret, sample}
}

// begin returns the trace of a task that a message with the context caller has just created or
// reopened. One that is not kept, and that no caller has begun, is nil: it costs nothing.
func (s *traces) begin(task Task, caller Trace, now time.Time) *TaskTrace {
	if s == nil {
		return nil
	}
	own := caller
	if caller == (Trace{}) {
		sum := s.derive(task, 0, labelTrace)
		id := [16]byte(sum[:16])
		if !s.sample(id) {
			return nil
		}
		own.parent = "00-" + hex.EncodeToString(id[:]) + "-0000000000000000-01"
	}
	// The number of mutations tells one reopening from the next.
	return &TaskTrace{Span: own.child(s.derive(task, task.Mutations, "task span")), Caller: Trace{parent: caller.parent}, Since: now}
}

// labelTrace derives the id of a task's trace.
const labelTrace = "trace"

// leaving returns the context that goes with a message of the context own to another host. For a
// task whose trace is not kept it is made here: the other host does not keep it either.
func (s *traces) leaving(task Task, own Trace) Trace {
	if s == nil || own != (Trace{}) {
		return own
	}
	sum := s.derive(task, 0, labelTrace)
	return Trace{parent: "00-" + hex.EncodeToString(sum[:16]) + "-" + hex.EncodeToString(sum[16:24]) + "-00"}
}

// ofTurn returns the context of a turn, whose message has the context parent.
func (s *traces) ofTurn(task Task, turn int64, parent Trace) Trace {
	if s == nil || parent == (Trace{}) {
		return parent
	}
	return parent.child(s.derive(task, turn, "turn span"))
}

// setCalls gives the calls of a turn their spans: HMACs of the turn's id and their paths.
func (s *traces) setCalls(task Task, turn int64, calls []CallShape) {
	key := s.derive(task, turn, "call spans")
	for i := range calls {
		mac := hmac.New(sha256.New, key[:])
		mac.Write([]byte(calls[i].Path))
		calls[i].Span = [8]byte(mac.Sum(nil))
	}
}

func (s *traces) derive(task Task, n int64, label string) [32]byte {
	return deriveBytes(s.secret, task, n, label)
}

// child returns the context of a span below the trace's, whose id the bytes begin with.
func (t Trace) child(span [32]byte) Trace {
	t.parent = t.parent[:parentAt] + hex.EncodeToString(span[:8]) + t.parent[flagsAt-1:]
	return t
}

// The places of a traceparent's fields, "00-" TRACE "-" PARENT "-" FLAGS.
const (
	traceAt  = len("00-")
	parentAt = traceAt + 32 + 1
	flagsAt  = parentAt + 16 + 1
)

// IDs returns the ids of the trace and of the span, and whether the trace is kept; the zero
// value has zeros.
func (t Trace) IDs() (trace [16]byte, span [8]byte, sampled bool) {
	if t.parent == "" {
		return trace, span, false
	}
	_, _ = hex.Decode(trace[:], []byte(t.parent[traceAt:parentAt-1])) // it was parsed
	_, _ = hex.Decode(span[:], []byte(t.parent[parentAt:flagsAt-1]))
	flags, _ := strconv.ParseUint(t.parent[flagsAt:], 16, 8)
	return trace, span, flags&1 == 1
}

// rowTrace returns the context that a row or a message of a post carries: the task's span stands
// for the caller that has begun its trace, and for none.
func (mut *mutationBuilder) rowTrace(t Trace) Trace {
	if own := mut.Task.Trace; own != nil && (t.parent == "" || t.parent == own.Caller.parent) {
		return own.Span
	}
	return t
}

// CallShape is a call of a model or an action, without what was said.
type CallShape struct {
	// Path is the number of the call in its turn: "3", or "3.1" for one of an action.
	Path string
	// Model is set for a call of a model, whose provider and name follow; else Name is the action's.
	// A name that the caller may not use is left out: it could be any text.
	Model          bool
	Provider, Name string
	Begin, End     time.Time
	// Code is the code of the error that the call was answered, empty for none.
	Code string
	// InputTokens and OutputTokens are what the model has counted.
	InputTokens, OutputTokens int64
	// Span is the id of its span.
	Span [8]byte
}
