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
	for _, field := range []struct {
		name string
		to   *string
	}{
		{"message", &p.Body}, {"body", &p.Body}, {"subject", &p.Subject},
		{"entrypoint", &p.Entrypoint}, {"task_id", &p.Task},
	} {
		text, err := o.text(field.name)
		if err != nil {
			return p, err
		}
		if text != "" {
			*field.to = text
		}
	}
	if p.Subject == "" {
		p.Subject = "New Message"
	}
	p.Entrypoint = strings.TrimSpace(p.Entrypoint)
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
		return badRequest("no message provided")
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
