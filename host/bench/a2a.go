package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
)

// What the agent behind a2a-go's server is asked to do.
const (
	wantAnswer = "hello" // what the script agent answers, written by hand
	wantGuest  = "guest" // the same, by the script agent's own module
	wantBurst  = "burst" // events, when the signal comes
)

// a2aJob serves an agent with the REST handler of a2a-go and its default store of
// tasks, in memory.
func a2aJob(ctx context.Context, p pipe, _ []string) error {
	engine, err := newEngine(ctx, wasm.Options{})
	if err != nil {
		return err
	}
	defer engine.Close(ctx)
	wasmBytes, err := readGuest("bin/plugins/script.wasm")
	if err != nil {
		return err
	}
	module, err := engine.Load(ctx, wasm.Source{Name: "boss", Wasm: wasmBytes})
	if err != nil {
		return err
	}
	agent := &a2aAgent{signal: newSignal(), module: module, input: turnInput("hello")}
	handler := a2asrv.NewHandler(agent, a2asrv.WithTaskStore(taskstore.NewInMemory(nil)), a2asrv.WithLogger(slog.New(slog.DiscardHandler)))
	mux := http.NewServeMux()
	mux.Handle("/", a2asrv.NewRESTHandler(handler))
	mux.Handle("POST /open", agent.signal)
	return p.serveHTTP(mux)
}

// a2aAgent works for a2a-go's server.
type a2aAgent struct {
	signal *signal
	module *wasm.Module
	input  []byte
}

var _ a2asrv.AgentExecutor = (*a2aAgent)(nil)

// Execute makes a task of a message and completes it.
func (g *a2aAgent) Execute(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		wait := g.signal.next() // before anybody knows the task
		if !yield(a2a.NewSubmittedTask(ec, ec.Message), nil) {
			return
		}
		answer, err := "boss got [q] hello", error(nil)
		switch ec.Message.Parts[0].Text() {
		case wantGuest:
			answer, err = g.turn(ctx)
		case wantBurst:
			var b burst
			if b, err = wait(ctx); err == nil && !artifacts(ec, b, yield) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
			return
		}
		said := a2a.NewMessageForTask(a2a.MessageRoleAgent, ec, a2a.NewTextPart(answer))
		yield(a2a.NewStatusUpdateEvent(ec, a2a.TaskStateCompleted, said), nil)
	}
}

// Cancel is never called.
func (*a2aAgent) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) { yield(nil, errors.New("not cancelled here")) }
}

// artifacts sends a burst, but for the completion, as pieces of one artifact: that
// is how an agent streams there. It returns false when no more is wanted.
func artifacts(ec *a2asrv.ExecutorContext, b burst, yield func(a2a.Event, error) bool) bool {
	var artifact a2a.ArtifactID
	for range b.events - 1 {
		piece := a2a.NewTextPart(strings.Repeat("x", max(b.size-artifactAround, 1)))
		event := a2a.NewArtifactUpdateEvent(ec, artifact, piece)
		if artifact == "" {
			event = a2a.NewArtifactEvent(ec, piece)
			artifact = event.Artifact.ID
		}
		if !yield(event, nil) {
			return false
		}
	}
	return true
}

// artifactAround is about what an event of a piece is besides its text, in bytes.
const artifactAround = 266

// turn runs the guest once, as a host would.
func (g *a2aAgent) turn(ctx context.Context) (string, error) {
	var c completion
	_, err := turnOf(ctx, g.module, g.input, &c, turn.Limits{})
	return c.answer, err
}

// completion takes the answer that a guest completes its task with.
type completion struct {
	cannedOps
	answer string
}

// Call keeps the finish message.
func (c *completion) Call(_ context.Context, op abi.Op, args []byte) ([]byte, *abi.Error) {
	var in struct {
		Args struct {
			Finish string `json:"finish_message"`
		} `json:"args"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, op, "args", "%v", err)
	}
	c.answer = in.Args.Finish
	return cannedAnswer(), nil
}
