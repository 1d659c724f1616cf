package rest

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// door names this package among those where messages come in.
const door = "rest"

// post is the body of POST /message, understood.
type post struct {
	swarm.Post
	showEvents, stream bool
	// results are those of kwargs; a post may have them without resuming.
	results *swarm.Results
}

// parsePost reads the body of POST /message (contract 1.3). Whatever the
// reference client sends is taken, its nulls and both names of the text
// included.
func parsePost(body []byte, depth int) (p post, err error) {
	o, err := parseObject(body, depth)
	if err != nil {
		return p, err
	}
	return readPost(o)
}

func readPost(o object) (p post, err error) {
	err = o.texts(goesTo{"message", &p.Body}, goesTo{"body", &p.Body}, goesTo{"subject", &p.Subject},
		goesTo{"entrypoint", &p.Entrypoint}, goesTo{"task_id", &p.Task})
	if err != nil {
		return p, err
	}
	if p.Subject == "" {
		p.Subject = "New Message"
	}
	if p.Entrypoint = strings.TrimSpace(p.Entrypoint); strings.Contains(p.Entrypoint, "@") {
		p.To = []string{p.Entrypoint}
	}
	if p.Type, err = messageType(o); err != nil {
		return p, err
	}
	if p.showEvents, err = o.flag("show_events"); err != nil {
		return p, err
	}
	if p.stream, err = o.flag("stream"); err != nil {
		return p, err
	}
	return p, p.options(o)
}

// options reads how a post continues a task, and its kwargs.
func (p *post) options(o object) error {
	resume, err := o.text("resume_from")
	if err != nil {
		return err
	}
	kw, err := o.object("kwargs")
	if err != nil {
		return err
	}
	if err := p.kwargs(kw); err != nil {
		return err
	}
	switch resume {
	case "":
	case "user_response":
		p.MustExist = true
	case "breakpoint_tool_call":
		p.MustExist, p.Results = true, p.results
		if _, ok := kw.get(breakpointResult); !ok {
			return badRequest("kwargs.%s is required to resume from a breakpoint tool call", breakpointResult)
		}
	default:
		return badRequest("invalid resume_from: %s", resume)
	}
	switch {
	case p.MustExist && p.Task == "":
		return badRequest("task_id is required")
	case p.Body == "" && p.Results == nil:
		return noMessage(o)
	}
	return nil
}

// messageType reads msg_type. Responses and completions are for agents.
func messageType(o object) (mail.Type, error) {
	text, err := o.text("msg_type")
	if err != nil {
		return "", err
	}
	switch t := mail.Type(text); t {
	case "":
		return mail.Request, nil
	case mail.Request, mail.Broadcast, mail.Interrupt:
		return t, nil
	case mail.Response, mail.BroadcastComplete:
		return "", badRequest("error processing message: type '%s' not implemented for this method", text)
	}
	return "", badRequest("invalid message type: %s", text)
}

// digest tells one post from another under the same idempotency key. How the
// answer is to be brought is not part of it: a repeat may ask for a stream.
func (p *post) digest() []byte {
	// A struct of strings and numbers always encodes.
	raw, _ := json.Marshal(struct {
		Body, Subject, Type, Entrypoint, Task string
		MustExist                             bool
		Timeout                               int64
		MaxSteps                              int
		Results                               *swarm.Results `json:",omitempty"`
	}{p.Body, p.Subject, string(p.Type), p.Entrypoint, p.Task, p.MustExist, int64(p.Timeout), p.MaxSteps, p.Results})
	sum := sha256.Sum256(raw)
	return sum[:]
}

// noMessage names the member that is missing to whoever has sent others.
func noMessage(o object) *fault {
	_, body := o["body"]
	_, message := o["message"]
	if body || message || len(o) == 0 {
		return badRequest("no message provided")
	}
	return badRequest("no message provided: the text goes into the member 'body'")
}
