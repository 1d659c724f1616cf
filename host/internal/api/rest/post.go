package rest

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// door is the [swarm.Post.Door] of posts over HTTP.
const door = "rest"

// post is the parsed body of POST /message.
type post struct {
	swarm.Post
	showEvents, stream bool
	// results are the results in kwargs. A post may have them without resuming a
	// task.
	results *swarm.Results
}

// readPost reads the body of POST /message. It accepts all that the reference
// client sends: nulls, and both names of the text.
func readPost(o *object) (p post, err error) {
	err = o.readTexts(textField{"message", &p.Body}, textField{"body", &p.Body}, textField{"subject", &p.Subject},
		textField{"entrypoint", &p.Entrypoint}, textField{"task_id", &p.Task})
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
	if p.showEvents, err = o.boolean("show_events"); err != nil {
		return p, err
	}
	if p.stream, err = o.boolean("stream"); err != nil {
		return p, err
	}
	return p, p.readOptions(o)
}

// readOptions reads how a post resumes a task, and its kwargs.
func (p *post) readOptions(o *object) error {
	resume, err := o.str("resume_from")
	if err != nil {
		return err
	}
	kw, err := o.object("kwargs")
	if err != nil {
		return err
	}
	if err := p.readKwargs(kw); err != nil {
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

// messageType reads msg_type. Only agents send responses and completions.
func messageType(o *object) (mail.Type, error) {
	text, err := o.str("msg_type")
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

// digest distinguishes posts under the same idempotency key. The form of the
// answer is not part of it: a repeat may ask for a stream.
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

// noMessage refuses a post without a text, and names the missing member when
// other members are present.
func noMessage(o *object) *fault {
	_, body := o.members["body"]
	_, message := o.members["message"]
	if body || message || len(o.members) == 0 {
		return badRequest("no message provided")
	}
	return badRequest("no message provided: the text goes into the member 'body'")
}
