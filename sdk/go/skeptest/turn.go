// Package skeptest owns a pretended host, so that an agent's turns can be
// tested with plain go test: build an [Input], call [Run], look at the
// [Outcome]. It must not know how a real host routes or stores anything; what
// it answers can be replaced op by op.
package skeptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/internal/abi"
)

// Input is one message for one agent. Zero fields get values that make sense:
// a request from the user, an agent "agent" in swarm "test".
type Input struct {
	Message skep.Message
	// Agent is the name of the agent that runs.
	Agent       string
	CommTargets []string
	CanComplete bool
	// Tools are names of actions to list beside the MAIL tools.
	Tools []string
	// Reads are the members of Tools whose effect is read.
	Reads []string
	// State is what the last turn left, encoded as JSON; [Outcome.State] of one
	// turn is the State of the next.
	State   any
	Params  any
	History []skep.Entry
	// Start is the turn's clock at the start; zero is [World.Now].
	Start time.Time
	// World is what this turn shares with others: values, timers, the clock, what
	// is granted. Nil is one of its own that grants nothing.
	World *World
	// Answer, if set, is asked first. It returns the op's answer as JSON or a
	// [Stream], an error (a *skep.Error reaches the agent as it is), or nil and
	// nil to leave the op to the default. An answer of skep.Cancelled calls the
	// turn off: from then on the host refuses as a real one does.
	Answer func(op skep.Op, req json.RawMessage) (any, error)
}

// Call is one op the agent called.
type Call struct {
	Op      skep.Op
	Request json.RawMessage
	// Submitted: the agent did not wait for it. Closed: the agent closed it before
	// its end.
	Submitted, Closed bool
	// Err is the refusal or failure the agent got, if any.
	Err *skep.Error
}

// Emit is one thing the turn showed.
type Emit struct {
	Kind string // progress, chunk or note
	Text string
	// Fraction is nil where none was given.
	Fraction *float64
}

// Mail is one MAIL tool call that was accepted.
type Mail struct {
	Tool string `json:"-"`
	// The arguments, as far as the tool has them.
	Target  string   `json:"target"`
	Targets []string `json:"targets"`
	Subject string   `json:"subject"`
	Body    string   `json:"body"`
	Finish  string   `json:"finish_message"`
	Note    string   `json:"note"`
	Reason  string   `json:"reason"`
}

// Outcome is how the turn ended.
type Outcome struct {
	// Err is what the agent returned; nil when the turn would be committed.
	Err   *skep.Error
	Calls []Call
	Mail  []Mail
	Emits []Emit
	Logs  []string
	Notes []string
	// Metrics and Spans are what the turn told the operator, also if it failed.
	Metrics []Metric
	Spans   []Span
	// State is what a later turn sees: the input's when the turn set none or
	// failed.
	State json.RawMessage
	// End is the turn's clock at the end.
	End time.Time
}

// Run runs one turn of an agent. A panic of the agent passes through.
func Run(a skep.Agent, in Input) Outcome {
	h := newHost(in)
	status := abi.Status(skep.Drive(h, a))
	h.world.Now = h.now
	out := Outcome{Calls: h.calls, Mail: h.mail, Emits: h.emits, Logs: h.logs, Metrics: h.metrics, Spans: h.spans, State: h.state, End: h.now}
	if status != abi.StatusOK {
		out.Err = failure(status, h.output)
		return out
	}
	var result abi.TurnResult
	if len(h.output) > 0 {
		if err := json.Unmarshal(h.output, &result); err != nil {
			out.Err = skep.Errorf(skep.Internal, "turn result: %v", err)
			return out
		}
	}
	h.world.commit(h)
	out.Notes = result.Notes
	if result.State != nil {
		out.State = result.State
	}
	return out
}

func failure(status abi.Status, output []byte) *skep.Error {
	var body struct{ Code, Op, Reason, Message string }
	if err := json.Unmarshal(output, &body); err != nil {
		return skep.Errorf(skep.Internal, "status %d without a readable error: %v", status, err)
	}
	e := &skep.Error{Code: skep.Internal, Op: body.Op, Reason: body.Reason, Message: body.Message}
	for c := skep.Invalid; c <= skep.Internal; c++ {
		if c.String() == body.Code {
			e.Code = c
		}
	}
	return e
}

// mustJSON encodes a value of a test; one that does not encode is the test's
// own fault.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("skeptest: %v", err))
	}
	return raw
}

// refusal makes an error of the closed set out of any error.
func refusal(op skep.Op, err error) *skep.Error {
	var e *skep.Error
	var code skep.Code
	if errors.As(err, &code) {
		e = skep.Errorf(code, "%s is refused by the test", op)
	} else if !errors.As(err, &e) {
		e = skep.Errorf(skep.Internal, "%v", err)
	}
	c := *e
	if c.Op == "" {
		c.Op = op.String()
	}
	return &c
}

// Tools of MAIL, as far as a host without peers has them.
var mailTools = strings.Fields("send_request send_response send_interrupt send_broadcast " +
	"acknowledge_broadcast ignore_broadcast await_message help task_complete")
