package capability

import (
	"encoding/json"
	"slices"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// maxCallShapes bounds the calls of one turn that are told; the others are left out.
const maxCallShapes = 500

// callShapes are the calls of models and actions of a turn that is traced. The calls of an
// earlier attempt come from its record, with the times of then. nil keeps none. It is used by
// the turn's goroutine.
type callShapes struct {
	list  []swarm.CallShape
	index map[string]int // of the list, by path
	now   func() time.Time
	// carried is set if a part of the turn before it hibernated has noted what is recorded.
	carried bool
}

func newCallShapes(t *swarm.Turn, now func() time.Time) *callShapes {
	if !t.Traced() {
		return nil
	}
	return &callShapes{index: map[string]int{}, now: now}
}

func isShaped(op abi.Op) bool { return op == abi.OpLLMChat || op == abi.OpAction }

// begin notes a call.
func (s *callShapes) begin(o *ops, c call, req []byte) {
	if s == nil || !isShaped(c.op) {
		return
	}
	if shape := s.add(c.path, c.op, s.now()); shape != nil {
		o.nameCall(shape, c, req)
	}
}

func (s *callShapes) add(path string, op abi.Op, at time.Time) *swarm.CallShape {
	if _, has := s.index[path]; has || len(s.list) == maxCallShapes {
		return nil
	}
	s.index[path] = len(s.list)
	s.list = append(s.list, swarm.CallShape{Path: path, Model: op == abi.OpLLMChat, Begin: at})
	return &s.list[len(s.list)-1]
}

// nameCall adds what is called, if the caller may call it.
func (o *ops) nameCall(shape *swarm.CallShape, c call, req []byte) {
	if !shape.Model {
		ask, fault := readToolCall(c, req)
		if fault == nil && (o.actions[ask.Name] != nil || o.turn.NeedsPerson(c.op, ask.Name)) {
			shape.Name = ask.Name
		}
		return
	}
	var ask struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(req, &ask) != nil || o.models[ask.Model] == nil {
		return
	}
	m := o.models[ask.Model]
	shape.Name = m.Name()
	if p, ok := m.(interface{ Provider() string }); ok {
		shape.Provider = p.Provider()
	}
}

// observe notes an entry of the record: of a new call at its end, with the host's time; of an
// earlier attempt at its beginning, too, with the time of then.
func (s *callShapes) observe(e *swarm.Entry, recorded bool) {
	if s == nil || !isShaped(e.Op) || recorded && s.carried {
		return
	}
	at := e.Time
	if !recorded {
		at = s.now()
	}
	if recorded && e.Begins() {
		s.add(e.Call, e.Op, at) // of an action that is not run again
		if i, has := s.index[e.Call]; has {
			s.list[i].Begin = at
		}
	}
	i, has := s.index[e.Call]
	if !has || !s.list[i].End.IsZero() || e.Kind != swarm.EntryAnswer && e.Kind != swarm.EntryCall && e.Kind != swarm.EntryCancel {
		return
	}
	shape := &s.list[i]
	shape.End = at
	switch {
	case e.Err != nil:
		shape.Code = e.Err.Code.String()
	case e.Kind == swarm.EntryCancel:
		shape.Code = abi.CodeCancelled.String()
	}
	if recorded && shape.Model {
		var answer abi.ChatResponse
		if json.Unmarshal(e.Answer, &answer) == nil { // a stream's is not one text
			s.setUsage(e.Call, answer.Usage)
		}
	}
}

func (s *callShapes) setUsage(path string, u abi.ChatUsage) {
	if s == nil {
		return
	}
	if i, has := s.index[path]; has {
		s.list[i].InputTokens, s.list[i].OutputTokens = u.InputTokens, u.OutputTokens
	}
}

// finish returns the calls; those that are not over were cut off with their turn.
func (s *callShapes) finish() []swarm.CallShape {
	if s == nil {
		return nil
	}
	now, list := s.now(), slices.Clone(s.list) // those of a turn that hibernates go on
	for i := range list {
		if shape := &list[i]; shape.End.IsZero() {
			shape.End, shape.Code = now, abi.CodeCancelled.String()
		}
	}
	return list
}
