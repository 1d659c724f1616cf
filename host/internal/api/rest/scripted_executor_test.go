package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// scriptedExecutor plays the bundled script agent's rules in miniature: a body that is an
// array of [name, args] pairs is a list of calls, any other message gets one
// plain answer. Its probes are sleep {ms}, gate {name}, which waits until the
// test opens the gate, emit {…}, trap {}, journal {}, which makes a record of the
// turn, and record {…}, which ends it with one.
type scriptedExecutor struct {
	mu    sync.Mutex
	gates map[string]chan struct{}
}

type gateArgs struct {
	Name string `json:"name"`
	MS   int    `json:"ms"`
}

func newScriptedExecutor() *scriptedExecutor {
	return &scriptedExecutor{gates: map[string]chan struct{}{}}
}

// gate returns a gate, which is closed at first.
func (s *scriptedExecutor) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[name] == nil {
		s.gates[name] = make(chan struct{})
	}
	return s.gates[name]
}

func (s *scriptedExecutor) open(name string) { close(s.gate(name)) }

func (s *scriptedExecutor) Execute(ctx context.Context, t *swarm.Turn) swarm.Outcome {
	var in abi.TurnInput
	if err := json.Unmarshal(t.Input(), &in); err != nil {
		return failure(err)
	}
	m, err := mail.ParseMessage(in.Message)
	if err != nil {
		return failure(err)
	}
	var calls [][2]json.RawMessage
	if m.Payload.Sender.Type != mail.System && json.Unmarshal([]byte(m.Payload.Body), &calls) == nil {
		for _, c := range calls {
			var name string
			_ = json.Unmarshal(c[0], &name)
			switch name {
			case "ask":
				return askPeople(t, c[1])
			case "record":
				return recorded(t, c[1])
			}
			if err := s.call(ctx, t, name, c[1]); err != nil {
				return failure(err)
			}
		}
		return swarm.Outcome{Usage: swarm.Usage{Fuel: 7, CPU: 1500 * time.Microsecond}}
	}
	plainTurn(t, m)
	return swarm.Outcome{Usage: swarm.Usage{Fuel: 7, CPU: 1500 * time.Microsecond}}
}

func failure(err error) swarm.Outcome {
	return swarm.Outcome{Failure: &swarm.Failure{Cause: "trap", Message: err.Error()}}
}

func (s *scriptedExecutor) call(ctx context.Context, t *swarm.Turn, name string, args json.RawMessage) error {
	var a gateArgs
	switch name {
	case "sleep":
		_ = json.Unmarshal(args, &a)
		return t.Clock().Sleep(ctx, time.Duration(a.MS)*time.Millisecond)
	case "gate":
		_ = json.Unmarshal(args, &a)
		select {
		case <-s.gate(a.Name):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case "journal":
		return journal(t)
	case "mark":
		mark(t)
		return nil
	case "emit":
		var req abi.EmitRequest
		_ = json.Unmarshal(args, &req)
		if _, fault := t.Emit(req); fault != nil {
			return fault
		}
		return nil
	case "trap":
		return fmt.Errorf("unreachable executed")
	}
	_, _ = t.CallMailTool(abi.MailRequest{Tool: name, Args: args})
	return nil
}

// askPeople suspends the turn until all of its questions are answered, and then
// completes with the answers.
func askPeople(t *swarm.Turn, raw json.RawMessage) swarm.Outcome {
	var names []string
	_ = json.Unmarshal(raw, &names)
	past := t.PriorAttempt()
	if past == nil {
		header := t.Header()
		out := swarm.Outcome{Record: &swarm.Record{Header: &header}}
		for i, name := range names {
			call := fmt.Sprint(i + 1)
			out.Suspended = append(out.Suspended, swarm.BreakpointCall{
				Call: call, Op: abi.OpAction, ID: t.CallID(call), Name: name, Args: json.RawMessage(`{"n":1}`),
			})
		}
		return out
	}
	text := ""
	for _, e := range past.Answers {
		text += string(e.Answer)
		if e.Err != nil {
			text += e.Err.Error()
		}
	}
	done, _ := json.Marshal(map[string]any{"finish_message": text})
	_, _ = t.CallMailTool(abi.MailRequest{Tool: mail.ToolTaskComplete, Args: done})
	return swarm.Outcome{}
}

func plainTurn(t *swarm.Turn, m mail.Message) {
	p := m.Payload
	tool, args := "", map[string]any{}
	switch {
	case p.Sender.Type == mail.System && !t.Agent().CanComplete:
		return
	case m.Type == mail.Broadcast && p.Sender.Type != mail.System:
		tool = mail.ToolAcknowledgeBroadcast
	case t.Agent().CanComplete:
		tool, args["finish_message"] = mail.ToolTaskComplete, fmt.Sprintf("%s got [%s] %s", t.Agent().Name, p.Subject, p.Body)
	case m.Type == mail.Request || m.Type == mail.Interrupt:
		tool = mail.ToolSendResponse
		args["target"], args["subject"], args["body"] = p.Sender.Name, "Re: "+p.Subject, "echo: "+p.Body
	default:
		return
	}
	raw, _ := json.Marshal(args)
	_, _ = t.CallMailTool(abi.MailRequest{Tool: tool, Args: raw})
}

// calls writes a script.
func calls(pairs ...any) string {
	list := [][2]any{}
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, [2]any{pairs[i], pairs[i+1]})
	}
	raw, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

type obj = map[string]any

func finish(text string) (string, obj) { return "task_complete", obj{"finish_message": text} }
