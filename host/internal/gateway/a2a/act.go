package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// cancelTime bounds the attempt to call off a foreign task that took too long.
const cancelTime = 3 * time.Second

// actArgs are the arguments of all verbs.
type actArgs struct {
	Message string     `json:"message"`
	Task    a2a.TaskID `json:"task"`
	Context string     `json:"context"`
}

// acted is the result of a verb that is about a task.
type acted struct {
	State   string      `json:"state"`
	Text    string      `json:"text,omitempty"`
	Task    a2a.TaskID  `json:"task,omitempty"`
	Context string      `json:"context,omitempty"`
	Parts   []actedPart `json:"parts,omitempty"`
}

// actedPart is a part of an answer that is no text. Its content comes by mail only.
type actedPart struct {
	Name  string `json:"name,omitempty"`
	Type  string `json:"type"`
	Bytes int    `json:"bytes"`
}

// Act implements [gateway.Actor].
func (g *Gateway) Act(ctx context.Context, p gateway.Partner, call gateway.Act) (json.RawMessage, error) {
	var args actArgs
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, fmt.Errorf("%w: the arguments are no object of texts", gateway.ErrInvalid)
	}
	timed, cancel := context.WithTimeoutCause(ctx, p.Timeout, errNoAnswer)
	defer cancel()
	f := g.actionTask(p, call, args)
	result, err := f.act(timed, call, args)
	event := gateway.Event{Caller: f.caller, Foreign: f.d.Wrapper.MessageID, Type: call.Verb, Out: true, Text: []byte(args.Message), Task: call.Task.Task}
	err = actError(timed, p, err)
	g.Runtime.Record(event.WithOutcome(false, err))
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// actionTask is the foreign task of an action. Nothing of it is stored: the message has
// the same id on every attempt, by which the partner finds a repeat.
func (g *Gateway) actionTask(p gateway.Partner, call gateway.Act, args actArgs) *foreignTask {
	id := uuid.NewSHA1(uuid.NameSpaceURL, []byte(call.Key)).String()
	d := swarm.Delivery{Task: call.Task, Hops: call.Hops, Trace: call.Trace, Wrapper: mail.Interswarm{MessageID: id, Payload: mail.Payload{
		TaskID: call.Task.Task, ID: id, Body: args.Message, Recipients: []mail.Address{{Type: mail.Agent, Name: mail.FormatAddr("agent", p.Name)}},
	}}}
	record := conversationRecord{Context: args.Context, Open: &openMessage{Message: id, Answers: id, Task: args.Task}}
	return &foreignTask{attempt: &attempt{g: g, p: p, d: d, caller: p.Caller(), record: record, unstored: true}}
}

// act does a verb.
func (f *foreignTask) act(ctx context.Context, call gateway.Act, args actArgs) (any, error) {
	if call.Verb == "card" {
		return f.describe(ctx)
	}
	client, card, err := f.g.connect(ctx, f.p)
	if err != nil {
		return nil, err
	}
	defer client.Destroy()
	f.client, f.streams = client, card.Capabilities.Streaming
	switch call.Verb {
	case "send":
		err = f.exchange(ctx, call, args)
	case "tell":
		var result a2a.SendMessageResult
		if result, err = f.sendOneWay(ctx, args.Task); err == nil {
			err = f.takeEvent(ctx, result)
		}
	case "status":
		err = f.fetchTask(ctx)
	case "cancel":
		err = f.callOff(ctx)
	default:
		err = fmt.Errorf("%w: there is no verb %q", gateway.ErrInvalid, call.Verb)
	}
	if err != nil {
		return nil, err
	}
	result, err := f.acted()
	if err == nil && call.Verb == "send" && (result.State == "failed" || result.State == "rejected" || result.State == "canceled") {
		err = gateway.Refuse("[%s] %s", strings.ToUpper(result.State), result.Text)
	}
	return result, err
}

// described is the result of card.
type described struct {
	Name        string           `json:"name"`
	Description string           `json:"description,omitempty"`
	Version     string           `json:"version,omitempty"`
	Skills      []describedSkill `json:"skills"`
}

type describedSkill struct {
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Examples    []string `json:"examples,omitempty"`
}

// describe reads the partner's card.
func (f *foreignTask) describe(ctx context.Context) (any, error) {
	card, err := f.g.cards.get(ctx, f.p)
	if err != nil {
		return nil, err
	}
	d := described{Name: card.Name, Description: card.Description, Version: card.Version, Skills: []describedSkill{}}
	for _, s := range card.Skills {
		d.Skills = append(d.Skills, describedSkill{s.ID, s.Description, s.Tags, s.Examples})
	}
	return d, nil
}

// exchange sends the message and waits for what comes of it. A task that does not answer
// in time, or whose turn was called off, is called off. When the host stops, the next
// start waits on.
func (f *foreignTask) exchange(ctx context.Context, call gateway.Act, args actArgs) error {
	err := f.converse(ctx, call, args)
	if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), swarm.ErrDraining) {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer cancel()
		_ = f.cancel(late, f.record.Open.Task)
	}
	return err
}

func (f *foreignTask) converse(ctx context.Context, call gateway.Act, args actArgs) error {
	if args.Task == "" {
		return f.send(ctx, "")
	}
	if err := f.fetchTask(ctx); err != nil {
		return err
	}
	switch {
	case f.status.State == a2a.TaskStateInputRequired:
		f.answered = questionKey(f.status)
		return f.send(ctx, args.Task)
	case !call.Retry:
		return gateway.Refuse("the task waits for no input, it is %s; leave task out and name its context", stateWord(f.status.State))
	}
	return f.resume(ctx) // an attempt before has brought the input
}

// callOff cancels a task. The state of one that is over is no error.
func (f *foreignTask) callOff(ctx context.Context) error {
	task, err := f.client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: f.record.Open.Task})
	if errors.Is(err, a2a.ErrTaskNotCancelable) {
		return f.fetchTask(ctx)
	}
	if err != nil {
		return err
	}
	return f.takeEvent(ctx, task)
}

// acted is what is known of the task.
func (f *foreignTask) acted() (acted, error) {
	a := acted{State: stateWord(f.status.State), Task: f.record.Open.Task, Context: f.record.Context}
	var parts []gateway.Part
	var err error
	switch {
	case f.message != nil:
		a.State = "completed"
		a.Text, parts, err = contentOf(f.message.Parts)
	case f.status.State == a2a.TaskStateInputRequired, f.status.State.Terminal() && f.status.State != a2a.TaskStateCompleted:
		a.Text = textOf(f.status.Message)
	default:
		a.Text, parts, err = f.answer()
	}
	for _, p := range parts {
		a.Parts = append(a.Parts, actedPart{p.Name, p.Type, len(p.Data)})
	}
	return a, err
}

// stateWord is a state as agents read it: input_required.
func stateWord(s a2a.TaskState) string {
	return strings.ToLower(strings.TrimPrefix(string(s), "TASK_STATE_"))
}

// actError is an error of a verb as the port has it.
func actError(ctx context.Context, p gateway.Partner, err error) error {
	switch {
	case err == nil, errors.Is(err, gateway.ErrInvalid):
		return err
	case errors.Is(context.Cause(ctx), errNoAnswer):
		return fmt.Errorf("%w: %s did not answer within %s: raise timeout in [gateways.a2a.partners.%s]", gateway.ErrPartner, p.Name, p.Timeout, p.Name)
	case ctx.Err() != nil:
		return ctx.Err()
	case outcomeOf(err).Reason != "":
		return fmt.Errorf("%w: %s", gateway.ErrPartner, outcomeOf(err).Reason)
	}
	return fmt.Errorf("%w: %w", gateway.ErrPartner, err)
}

var _ gateway.Actor = (*Gateway)(nil)
