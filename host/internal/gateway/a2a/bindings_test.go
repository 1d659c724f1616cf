package a2a_test

import (
	"context"
	"errors"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/swarm"
)

// TestBindings: a message is answered by a task in every binding and version (X-001,
// ), and the task is found again (X-004, G-021).
func TestBindings(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			c := s.client(t, b, "echo", token)
			req := request("hello")
			task := send(t, c, req)
			if task.Status.State != sdk.TaskStateCompleted || answer(t, task) != "hello" || task.ContextID == "" {
				t.Fatalf("got %+v", task)
			}
			again, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: task.ID})
			if err != nil || again.Status.State != sdk.TaskStateCompleted || answer(t, again) != "hello" {
				t.Fatalf("GetTask: %+v, %v", again, err)
			}
			if repeat := send(t, c, req); repeat.ID != task.ID {
				t.Errorf("a repeat made task %s besides %s", repeat.ID, task.ID)
			}
			if _, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: task.ID}); !errors.Is(err, sdk.ErrTaskNotCancelable) {
				t.Errorf("CancelTask of an answered task: %v", err)
			}
			if _, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: "other"}); !errors.Is(err, sdk.ErrTaskNotFound) {
				t.Errorf("GetTask of another: %v", err)
			}
			failed := send(t, s.client(t, b, "fails", token), request("x"))
			if failed.Status.State != sdk.TaskStateFailed || failed.Status.Message.Parts[0].Text() != "the turn trapped" {
				t.Errorf("a failure is shown as %+v", failed.Status)
			}
		})
	}
}

// TestStreams: the chunks of an answer are pieces of one artifact that the whole answer
// replaces; a reader that comes back reads the same chunks.
func TestStreams(t *testing.T) {
	t.Parallel()
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			c := s.client(t, b, "chunks", token)
			var first, second []string
			var id sdk.TaskID
			for event, err := range c.SendStreamingMessage(t.Context(), request("go")) {
				if err != nil {
					t.Fatal(err)
				}
				id = event.TaskInfo().TaskID
				if first = append(first, show(event)); len(first) == 3 {
					break
				}
			}
			for event, err := range c.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: id}) {
				if err != nil {
					t.Fatal(err)
				}
				if second = append(second, show(event)); len(second) == 3 {
					close(s.release)
				}
			}
			want := []string{"task TASK_STATE_WORKING", "new one ", "append two", "new one two", "status TASK_STATE_COMPLETED"}
			if !equal(first, want[:3]) || !equal(second, want) {
				t.Errorf("read %q, then %q; want %q", first, second, want)
			}
		})
	}
}

// show tells an event in one line.
func show(e sdk.Event) string {
	switch e := e.(type) {
	case *sdk.Task:
		return "task " + string(e.Status.State)
	case *sdk.TaskStatusUpdateEvent:
		text := "status " + string(e.Status.State)
		if m := e.Status.Message; m != nil && len(m.Parts) > 0 {
			text += " " + m.Parts[0].Text()
		}
		return text
	case *sdk.TaskArtifactUpdateEvent:
		if e.Append {
			return "append " + e.Artifact.Parts[0].Text()
		}
		return "new " + e.Artifact.Parts[0].Text()
	}
	return "?"
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestInputRequired: a question is a task that needs input, a message with its task is
// the answer, and the task goes on.
func TestInputRequired(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, b := range bindings {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			c := s.client(t, b, "asks", token)
			task := send(t, c, request("hi"))
			if task.Status.State != sdk.TaskStateInputRequired || task.Status.Message.Parts[0].Text() != "What is your name?" {
				t.Fatalf("got %+v", task.Status)
			}
			var events []string
			for event, err := range c.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: task.ID}) {
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, show(event))
			}
			if want := []string{"task TASK_STATE_WORKING", "status TASK_STATE_INPUT_REQUIRED What is your name?"}; !equal(events, want) {
				t.Errorf("a stream of a task that needs input reads %q, want %q", events, want)
			}
			reply := request("Ann")
			reply.Message.TaskID = task.ID
			done := send(t, c, reply)
			if done.ID != task.ID || done.Status.State != sdk.TaskStateCompleted || answer(t, done) != "hello Ann" {
				t.Errorf("the answer leads to %+v", done)
			}
			if repeat := send(t, c, reply); repeat.ID != task.ID {
				t.Errorf("a repeated answer leads to task %s", repeat.ID)
			}
			late := request("Bob")
			late.Message.TaskID = task.ID
			if _, err := c.SendMessage(t.Context(), late); !errors.Is(err, sdk.ErrUnsupportedOperation) {
				t.Errorf("a message to a task that is over: %v", err)
			}
			again := request("me again")
			again.Message.ContextID = task.ContextID
			if next := send(t, c, again); next.ID == task.ID || next.ContextID != task.ContextID {
				t.Errorf("a message of the conversation leads to %+v", next)
			}
		})
	}
}

// TestResume: calls that wait for persons are questions too. A text is the result of one
// call; of several, a data part has the results.
func TestResume(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expose("calls", callsTwice)
	s.expose("call", func(ctx context.Context, t *gatewaytest.Turn) gateway.Answer {
		text, _, _ := t.Question(ctx, gateway.Question{ID: "only", Call: "c0", Text: "may I?"})
		return gateway.Answer{Body: text}
	})
	c := s.client(t, bindings[0], "call", token)
	reply := request("yes")
	reply.Message.TaskID = send(t, c, request("go")).ID
	if task := send(t, c, reply); answer(t, task) != "yes" {
		t.Errorf("one call: %+v", task)
	}
	c = s.client(t, bindings[0], "calls", token)
	task := send(t, c, request("go"))
	for len(task.Status.Message.Parts) < 2 { // the second question may come after the first was seen
		var err error
		if task, err = c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: task.ID}); err != nil {
			t.Fatal(err)
		}
	}
	reply = request("yes")
	reply.Message.TaskID = task.ID
	if _, err := c.SendMessage(t.Context(), reply); !errors.Is(err, sdk.ErrInvalidParams) {
		t.Errorf("one text for two calls: %v", err)
	}
	reply = request("")
	reply.Message.TaskID = task.ID
	reply.Message.Parts = sdk.ContentParts{sdk.NewDataPart(map[string]any{"q1": "first!", "q2": map[string]any{"n": 2}})}
	if task = send(t, c, reply); answer(t, task) != `first! {"n":2}` {
		t.Errorf("two calls: %+v", task)
	}
}

// TestHold: a caller that waits is held for hold, and one that does not wait is not; the
// task is then working.
func TestHold(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *a2a.Options) { o.Hold = time.Millisecond })
	c := s.client(t, bindings[0], "slow", token)
	if task := send(t, c, request("go")); task.Status.State != sdk.TaskStateWorking {
		t.Errorf("after hold the task is %s", task.Status.State)
	}
	patient := newSite(t, func(o *a2a.Options) { o.Hold = time.Hour })
	c = patient.client(t, bindings[0], "slow", token)
	req := request("go")
	req.Config = &sdk.SendMessageConfig{ReturnImmediately: true}
	task := send(t, c, req)
	if task.Status.State != sdk.TaskStateWorking {
		t.Errorf("a caller that does not wait gets %s", task.Status.State)
	}
	busy := request("more")
	busy.Message.TaskID = task.ID
	if _, err := c.SendMessage(t.Context(), busy); !errors.Is(err, sdk.ErrUnsupportedOperation) {
		t.Errorf("a message to a working task: %v", err)
	}
	cancelled, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: task.ID})
	if err != nil || cancelled.Status.State != sdk.TaskStateCanceled {
		t.Errorf("CancelTask (X-003): %+v, %v", cancelled, err)
	}
}

// TestParts: data is JSON both ways, bytes are blobs both ways, an address is not fetched
//
func TestParts(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	seen := make(chan gateway.Ask, 1)
	s.expose("parts", answersParts(seen))
	for _, b := range bindings[:3] {
		c := s.client(t, b, "parts", token)
		req := request("text")
		data, raw := sdk.NewDataPart(map[string]any{"a": 1.5}), sdk.NewRawPart([]byte{0, 255})
		raw.Filename, raw.MediaType = "x.bin", "image/png"
		req.Message.SetMeta("traceparent", "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x")
		req.Message.SetMeta("tracestate", "rojo=1")
		req.Message.Parts = append(req.Message.Parts, data, raw, sdk.NewFileURLPart("https://example.org/f", "text/html"))
		task := send(t, c, req)
		ask := <-seen
		if ask.Body != "text\n{\"a\":1.5}\nhttps://example.org/f" || len(ask.Parts) != 1 || string(ask.Parts[0].Data) != "\x00\xff" || ask.Parts[0].Name != "x.bin" || ask.Parts[0].Type != "image/png" {
			t.Errorf("%s: the agent gets %q, %+v", b.name, ask.Body, ask.Parts)
		}
		if want := swarm.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "rojo=1"); ask.Trace != want {
			t.Errorf("%s: the trace is %q, want %q", b.name, ask.Trace, want)
		}
		got := task.Artifacts[0].Parts
		if len(got) != 2 || got[0].Data().(map[string]any)["ok"] != true || string(got[1].Raw()) != "\x01\x02" || got[1].MediaType != "image/gif" {
			t.Errorf("%s: the answer has %+v", b.name, got)
		}
	}
}
