package swarm

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"skep/spec/mail"
)

// accept writes a post as one step of its task.
func (r *Runtime) accept(ctx context.Context, t *live, p Post) (*Receipt, error) {
	t.commit.Lock()
	defer t.commit.Unlock()

	r.renew(t)
	to, err := r.route(ctx, t, &p)
	if err != nil {
		return nil, err
	}
	free, err := r.reserve(ctx, t, p)
	if err != nil {
		return nil, err
	}
	defer free()
	t.mu.Lock()
	s, sub, err := r.acceptStep(t, p, to)
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	first, err := r.store.Accept(ctx, s.Step, sub)
	if errors.Is(err, ErrDuplicate) {
		return duplicate(p, first)
	}
	if err != nil {
		return nil, err
	}
	receipt := &Receipt{
		Task: t.key, Row: sub.Row, Cursor: sub.Cursor,
		door: sub.Door, key: sub.Key, answer: make(chan Answer, 1),
	}
	t.mu.Lock()
	t.waiters[sub.Row] = append(t.waiters[sub.Row], receipt.answer)
	t.apply(s)
	t.mu.Unlock()
	r.applied(t)
	return receipt, nil
}

func (r *Runtime) acceptStep(t *live, p Post, to audience) (*step, Submission, error) {
	if p.Results != nil {
		if err := p.Results.check(t.rec); err != nil {
			return nil, Submission{}, err
		}
	}
	s := t.begin(r.now())
	sub := Submission{
		Instance: t.key.InstanceKey, Door: p.Door, Key: p.Key, Digest: p.Digest,
		Task: t.key.Task, Expires: s.now.Add(keyLife),
	}
	if p.Results != nil {
		sub.Row = s.resume(*p.Results)
		s.limits(p)
		sub.Key = cmp.Or(sub.Key, newID())
		s.posts.begun = append(s.posts.begun, Pending{sub.Row, sub.Door, sub.Key})
	} else {
		s.open(p)
		sub.Row = s.dispatch(p, to)
		sub.Key = cmp.Or(sub.Key, newID())
		s.posts.added = append(s.posts.added, Pending{sub.Row, sub.Door, sub.Key})
	}
	sub.Cursor = s.Task.Cursor
	s.settle()
	return s, sub, nil
}

// open makes the task's record ready for a post: new, running or reopened.
func (s *step) open(p Post) {
	if !s.live.exists {
		s.create(p)
	} else if s.Task.State != StateRunning {
		s.reopen()
	}
	s.Task.Entrypoint = p.Entrypoint
	s.limits(p)
}

// limits sets how far the task may go from a post on.
func (s *step) limits(p Post) {
	admin := p.Principal.Role == mail.RoleAdmin
	if p.MaxSteps > 0 {
		s.Task.MaxSteps = override(p.MaxSteps, s.def.Limits.TaskMessages, admin)
	}
	if p.Timeout > 0 {
		s.Task.Timeout = override(p.Timeout, s.def.Limits.TaskTimeout, admin)
	}
	s.Task.Deadline = time.Time{}
	if s.Task.Timeout > 0 {
		s.Task.Deadline = s.now.Add(s.Task.Timeout)
	}
}

// override is what a caller's limit becomes: the operator's is a ceiling for
// all but admins. A ceiling of 0 is none.
func override[T int | time.Duration](want, ceiling T, admin bool) T {
	if ceiling > 0 && !admin {
		return min(want, ceiling)
	}
	return want
}

func (s *step) create(p Post) {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	owner := mail.Owner{Role: p.Principal.Role, ID: mail.PrincipalID(p.Principal.Tenant, p.Principal.ID), Swarm: p.Swarm}
	s.Task = Task{
		Key: s.live.key, Owner: owner.String(), Contributors: []string{owner.String()},
		State: StateRunning, Created: s.now, Updated: s.now, Nonce: nonce, Definition: s.def.Digest,
		MaxSteps: s.def.Limits.TaskMessages, Timeout: s.def.Limits.TaskTimeout,
		History: map[string]int64{},
	}
}

// postRow is a post's message to one local agent.
func (s *step) postRow(p Post, agent string) Row {
	m := compose(p.Type, envelope{
		task: s.Task.Key.Task, swarm: s.def.Name, id: newID(), payloadID: newID(), at: s.now,
		sender:     mail.Address{Type: mail.AddressType(p.Principal.Role), Name: p.Principal.ID},
		recipients: []mail.Address{{Type: mail.Agent, Name: agent}},
		subject:    p.Subject, body: p.Body,
	})
	return Row{
		Agent: agent, Tier: mail.Tier(m), Message: m, Trace: p.Trace,
		Origin: Origin{Door: p.Door, Realm: p.Principal.Tenant, Principal: string(p.Principal.Role) + ":" + p.Principal.ID},
		Cause:  m.ID,
	}
}
