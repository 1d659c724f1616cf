package mcp

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// maxRecent is how many exchanges of a caller are searched for the exchanges of a task.
const maxRecent = 100

// goOn continues a task by its id: with a message that answers an open question, or
// without one to wait for the answer. done is false for a new message to the task.
func (c *call) goOn(args arguments) (res *mcp.CallToolResult, done bool, err error) {
	given := args.Message != "" || args.input != nil
	if given {
		before, known, err := c.findBefore()
		if err != nil {
			return nil, false, err
		}
		if known {
			return c.repeat(args, before)
		}
	}
	if c.x, err = c.last(args.TaskID); err != nil {
		return nil, false, err
	}
	a, _, err := c.lookAt(c.x)
	switch {
	case err != nil:
		return nil, false, err
	case !given && c.x.ID == "":
		return nil, false, refused(fmt.Sprintf("no message to %s in the task %q is known", c.tool.agent.Name, args.TaskID))
	case !given:
		res, err = c.finish()
		return res, true, err
	case a.Outcome != gateway.NeedsInput:
		if args.QuestionID != "" {
			return nil, false, refused(fmt.Sprintf("the task has no open question %q", args.QuestionID))
		}
		c.x = gateway.Exchange{}
		return nil, false, nil
	}
	res, err = c.answer(args, a)
	return res, true, err
}

// answered is the note of an answer: the exchange that it goes on with, and what was asked in it.
type answered struct {
	Exchange  string         `json:"exchange"`
	Questions []openQuestion `json:"questions,omitempty"`
}

// openQuestion is a question without its text.
type openQuestion struct {
	ID   string `json:"id"`
	Call string `json:"call,omitempty"`
}

// note is the note of an answer to some of the questions. So many that it would be too long are left
// out: a repeat then only waits.
func (c *call) note(questions []gateway.Question) []byte {
	note := answered{Exchange: c.x.ID}
	for _, question := range questions {
		note.Questions = append(note.Questions, openQuestion{question.ID, question.Call})
	}
	raw := encode(note)
	if len(raw) > gateway.MaxNote {
		note.Questions = nil
		raw = encode(note)
	}
	return raw
}

// findBefore finds what the message of the call was taken as when it came before: an answer has a
// note. The task may have gone on since, and ask something else.
func (c *call) findBefore() (note answered, known bool, err error) {
	if c.id, err = c.messageID(); err != nil {
		return note, false, err
	}
	if f := swarm.ForwardingOf(c.ctx); c.id == "" && f != nil {
		c.id = f.Key
	}
	if c.id == "" {
		return note, false, nil
	}
	x, err := c.g.rt.Find(c.ctx, c.q.caller, c.id)
	if errors.Is(err, gateway.ErrUnknown) {
		return note, false, nil
	}
	_ = json.Unmarshal(x.Note, &note) // a message that answers nothing has none
	return note, err == nil, err
}

// repeat goes on with a call whose message came before. done is false for one that answered nothing:
// it is sent again, and the runtime finds that.
func (c *call) repeat(args arguments, before answered) (res *mcp.CallToolResult, done bool, err error) {
	if before.Exchange == "" {
		return nil, false, nil
	}
	if c.x, err = c.g.rt.Find(c.ctx, c.q.caller, before.Exchange); err != nil {
		return nil, false, err
	}
	if c.x.Conversation != args.TaskID || !c.tool.isAsked(c.x) {
		return nil, false, fmt.Errorf("the message was for another task or agent: %w", gateway.ErrConflict)
	}
	if len(before.Questions) == 0 {
		res, err = c.finish()
		return res, true, err
	}
	asked := gateway.Answer{}
	for _, question := range before.Questions {
		asked.Questions = append(asked.Questions, gateway.Question{ID: question.ID, Call: question.Call})
	}
	res, err = c.answer(args, asked)
	return res, true, err
}

func (c *call) lookAt(x gateway.Exchange) (gateway.Answer, bool, error) {
	if x.ID == "" {
		return gateway.Answer{}, false, nil
	}
	return c.g.rt.Look(c.ctx, x)
}

// last is the newest message to the tool's agent in a task.
func (c *call) last(task string) (gateway.Exchange, error) {
	list, err := c.g.rt.List(c.ctx, c.q.caller, "", maxRecent)
	if err != nil {
		return gateway.Exchange{}, err
	}
	for _, x := range list {
		if x.Conversation == task && c.tool.isAsked(x) {
			return x, nil
		}
	}
	return gateway.Exchange{}, nil
}

// answer answers the question that the arguments name, or the only one; or several, by
// an object of their ids and answers.
func (c *call) answer(args arguments, a gateway.Answer) (*mcp.CallToolResult, error) {
	text := args.Message
	if text == "" {
		text = string(args.input)
	}
	var replies []reply
	var several map[string]string
	switch {
	case args.QuestionID != "":
		several = map[string]string{args.QuestionID: text}
	case len(a.Questions) == 1:
		several = map[string]string{a.Questions[0].ID: text}
	case json.Unmarshal([]byte(text), &several) != nil:
		return c.needs(a), nil
	}
	for _, question := range a.Questions {
		if text, ok := several[question.ID]; ok {
			delete(several, question.ID)
			replies = append(replies, reply{question, text, false})
		}
	}
	for id := range several {
		return nil, refused(fmt.Sprintf("the task has no open question %q", id))
	}
	if !complete(a.Questions, replies) {
		return c.needs(a), nil
	}
	if err := c.send(replies, c.note(a.Questions)); err != nil {
		return nil, err
	}
	return c.finish()
}

// complete reports whether there are replies, and with the result of one call that waits
// for a person the results of all: the task goes on with the others failed.
func complete(questions []gateway.Question, replies []reply) bool {
	open, given := 0, 0
	for _, question := range questions {
		if question.Call != "" {
			open++
		}
	}
	for _, r := range replies {
		if r.question.Call != "" {
			given++
		}
	}
	return len(replies) > 0 && (given == 0 || given == open)
}

// resume goes on with a call whose client brings the answers to its questions.
func (c *call) resume(state string) (res *mcp.CallToolResult, err error) {
	x, err := c.g.rt.Find(c.ctx, c.q.caller, state)
	if errors.Is(err, gateway.ErrUnknown) || err == nil && !c.tool.isAsked(x) {
		return nil, refused("no call of this tool has this state")
	}
	if err != nil {
		return nil, err
	}
	c.x = x
	a, _, err := c.lookAt(c.x)
	if err != nil {
		return nil, err
	}
	var replies []reply
	for _, question := range a.Questions {
		if given, ok := c.req.Params.InputResponses[question.ID].(*mcp.ElicitResult); ok {
			replies = append(replies, replyBy(question, given))
		}
	}
	if complete(a.Questions, replies) {
		if err := c.send(replies, nil); err != nil {
			return nil, err
		}
	}
	return c.finish()
}

// reply is the answer to a question.
type reply struct {
	question gateway.Question
	text     string
	declined bool
}

// send brings replies to the agent: each by itself, but the results of calls that wait
// for a person together. The first has the id of the call, if that is known, and the note. A question
// that is no longer open was answered elsewhere, or the task is over: the exchange has what follows.
func (c *call) send(replies []reply, note []byte) error {
	results := gateway.Ask{Kind: gateway.Resumes}
	id := func(question string) string {
		if first := c.id; note != nil && first != "" {
			c.id = ""
			return first
		}
		return c.x.ID + "/" + question
	}
	for _, r := range replies {
		if r.question.Call != "" {
			results.Results = append(results.Results, gateway.CallResult{Call: r.question.Call, Content: r.text, Error: r.declined})
			continue
		}
		if err := c.sendOne(gateway.Ask{Kind: gateway.Answers, ID: id(r.question.ID), Answers: r.question.ID, Body: r.text, Note: note}); err != nil {
			return err
		}
	}
	if len(results.Results) == 0 {
		return nil
	}
	i := slices.IndexFunc(replies, func(r reply) bool { return r.question.Call != "" })
	results.ID, results.Note = id(replies[i].question.ID), note
	return c.sendOne(results)
}

func (c *call) sendOne(a gateway.Ask) error {
	a.Digest = sha256.Sum256(encode([]any{a.Answers, a.Body, a.Results}))
	a.Swarm, a.To, a.Conversation, a.Trace = c.x.Task.Swarm, []string{c.x.Agent}, c.x.Conversation, c.q.trace
	x, err := c.g.rt.Ask(c.ctx, c.q.caller, a)
	c.recorded = true
	c.g.recordCall(c.q, a.ID, x, err)
	if errors.Is(err, gateway.ErrUnknown) {
		return nil
	}
	return because(c.ctx, err)
}
