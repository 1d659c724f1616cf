package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
)

// answerID is the artifact that has the answer of a task, in pieces and whole.
const answerID a2a.ArtifactID = "answer"

// states are the states of tasks by the outcomes of their exchanges.
var states = map[gateway.Outcome]a2a.TaskState{
	gateway.Done:       a2a.TaskStateCompleted,
	gateway.NeedsInput: a2a.TaskStateInputRequired,
	gateway.Failed:     a2a.TaskStateFailed,
	gateway.TimedOut:   a2a.TaskStateFailed,
	gateway.Cancelled:  a2a.TaskStateCanceled,
}

// snapshot returns the task of an exchange as it is now.
func (g *Gateway) snapshot(ctx context.Context, x gateway.Exchange) (*a2a.Task, error) {
	room := int64(maxBlobs)
	return g.snapshotWithin(ctx, x, &room)
}

// snapshotWithin returns the task with blobs of so many bytes, by which room is reduced.
func (g *Gateway) snapshotWithin(ctx context.Context, x gateway.Exchange, room *int64) (*a2a.Task, error) {
	a, ok, err := g.Runtime.Look(ctx, x)
	if err != nil || !ok {
		return workingTask(x), err
	}
	return g.taskWith(ctx, x, a, room)
}

// taskWith returns the task of an exchange that has an answer, or needs input.
func (g *Gateway) taskWith(ctx context.Context, x gateway.Exchange, a gateway.Answer, room *int64) (*a2a.Task, error) {
	task := workingTask(x)
	task.Status = statusOf(x, a)
	if a.Outcome != gateway.Done {
		return task, nil
	}
	artifact, err := g.artifactOf(ctx, x, a, room)
	task.Artifacts = []*a2a.Artifact{artifact}
	return task, err
}

// workingTask returns the task of an exchange without an answer.
func workingTask(x gateway.Exchange) *a2a.Task {
	return &a2a.Task{
		ID: taskID(x.ID), ContextID: x.Conversation,
		Status: a2a.TaskStatus{State: a2a.TaskStateWorking, Timestamp: stamp(x.Accepted)},
	}
}

// artifactOf returns the whole answer.
func (g *Gateway) artifactOf(ctx context.Context, x gateway.Exchange, a gateway.Answer, room *int64) (*a2a.Artifact, error) {
	parts, err := g.answerParts(ctx, x, a, room)
	return &a2a.Artifact{ID: answerID, Name: a.Subject, Parts: parts}, err
}

// statusOf returns the state that an answer or a question gives the task, with its text
// unless that is the artifact's.
func statusOf(x gateway.Exchange, a gateway.Answer) a2a.TaskStatus {
	status := a2a.TaskStatus{State: states[a.Outcome], Timestamp: stamp(a.At)}
	switch a.Outcome {
	case gateway.Done:
	case gateway.NeedsInput:
		status.Message = questionMessage(x, a.Questions)
	default:
		text := strings.TrimSpace(a.Subject + "\n" + a.Body)
		status.Message = agentMessage(x, fmt.Sprintf("end-%d", a.Cursor), a2a.NewTextPart(cmp.Or(text, string(a.Outcome))))
	}
	return status
}

// agentMessage returns a message of the agent about a task. The same event has the same
// id on every read.
func agentMessage(x gateway.Exchange, suffix string, parts ...*a2a.Part) *a2a.Message {
	id := taskID(x.ID)
	return &a2a.Message{ID: string(id) + "-" + suffix, Role: a2a.MessageRoleAgent, TaskID: id, ContextID: x.Conversation, Parts: parts}
}

// questionMessage asks what the task waits for. Each part names its question in the
// metadata, and what an answer must look like.
func questionMessage(x gateway.Exchange, questions []gateway.Question) *a2a.Message {
	m := agentMessage(x, "input")
	for _, q := range questions {
		part := a2a.NewTextPart(q.Text)
		part.SetMeta(metaQuestion, q.ID)
		var schema any
		if json.Unmarshal(q.Schema, &schema) == nil {
			part.SetMeta("schema", schema)
		}
		m.Parts = append(m.Parts, part)
		m.ID += "-" + q.ID
	}
	return m
}

func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
