package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Turn is one turn of a conformance guest, and how it must end. GUEST.md says
// what the guests do.
type Turn struct {
	Name string
	// Input is what the guest reads with input_read.
	Input []byte
	// Action: it is one call of an action, not a turn.
	Action bool
	// OutputLimit bounds what it may write; 0 leaves that to the host.
	OutputLimit int64
	// Answers are what the host says to the ops, in order. When they are used
	// up it says UNSUPPORTED.
	Answers []Answer
	// CancelAt is the op, from 1, in whose middle the turn is called off; 0
	// never. From then on every op answers CANCELLED.
	CancelAt int
	Want     Want
}

// Answer is what the host says to one op.
type Answer struct {
	Body  []byte
	Error *Refusal // instead of a body, or behind its chunks
	// Chunks are the pieces in which a body comes that is read by a handle; no
	// read gives parts of two. Nil: in one. An Error stands at their end.
	Chunks [][]byte
	// Waits is how many waits with a time-out an op that was submitted is not
	// ready for. A wait without one ends when the first is ready.
	Waits int
}

// Refusal is the error of an op.
type Refusal struct {
	Code         string `json:"code"`
	Op           string `json:"op"`
	Reason       string `json:"reason"`
	RetryAfterMS int64  `json:"retry_after_ms"`
	Message      string `json:"message"`
}

// Want is how a turn must end.
type Want struct {
	// Exit is empty for a turn that is committed, else failed, abort or output.
	Exit string
	// Message is an abort's.
	Message string
	// Output is what the guest writes, to the byte, where Exit is empty or
	// failed.
	Output []byte
	// SHA256, in hexadecimal, stands for an output too long to be written down.
	SHA256 string
	// Ops are what the guest asks of the host, to the byte. Nil leaves them
	// open.
	Ops []Op
}

// Op is one op that a guest asked for. An empty request and {} are the same.
type Op struct {
	Number  int32
	Request string
}

// turnSuite is the form of turns.json.
type turnSuite struct {
	Base    json.RawMessage `json:"base"`
	Vectors []turnVector    `json:"vectors"`
}

type turnVector struct {
	Name string `json:"name"`
	// Action is the input of a call of an action; without it Commands or Body is the
	// body of a turn's message.
	Action   json.RawMessage `json:"action"`
	Commands json.RawMessage `json:"commands"`
	Body     string          `json:"body"`
	Patch    []edit          `json:"patch"`
	Pad      int             `json:"pad"` // bytes to make the input longer by
	Limits   struct {
		Output int64 `json:"output"`
	} `json:"limits"`
	Answers []struct {
		Answer json.RawMessage `json:"answer"`
		Text   string          `json:"text"`
		Repeat int             `json:"repeat"`
		Pad    int             `json:"pad"`
		Error  *Refusal        `json:"error"`
		Chunks []string        `json:"chunks"`
		Waits  int             `json:"waits"`
	} `json:"answers"`
	Cancel int `json:"cancel"`
	Want   struct {
		Exit    string                `json:"exit"`
		Message string                `json:"message"`
		Output  json.RawMessage       `json:"output"`
		SHA256  string                `json:"sha256"`
		Ops     []([]json.RawMessage) `json:"ops"`
	} `json:"want"`
}

// Turns returns the vectors for agents: what a conformance guest must do.
func Turns() ([]Turn, error) {
	raw, err := files.ReadFile("turns.json")
	if err != nil {
		return nil, err
	}
	var s turnSuite
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("turns.json: %w", err)
	}
	all := make([]Turn, len(s.Vectors))
	for i, v := range s.Vectors {
		if all[i], err = v.turn(s.Base); err != nil {
			return nil, fmt.Errorf("turns.json: %s: %w", v.Name, err)
		}
	}
	return all, nil
}

func (v *turnVector) turn(base json.RawMessage) (t Turn, err error) {
	t = Turn{Name: v.Name, OutputLimit: v.Limits.Output, CancelAt: v.Cancel, Action: v.Action != nil}
	if t.Input, err = v.input(base); err != nil {
		return t, err
	}
	for _, a := range v.Answers {
		body := strings.Repeat(a.Text, max(a.Repeat, 1)) + strings.Repeat(" ", a.Pad)
		if a.Answer != nil {
			body = string(compact(a.Answer))
		}
		answer := Answer{Body: []byte(body), Error: a.Error, Waits: a.Waits}
		for _, c := range a.Chunks {
			answer.Chunks = append(answer.Chunks, []byte(c))
		}
		t.Answers = append(t.Answers, answer)
	}
	t.Want = Want{Exit: v.Want.Exit, Message: v.Want.Message, Output: compact(v.Want.Output), SHA256: v.Want.SHA256}
	if v.Want.Ops == nil {
		return t, nil
	}
	t.Want.Ops = []Op{}
	for _, pair := range v.Want.Ops {
		op, err := wantedOp(pair)
		if err != nil {
			return t, err
		}
		t.Want.Ops = append(t.Want.Ops, op)
	}
	return t, nil
}

func wantedOp(pair []json.RawMessage) (op Op, err error) {
	if len(pair) != 2 {
		return op, fmt.Errorf("an op is a number and a request, not %d things", len(pair))
	}
	if err := json.Unmarshal(pair[0], &op.Number); err != nil {
		return op, err
	}
	if op.Request = string(compact(pair[1])); op.Request == "null" {
		op.Request = ""
	}
	return op, nil
}

// input makes the turn's input from the base.
func (v *turnVector) input(base json.RawMessage) ([]byte, error) {
	if v.Action != nil {
		return compact(v.Action), nil
	}
	body := v.Body
	if v.Commands != nil {
		body = string(compact(v.Commands))
	}
	edits := append([]edit{{Op: "replace", Path: "/message/message/body", Value: body}}, v.Patch...)
	if v.Pad > 0 {
		edits = append(edits, edit{Op: "add", Path: "/padding", Value: strings.Repeat("x", v.Pad)})
	}
	return apply(base, edits)
}

// compact takes the space between tokens out of a value; what stands in the
// tokens stays.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil // no value
	}
	return b.Bytes()
}
