package swarm

import (
	"maps"
	"time"

	"skep/abi"
)

// Span is a part of a turn that its agent has marked. Spans are in the order in which
// they began.
type Span struct {
	Name string `json:"name"`
	// Parent is the number of the enclosing span, from 1; 0 for none.
	Parent int `json:"parent,omitempty"`
	// Action is the action whose code has marked it.
	Action string `json:"action,omitempty"`
	// Offset is the time from the start of the turn, by the host's clock; for the part
	// of an earlier attempt by the turn's clock.
	Offset   time.Duration `json:"offset"`
	Duration time.Duration `json:"duration"`
	// Attributes are the attributes of its beginning and its end.
	Attributes map[string]string `json:"attributes,omitempty"`
	Error      string            `json:"error,omitempty"`
	// Cut means that it had not ended when its turn or its action did.
	Cut bool `json:"cut,omitempty"`
}

func (s Span) size() int {
	n := len(s.Name) + len(s.Error)
	for name, value := range s.Attributes {
		n += len(name) + len(value)
	}
	return n
}

// span is a span of a running turn.
type span struct {
	Span
	// scope and id identify it in the guest's calls.
	scope string
	id    int64
	open  bool
}

// spans are the spans of a turn, with the size of their texts.
type spans struct {
	list  []span
	bytes int
}

// BeginSpan begins a span; scope separates the action calls of a turn, and is empty for
// the turn itself. The request's texts must be valid. A refusal is LIMIT. A call that is repeated
// after the turn has hibernated gets no id: its answer is recorded.
func (t *Turn) BeginSpan(scope string, req abi.SpanRequest) (id int64, fault *abi.Error) {
	if t.isRepeatingItself() {
		return 0, nil
	}
	if fault := t.checkSpanLimits(req, 1); fault != nil {
		return 0, fault
	}
	id = 1
	parent := 0
	for i, s := range t.spans.list {
		if s.scope == scope {
			id = s.id + 1
		}
		if s.open {
			parent = i + 1
		}
	}
	t.spans.list = append(t.spans.list, span{scope: scope, id: id, open: true, Span: Span{
		Name: req.Name, Parent: parent, Action: t.acting, Offset: t.elapsed(), Attributes: maps.Clone(req.Attributes),
	}})
	return id, nil
}

// EndSpan ends a span. A refusal is NOT_FOUND for a span that is not open, or LIMIT.
func (t *Turn) EndSpan(scope string, req abi.SpanRequest) *abi.Error {
	if t.isRepeatingItself() {
		return nil
	}
	s := t.openSpan(scope, req.ID)
	if s == nil {
		return abi.Errorf(abi.CodeNotFound, abi.OpSpan, "id", "there is no open span %d", req.ID)
	}
	more := maps.Clone(s.Attributes)
	if more == nil {
		more = map[string]string{}
	}
	maps.Copy(more, req.Attributes)
	if len(more) > abi.MaxSpanAttributes {
		return abi.Errorf(abi.CodeLimit, abi.OpSpan, "attributes", "a span of %d attributes, at most %d", len(more), abi.MaxSpanAttributes)
	}
	if fault := t.checkSpanLimits(req, 0); fault != nil {
		return fault
	}
	s.open, s.Error, s.Attributes = false, req.Error, more
	s.Duration = max(0, t.elapsed()-s.Offset)
	return nil
}

func (t *Turn) openSpan(scope string, id int64) *span {
	for i := range t.spans.list {
		if s := &t.spans.list[i]; s.open && s.scope == scope && s.id == id {
			return s
		}
	}
	return nil
}

// checkSpanLimits checks and adds the texts of a request; more is the number of new
// spans.
func (t *Turn) checkSpanLimits(req abi.SpanRequest, more int) *abi.Error {
	bytes := t.spans.bytes + len(req.Name) + len(req.Error)
	for name, value := range req.Attributes {
		bytes += len(name) + len(value)
	}
	switch {
	case t.replay != nil: // an earlier attempt decided it
	case len(t.spans.list)+more > abi.MaxSpans:
		return abi.Errorf(abi.CodeLimit, abi.OpSpan, "spans", "a turn may have %d spans", abi.MaxSpans)
	case bytes > abi.MaxSpanBytes:
		return abi.Errorf(abi.CodeLimit, abi.OpSpan, "bytes", "the spans of the turn would have %d bytes of text, at most %d", bytes, abi.MaxSpanBytes)
	}
	t.spans.bytes = bytes
	return nil
}

// elapsed is the turn's time so far, by the host's clock.
func (t *Turn) elapsed() time.Duration {
	at := t.rt.now()
	if t.replay != nil {
		at = t.replay.Time
	}
	return max(0, at.Sub(t.start))
}

// cutSpans ends the open spans after the first n.
func (t *Turn) cutSpans(n int) {
	for i := range t.spans.list {
		if s := &t.spans.list[i]; i >= n && s.open {
			s.open, s.Cut, s.Duration = false, true, max(0, t.elapsed()-s.Offset)
		}
	}
}

// closeSpans ends all open spans and returns the turn's spans.
func (t *Turn) closeSpans() []Span {
	t.cutSpans(0)
	var list []Span
	for _, s := range t.spans.list {
		list = append(list, s.Span)
	}
	return list
}
