package rest

import (
	"cmp"
	"strings"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// question is a call that waits for a person, as JSON.
type question struct {
	Tenant   string `json:"tenant"`
	Instance string `json:"instance"`
	Task     string `json:"task_id"`
	Call     string `json:"call_id"`
	Agent    string `json:"agent"`
	Action   string `json:"action"`
	Since    string `json:"since"`
	// Arguments are null for a caller who may not answer.
	Arguments *string `json:"arguments"`
}

func (c *call) newQuestion(q swarm.Question) question {
	out := question{
		Tenant: q.Task.Tenant, Instance: q.Task.Instance, Task: q.Task.Task, Call: q.Call,
		Agent: q.Agent, Action: q.Action, Since: formatTime(q.Since),
	}
	if q.AnsweredAt == "" && c.mayAnswer(q.Task.InstanceKey) {
		out.Arguments = &q.Arguments
	}
	return out
}

// mayAnswer reports whether the caller answers the questions of an instance that he sees:
// his own, and for admins a realm's, which no person owns.
func (c *call) mayAnswer(key swarm.InstanceKey) bool {
	realm := strings.HasPrefix(key.Instance, string(mail.RoleSwarm)+":")
	return key == c.instanceKey() || realm && c.w.who.Role != auth.User
}

// visibleInstances selects the instances whose questions the caller sees: users their own,
// admins all of their tenant, operators all, or a tenant's that they name.
func (c *call) visibleInstances() (swarm.InstanceKey, error) {
	tenant, err := c.requestedTenant()
	if err != nil {
		return swarm.InstanceKey{}, err
	}
	within := swarm.InstanceKey{Tenant: tenant, Swarm: c.h.opt.Swarm}
	switch named, _ := c.param("tenant"); {
	case c.w.who.Role == auth.User:
		return c.instanceKey(), nil
	case c.w.who.Role == auth.Operator && named == "":
		within.Tenant = ""
	}
	return within, nil
}

// listQuestions is GET /skep/v1/questions.
func (c *call) listQuestions() error {
	limit, err := c.intParam("limit", 100, 1, 500)
	if err != nil {
		return err
	}
	after, err := c.param("after")
	if err != nil {
		return err
	}
	within, err := c.visibleInstances()
	if err != nil {
		return err
	}
	list, next, err := c.h.questions.Questions(c.ctx(), within, after, int(limit))
	if err != nil {
		return err
	}
	shown := []question{}
	for _, q := range list {
		shown = append(shown, c.newQuestion(q))
	}
	return c.reply(struct {
		Questions []question `json:"questions"`
		Next      *string    `json:"next"`
	}{shown, textOrNull(next)})
}

// answerPath is the path of the route that takes answers.
const answerPath = skepPrefix + "questions/answer"

// answerQuestion is POST /skep/v1/questions/answer.
func (c *call) answerQuestion() error {
	o, err := c.bodyObject()
	if err != nil {
		return err
	}
	key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Swarm: c.h.opt.Swarm}}
	var id, text string
	err = o.readTexts(textField{"tenant", &key.Tenant}, textField{"instance", &key.Instance}, textField{"task_id", &key.Task},
		textField{"call_id", &id}, textField{"content", &text})
	if err != nil {
		return err
	}
	if _, ok := o.get("content"); !ok || key.Task == "" || id == "" {
		return badRequest("task_id, call_id and content are required")
	}
	own := c.instanceKey()
	key.Tenant, key.Instance = cmp.Or(key.Tenant, own.Tenant), cmp.Or(key.Instance, own.Instance)
	err = c.checkAnswerer(key)
	if err == nil {
		err = c.h.questions.AnswerQuestion(c.ctx(), key, id, text)
	}
	if err := c.auditAct("question.answer", truncate(key.Tenant)+"/"+truncate(key.Instance)+"/"+truncate(key.Task)+"/"+truncate(id), err); err != nil {
		return err
	}
	return c.reply(struct {
		Task   string `json:"task_id"`
		Call   string `json:"call_id"`
		Status string `json:"status"`
	}{key.Task, id, "answered"})
}

// checkAnswerer refuses a caller who may not answer in a task.
func (c *call) checkAnswerer(key swarm.TaskKey) error {
	own := c.instanceKey()
	switch {
	case key.Tenant != own.Tenant && c.w.who.Role != auth.Operator:
		return denied("only an operator may name another tenant", "asked for tenant "+truncate(key.Tenant))
	case !c.mayAnswer(key.InstanceKey):
		return denied("only "+truncate(key.Instance)+" answers in own tasks; admins answer in those of other swarms", "asked for instance "+truncate(key.Instance))
	}
	return nil
}
