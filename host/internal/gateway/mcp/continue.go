package mcp

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
)

// recent is how many exchanges of a caller are looked through for those of a task.
const recent = 100

// goOn continues a task by its id: with a message that answers an open question, or
// without one to wait for the answer. done is false for a new message to the task.
func (c *call) goOn(args arguments) (res *mcp.CallToolResult, done bool, err error) {
	if c.x, err = c.last(args.TaskID); err != nil {
		return nil, false, err
	}
	given := args.Message != "" || args.input != nil
	a, _, err := c.lookAt(c.x)
	switch {
	case err != nil:
		return nil, false, err
	case !given && c.x.ID == "":
		return refusal(fmt.Sprintf("no message to %s in the task %q is known", c.tool.agent.Name, args.TaskID)), true, nil
	case !given:
		res, err = c.finish()
		return res, true, err
	case a.Outcome != gateway.NeedsInput:
		if args.QuestionID != "" {
			return refusal(fmt.Sprintf("the task has no open question %q", args.QuestionID)), true, nil
		}
		c.x = gateway.Exchange{}
		return nil, false, nil
	}
	res, err = c.answer(args, a)
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
	list, err := c.g.rt.List(c.ctx, c.q.caller, "", recent)
	if err != nil {
		return gateway.Exchange{}, err
	}
	for _, x := range list {
		if x.Conversation == task && x.Task.Swarm == c.tool.agent.Swarm && x.Agent == c.tool.agent.Name {
			return x, nil
		}
	}
	return gateway.Exchange{}, nil
}

// answer answers the question that the arguments name, or the only one.
func (c *call) answer(args arguments, a gateway.Answer) (*mcp.CallToolResult, error) {
	text := args.Message
	if text == "" {
		text = string(args.input)
	}
	for _, question := range a.Questions {
		if args.QuestionID == question.ID || args.QuestionID == "" && len(a.Questions) == 1 {
			if err := c.reply(question, text, false); err != nil {
				return nil, err
			}
			return c.finish()
		}
	}
	if args.QuestionID == "" {
		return c.needs(a), nil
	}
	return refusal(fmt.Sprintf("the task has no open question %q", args.QuestionID)), nil
}

// resume goes on with a call whose client brings the answers to its questions.
func (c *call) resume(state string) (res *mcp.CallToolResult, err error) {
	if c.x, err = c.g.rt.Find(c.ctx, c.q.caller, state); err != nil {
		return nil, err
	}
	a, _, err := c.lookAt(c.x)
	if err != nil {
		return nil, err
	}
	for _, question := range a.Questions {
		given, ok := c.req.Params.InputResponses[question.ID].(*mcp.ElicitResult)
		if !ok {
			continue
		}
		if err := c.replyBy(question, given); err != nil {
			return nil, err
		}
	}
	return c.finish()
}

// reply brings the answer to a question to the agent. A question that is no longer open
// was answered elsewhere, or the task is over: the exchange has what follows.
func (c *call) reply(question gateway.Question, text string, declined bool) error {
	a := gateway.Ask{
		Kind: gateway.Answers, ID: c.x.ID + "/" + question.ID, Digest: digestOf(text, declined), Swarm: c.x.Task.Swarm,
		To: []string{c.x.Agent}, Conversation: c.x.Conversation, Answers: question.ID, Body: text, Trace: c.q.trace,
	}
	if !c.q.caller.IsUser() {
		a.From = c.q.caller.Principal.ID
	}
	if question.Call != "" {
		a.Kind, a.Answers, a.Body = gateway.Resumes, "", ""
		a.Results = []gateway.CallResult{{Call: question.Call, Content: text, Error: declined}}
	}
	_, err := c.g.rt.Ask(c.ctx, c.q.caller, a)
	if errors.Is(err, gateway.ErrUnknown) {
		return nil
	}
	return because(c.ctx, err)
}
