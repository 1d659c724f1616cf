package a2a

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"skep/host/internal/gateway"
)

// Pauses between two looks at a foreign task that cannot be followed.
const (
	minLookPause = 500 * time.Millisecond
	maxLookPause = 15 * time.Second
	// lastLook is the time of the look at a task whose time is over.
	lastLook = 10 * time.Second
)

// Limits of what a foreign agent may send within one attempt.
const (
	maxAnswer    = 16 << 20 // bytes of all artifacts
	maxArtifacts = 1000
	partSize     = 64 // bytes that a part takes besides its content
	// maxStores bounds how often it may give ids of its task, since each are stored: once,
	// and once more where an answer to its question begins another task.
	maxStores = 2
)

// foreignTask follows the task that our message began or continued.
type foreignTask struct {
	*attempt
	client  *a2aclient.Client
	streams bool

	status    a2a.TaskStatus
	artifacts []*a2a.Artifact
	// size counts the bytes of the artifacts, stores how often ids were stored.
	size, stores int
	// message is set when the agent answers without a task.
	message *a2a.Message
	// answered is the question that our message answers. Some servers show the task once
	// more as it was before.
	answered string
}

// begin sends a new message, or goes on with the task that an attempt before began.
func (f *foreignTask) begin(ctx context.Context) error {
	if f.record.Open.Task != "" {
		return f.resume(ctx)
	}
	return f.send(ctx, "")
}

// goOn answers the question of a task. An attempt before may have answered it: the state
// of the task shows that.
func (f *foreignTask) goOn(ctx context.Context) error {
	if err := f.fetchTask(ctx); err != nil {
		return err
	}
	if f.status.State == a2a.TaskStateInputRequired {
		f.answered = questionKey(f.status)
		return f.send(ctx, f.record.Open.Task)
	}
	return f.resume(ctx)
}

// sendOneWay sends a message that wants no answer.
func (f *foreignTask) sendOneWay(ctx context.Context, task a2a.TaskID) (a2a.SendMessageResult, error) {
	req := f.attempt.message(task)
	f.tried = true
	req.Config = &a2a.SendMessageConfig{ReturnImmediately: true}
	return f.client.SendMessage(ctx, req)
}

// cancel asks the foreign agent to stop. A task that is over is no error.
func (f *foreignTask) cancel(ctx context.Context, task a2a.TaskID) error {
	if task == "" {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	f.tried = true
	_, err := f.client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: task})
	if errors.Is(err, a2a.ErrTaskNotCancelable) || errors.Is(err, a2a.ErrTaskNotFound) {
		return nil
	}
	return err
}

// giveUp ends a task whose time is over. One that has ended by then, as while the partner
// could not be reached, has its answer all the same.
func (f *foreignTask) giveUp(ctx context.Context) error {
	if f.record.Open.Task != "" {
		last, done := context.WithTimeout(ctx, lastLook)
		err := f.fetchTask(last)
		done()
		if err == nil && f.status.State.Terminal() {
			return nil
		}
	}
	_ = f.cancel(context.WithoutCancel(ctx), f.record.Open.Task)
	return f.p.NoAnswer(Name, nil)
}

// send sends our message and follows what comes.
func (f *foreignTask) send(ctx context.Context, task a2a.TaskID) error {
	req := f.attempt.message(task)
	f.tried = true
	if !f.streams {
		req.Config = &a2a.SendMessageConfig{}
		result, err := f.client.SendMessage(ctx, req)
		if err != nil {
			return err
		}
		if err := f.takeEvent(ctx, result); err != nil || f.over() {
			return err
		}
		return f.poll(ctx)
	}
	return f.read(ctx, f.client.SendStreamingMessage(ctx, req))
}

// resume goes on with a task whose stream was lost.
func (f *foreignTask) resume(ctx context.Context) error {
	if err := f.fetchTask(ctx); err != nil || f.over() {
		return err
	}
	if !f.streams {
		return f.poll(ctx)
	}
	err := f.read(ctx, f.client.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: f.record.Open.Task}))
	if errors.Is(err, a2a.ErrUnsupportedOperation) || errors.Is(err, a2a.ErrMethodNotFound) || errors.Is(err, a2a.ErrTaskNotFound) {
		return f.poll(ctx) // it ended in between, or is not followed there
	}
	return err
}

// read takes the events of a stream. A stream that ends early is followed by polling.
func (f *foreignTask) read(ctx context.Context, stream events) error {
	for event, err := range stream {
		if err == nil {
			err = f.takeEvent(ctx, event)
		}
		if err != nil {
			return err
		}
		if f.over() {
			return nil
		}
	}
	if f.record.Open.Task == "" {
		return errors.New("the stream ended without a task")
	}
	return f.poll(ctx)
}

// poll looks at the task until it is over or needs input.
func (f *foreignTask) poll(ctx context.Context) error {
	for pause := minLookPause; ; pause = min(2*pause, maxLookPause) {
		if err := f.fetchTask(ctx); err != nil || f.over() {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// fetchTask takes the task as it is now.
func (f *foreignTask) fetchTask(ctx context.Context) error {
	task, err := f.client.GetTask(ctx, &a2a.GetTaskRequest{ID: f.record.Open.Task})
	if err != nil {
		return err
	}
	return f.takeEvent(ctx, task)
}

// takeEvent takes what the foreign agent sends of its task.
func (f *foreignTask) takeEvent(ctx context.Context, event a2a.Event) error {
	info := event.TaskInfo()
	if err := f.storeIDs(ctx, info); err != nil {
		return err
	}
	switch e := event.(type) {
	case *a2a.Message:
		f.message = e
	case *a2a.Task:
		f.status, f.artifacts, f.size = e.Status, nil, 0
		for _, a := range e.Artifacts {
			f.addArtifact(a, false)
		}
	case *a2a.TaskStatusUpdateEvent:
		f.status = e.Status
		if text := textOf(e.Status.Message); text != "" && !f.over() {
			f.show(ctx, gateway.Progress, text)
		}
	case *a2a.TaskArtifactUpdateEvent:
		f.takeArtifact(ctx, e)
	}
	switch {
	case f.size > f.g.maxAnswer:
		return gateway.Refuse("the answer has more than %d bytes", f.g.maxAnswer)
	case len(f.artifacts) > maxArtifacts:
		return gateway.Refuse("the answer has more than %d artifacts", maxArtifacts)
	}
	return nil
}

// storeIDs stores the foreign ids when they first come, so that a crash does not begin
// the foreign task again.
func (f *foreignTask) storeIDs(ctx context.Context, info a2a.TaskInfo) error {
	open := f.record.Open
	if info.TaskID == "" || info.TaskID == open.Task && info.ContextID == f.record.Context {
		return nil
	}
	if len(info.TaskID) > 1024 || len(info.ContextID) > 1024 {
		return gateway.Refuse("its ids have more than 1024 bytes")
	}
	if f.stores++; f.stores > maxStores {
		return gateway.Refuse("it gives its task another id each time")
	}
	open.Task, f.record.Context = info.TaskID, cmp.Or(info.ContextID, f.record.Context)
	return f.store(ctx)
}

// takeArtifact takes a piece of an artifact and shows it.
func (f *foreignTask) takeArtifact(ctx context.Context, e *a2a.TaskArtifactUpdateEvent) {
	if e.Artifact == nil {
		return
	}
	if text, _, err := contentOf(e.Artifact.Parts); err == nil && text != "" && !(e.LastChunk && !e.Append) {
		f.show(ctx, gateway.Chunk, text)
	}
	f.addArtifact(e.Artifact, e.Append)
}

// addArtifact adds an artifact, or appends its parts to the one that it continues. Else it
// replaces that one.
func (f *foreignTask) addArtifact(a *a2a.Artifact, more bool) {
	if a == nil {
		return
	}
	f.size += sizeOf(a.Parts)
	i := slices.IndexFunc(f.artifacts, func(known *a2a.Artifact) bool { return known.ID == a.ID })
	switch {
	case i < 0:
		f.artifacts = append(f.artifacts, a)
	case more:
		f.artifacts[i].Parts = append(f.artifacts[i].Parts, a.Parts...)
	default:
		f.size -= sizeOf(f.artifacts[i].Parts)
		f.artifacts[i] = a
	}
}

// sizeOf is the size of parts in bytes.
func sizeOf(parts a2a.ContentParts) (n int) {
	for _, p := range parts {
		n += partSize
		if p == nil {
			continue
		}
		n += len(p.Text()) + len(p.Raw()) + len(p.URL())
		if data := p.Data(); data != nil {
			raw, _ := json.Marshal(data) // one that fails is refused when it is read
			n += len(raw)
		}
	}
	return n
}

// show shows a piece to the readers of the task that asked. It is no mail: who misses it
// reads the answer.
func (f *foreignTask) show(ctx context.Context, kind gateway.PieceKind, text string) {
	_ = f.g.Runtime.Show(ctx, f.d, gateway.Piece{Kind: kind, N: f.chunks, Text: text})
	if kind == gateway.Chunk {
		f.chunks++
	}
}

// over reports whether the agent has answered, or waits for us.
func (f *foreignTask) over() bool {
	s := f.status.State
	if f.message == nil && s == a2a.TaskStateInputRequired {
		return questionKey(f.status) != f.answered
	}
	return f.message != nil || s.Terminal() || s == a2a.TaskStateAuthRequired
}

// questionKey differs between one question of a task and the next.
func questionKey(s a2a.TaskStatus) string {
	key := "asked"
	if s.Message != nil {
		key += " " + s.Message.ID
	}
	if s.Timestamp != nil {
		key += s.Timestamp.Format(time.RFC3339Nano)
	}
	return key
}

// deliver hands the outcome to the runtime: the answer to our request, or a question.
func (f *foreignTask) deliver(ctx context.Context) error {
	a, err := f.outcome()
	if err != nil {
		return err
	}
	w := f.d.Wrapper
	a.From, a.Swarm, a.To = agentName(w.Payload.Recipient()), w.SourceSwarm, []string{agentName(w.Payload.Sender)}
	a.Answers, a.Of, a.Trace, a.Hops = f.record.Open.Answers, &f.d, f.d.Trace, f.d.Hops
	if len(a.Body) > gateway.MaxText {
		a.Parts = append(a.Parts, gateway.Part{Name: "answer.txt", Type: "text/plain", Data: []byte(a.Body)})
		a.Body = ""
	}
	a.Digest = sha256.Sum256([]byte(a.Subject + "\n" + a.Body))
	_, err = f.g.Runtime.Ask(ctx, f.caller, a)
	if errors.Is(err, gateway.ErrConflict) || errors.Is(err, gateway.ErrUnknown) {
		return nil // an attempt before has brought it, or our task does not wait any more
	}
	return err
}
