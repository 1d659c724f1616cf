package trace

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"skep/host/internal/swarm"
)

// Committed sends the spans of a commit: of the turn that it ends with what the turn has called,
// and of the task if it ends. It implements [swarm.Observer].
func (s *Sender) Committed(c swarm.Change) {
	if c.Turn != nil && !c.Turn.Suspended {
		s.sendTurn(c)
	}
	if c.Trace != nil && c.To != c.From && c.To.Ended() {
		s.sendTask(c)
	}
}

// span is what is told of a part of a task.
type span struct {
	trace      [16]byte
	id, parent [8]byte
	operation  attribute.KeyValue
	subject    string // what is invoked; may be empty
	kind       trace.SpanKind
	start, end time.Time
	attributes []attribute.KeyValue
	failure    string // its kind, empty for none
}

func (s *Sender) sendTask(c swarm.Change) {
	id, own, sampled := c.Trace.Span.IDs()
	if !sampled {
		return
	}
	_, parent, _ := c.Trace.Caller.IDs()
	var failure string
	if c.To != swarm.StateCompleted {
		failure = string(c.To)
	}
	s.send(span{
		trace: id, id: own, parent: parent, operation: semconv.GenAIOperationNameInvokeWorkflow, subject: c.Task.Swarm,
		start: c.Trace.Since, end: c.At, failure: failure,
		attributes: append(ofTask(c.Task), semconv.GenAIWorkflowName(c.Task.Swarm), attribute.String("skep.task.state", string(c.To))),
	})
}

func (s *Sender) sendTurn(c swarm.Change) {
	t := c.Turn
	id, own, sampled := t.Trace.IDs()
	if !sampled {
		return
	}
	_, parent, _ := t.Parent.IDs()
	var failure string
	if t.Failure != nil {
		failure = t.Failure.Cause
	}
	about := ofTask(c.Task)
	s.send(span{
		trace: id, id: own, parent: parent, operation: semconv.GenAIOperationNameInvokeAgent, subject: t.Agent,
		start: t.Start, end: t.Start.Add(t.Wall), failure: failure,
		attributes: append(about[:len(about):len(about)], semconv.GenAIAgentName(t.Agent), attribute.Int64("skep.turn", t.N),
			attribute.Int64("skep.turn.queued_ms", t.Queued.Milliseconds())),
	})
	spans := make(map[string][8]byte, len(t.Calls))
	for _, call := range t.Calls {
		spans[call.Path] = call.Span
	}
	for _, call := range t.Calls {
		s.sendCall(id, enclosing(spans, call.Path, own), call, about)
	}
}

// enclosing returns the span of the action in which a call was made, or else the turn's.
func enclosing(spans map[string][8]byte, path string, turn [8]byte) [8]byte {
	for at := strings.LastIndexByte(path, '.'); at >= 0; at = strings.LastIndexByte(path, '.') {
		path = path[:at]
		if span, has := spans[path]; has {
			return span
		}
	}
	return turn
}

func (s *Sender) sendCall(id [16]byte, parent [8]byte, call swarm.CallShape, about []attribute.KeyValue) {
	out := span{
		trace: id, id: call.Span, parent: parent, subject: call.Name, start: call.Begin, end: call.End, failure: call.Code,
		operation: semconv.GenAIOperationNameExecuteTool, attributes: about[:len(about):len(about)],
	}
	add := func(more ...attribute.KeyValue) { out.attributes = append(out.attributes, more...) }
	if call.Model {
		out.operation, out.kind = semconv.GenAIOperationNameChat, trace.SpanKindClient
		if call.Provider != "" {
			add(semconv.GenAIProviderNameKey.String(call.Provider))
		}
		if call.Name != "" {
			add(semconv.GenAIRequestModel(call.Name))
		}
		if call.InputTokens+call.OutputTokens > 0 {
			add(semconv.GenAIUsageInputTokens(int(call.InputTokens)), semconv.GenAIUsageOutputTokens(int(call.OutputTokens)))
		}
	} else if call.Name != "" {
		add(semconv.GenAIToolName(call.Name))
	}
	s.send(out)
}

// ofTask says which task a span belongs to.
func ofTask(key swarm.TaskKey) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.GenAIConversationID(key.Task), attribute.String("skep.tenant", key.Tenant),
		attribute.String("skep.swarm", key.Swarm), attribute.String("skep.instance", key.Instance),
	}
}

func (s *Sender) send(p span) {
	ctx := context.WithValue(context.Background(), idsKey{}, p)
	if p.parent != [8]byte{} {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: p.trace, SpanID: p.parent, TraceFlags: trace.FlagsSampled, Remote: true,
		}))
	}
	name := p.operation.Value.AsString()
	if p.subject != "" {
		name += " " + p.subject
	}
	_, out := s.tracer.Start(ctx, name, trace.WithTimestamp(p.start), trace.WithSpanKind(p.kind),
		trace.WithAttributes(p.operation), trace.WithAttributes(p.attributes...))
	if p.failure != "" {
		out.SetAttributes(semconv.ErrorTypeKey.String(p.failure))
		out.SetStatus(codes.Error, "")
	}
	out.End(trace.WithTimestamp(p.end))
}

// idsKey is the key of the [span] in a context.
type idsKey struct{}

// givenIDs gives each span the ids that it has already.
type givenIDs struct{}

var _ sdktrace.IDGenerator = givenIDs{}

// NewIDs implements [sdktrace.IDGenerator].
func (givenIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	p, _ := ctx.Value(idsKey{}).(span)
	return p.trace, p.id
}

// NewSpanID implements [sdktrace.IDGenerator].
func (givenIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	p, _ := ctx.Value(idsKey{}).(span)
	return p.id
}
