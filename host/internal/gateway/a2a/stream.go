package a2a

import (
	"context"
	"errors"
	"io"
	"iter"
	"strconv"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
)

type events = iter.Seq2[a2a.Event, error]

// failed is a stream of one error.
func failed(err error) events {
	return func(yield func(a2a.Event, error) bool) { yield(nil, err) }
}

// SendStreamingMessage implements [a2asrv.RequestHandler].
func (h requests) SendStreamingMessage(ctx context.Context, req *a2a.SendMessageRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		_, x, err := h.accept(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		h.follow(ctx, x)(yield)
	}
}

// SubscribeToTask implements [a2asrv.RequestHandler].
func (h requests) SubscribeToTask(ctx context.Context, req *a2a.SubscribeToTaskRequest) iter.Seq2[a2a.Event, error] {
	_, x, err := h.find(ctx, req.Tenant, req.ID)
	if err != nil {
		return failed(err)
	}
	task, err := h.snapshot(ctx, x)
	switch {
	case err != nil:
		return failed(h.protocolError(err))
	case task.Status.State.Terminal():
		return failed(unsupported("the task is over: " + string(task.Status.State)))
	}
	return h.follow(ctx, x)
}

// follow reads a task from its start: the task without artifacts, then every piece. So a
// reader that comes back has the same chunks, and starts its artifact anew. The stream
// ends with the answer, or when the task needs input.
func (h requests) follow(ctx context.Context, x gateway.Exchange) events {
	return func(yield func(a2a.Event, error) bool) {
		stream, err := h.Runtime.Follow(ctx, x, 0)
		if err != nil {
			yield(nil, h.protocolError(err))
			return
		}
		defer stream.Close()
		if !yield(workingTask(x), nil) {
			return
		}
		for {
			piece, err := stream.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			last := false
			if err == nil {
				last, err = h.showPiece(ctx, x, piece, yield)
			}
			if err != nil {
				yield(nil, h.protocolError(err))
				return
			}
			if last {
				return
			}
		}
	}
}

// showPiece gives a piece to a reader and reports whether it was the last.
func (h requests) showPiece(ctx context.Context, x gateway.Exchange, p gateway.Piece, yield func(a2a.Event, error) bool) (last bool, err error) {
	task := a2a.TaskInfo{TaskID: taskID(x.ID), ContextID: x.Conversation}
	status := func(s a2a.TaskStatus) bool {
		return yield(&a2a.TaskStatusUpdateEvent{TaskID: task.TaskID, ContextID: task.ContextID, Status: s}, nil)
	}
	switch {
	case p.Kind == gateway.Chunk:
		return !yield(chunkEvent(task, p), nil), nil
	case p.Kind == gateway.Progress:
		text := agentMessage(x, "progress-"+strconv.FormatInt(p.N, 10), a2a.NewTextPart(p.Text))
		return !status(a2a.TaskStatus{State: a2a.TaskStateWorking, Message: text}), nil
	case p.Answer == nil:
		return false, nil
	case p.Kind == gateway.Asked:
		now, ok, err := h.Runtime.Look(ctx, x)
		if err != nil || !ok || now.Outcome != gateway.NeedsInput {
			return false, err // it was answered: readers take the state for the end
		}
		status(statusOf(x, now))
		return true, nil
	case p.Answer.Outcome == gateway.Done:
		room := int64(maxBlobs)
		artifact, err := h.artifactOf(ctx, x, *p.Answer, &room)
		if err != nil || !yield(&a2a.TaskArtifactUpdateEvent{TaskID: task.TaskID, ContextID: task.ContextID, Artifact: artifact, LastChunk: true}, nil) {
			return true, err
		}
	}
	status(statusOf(x, *p.Answer))
	return true, nil
}

// chunkEvent is a chunk of the answer. The whole answer replaces all chunks in the end.
func chunkEvent(task a2a.TaskInfo, p gateway.Piece) *a2a.TaskArtifactUpdateEvent {
	e := a2a.NewArtifactUpdateEvent(task, answerID, a2a.NewTextPart(p.Text))
	e.Append = p.N > 0
	e.SetMeta("chunk", p.N)
	return e
}
