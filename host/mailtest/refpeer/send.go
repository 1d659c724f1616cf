package refpeer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"skep/host/mailtest/refclient"
)

const taskComplete = "::task_complete::"

// Request sends one from an agent to another swarm's and returns the status of the
// answer.
func (p *Peer) Request(t Task, from, to, subject, body string) (status int, err error) {
	return p.send(t, swarmOf(to), "request", p.single(t, from, to, subject, body, nil, refclient.Object{{Name: "remote_swarm", Value: swarmOf(to)}}))
}

// Response sends one. It bears an id of its own, not the request's.
func (p *Peer) Response(t Task, from, to, subject, body string) (status int, err error) {
	return p.send(t, swarmOf(to), "response", p.single(t, from, to, subject, body, nil, refclient.Object{{Name: "remote_swarm", Value: swarmOf(to)}}))
}

// Broadcast sends one to the agents of one other swarm.
func (p *Peer) Broadcast(t Task, from string, to []string, subject, body string) (status int, err error) {
	all := []any{}
	for _, name := range to {
		all = append(all, agent(name))
	}
	return p.send(t, swarmOf(to[0]), "broadcast", refclient.Object{
		{Name: "task_id", Value: t.ID}, {Name: "broadcast_id", Value: uuid.NewString()},
		{Name: "sender", Value: agent(from + "@" + p.opt.Name)}, {Name: "recipients", Value: all},
		{Name: "subject", Value: subject}, {Name: "body", Value: body}, {Name: "sender_swarm", Value: nil},
		{Name: "recipient_swarms", Value: nil}, {Name: "routing_info", Value: refclient.Object{{Name: "remote_swarm", Value: swarmOf(to[0])}}},
	})
}

// Complete ends a task. Every swarm that was written to, and no other, gets an
// ordinary response to the name of the peer's own entrypoint there. It
// returns the statuses of the answers.
func (p *Peer) Complete(t Task, by, body string) (statuses []int, err error) {
	p.mu.Lock()
	r := p.tasks[t]
	if r == nil {
		p.mu.Unlock()
		return nil, fmt.Errorf("there is no task %v", t)
	}
	r.done = true
	told := slices.Clone(r.remote)
	p.mu.Unlock()
	for _, swarm := range told {
		info := refclient.Object{{Name: "origin_swarm", Value: p.opt.Name}, {Name: "remote_swarm", Value: swarm}}
		status, broken := p.send(t, swarm, "response", p.single(t, by, p.opt.Entrypoint+"@"+swarm, taskComplete, body, []any{p.opt.Name, swarm}, info))
		statuses, err = append(statuses, status), errors.Join(err, broken)
	}
	return statuses, err
}

// single is the payload of a request or response. Agents' own mail has null for
// both swarms.
func (p *Peer) single(t Task, from, to, subject, body string, swarms []any, info refclient.Object) refclient.Object {
	if swarms == nil {
		swarms = []any{nil, nil}
	}
	return refclient.Object{
		{Name: "task_id", Value: t.ID}, {Name: "request_id", Value: uuid.NewString()},
		{Name: "sender", Value: agent(from + "@" + p.opt.Name)}, {Name: "recipient", Value: agent(to)},
		{Name: "subject", Value: subject}, {Name: "body", Value: body},
		{Name: "sender_swarm", Value: swarms[0]}, {Name: "recipient_swarm", Value: swarms[1]}, {Name: "routing_info", Value: info},
	}
}

func agent(name string) refclient.Object {
	return refclient.Object{{Name: "address_type", Value: "agent"}, {Name: "address", Value: name}}
}

// send wraps a payload and calls the other swarm, once: there is no second try.
func (p *Peer) send(t Task, to, kind string, payload refclient.Object) (status int, err error) {
	p.mu.Lock()
	r, peer := p.tasks[t], p.remotes[to]
	if r == nil || peer.base == "" {
		p.mu.Unlock()
		return 0, fmt.Errorf("there is no task %v, or the swarm '%s' is unknown", t, to)
	}
	path := "/interswarm/forward"
	for _, c := range r.contributors {
		if swarmOf(c) == to {
			path = "/interswarm/back"
		}
	}
	if own := p.ownerOf(t); !slices.Contains(r.contributors, own) {
		r.contributors = append(r.contributors, own)
	}
	if !slices.Contains(r.remote, to) {
		r.remote = append(r.remote, to)
	}
	w := refclient.Object{
		{Name: "message_id", Value: uuid.NewString()}, {Name: "source_swarm", Value: p.opt.Name}, {Name: "target_swarm", Value: to},
		{Name: "timestamp", Value: now()}, {Name: "payload", Value: payload}, {Name: "msg_type", Value: kind},
		{Name: "auth_token", Value: peer.token}, {Name: "metadata", Value: refclient.Object{}},
		{Name: "task_owner", Value: r.owner}, {Name: "task_contributors", Value: slices.Clone(r.contributors)},
	}
	p.mu.Unlock()
	if p.opt.Alter != nil {
		w = p.opt.Alter(w)
	}
	return p.call(peer, path, refclient.Dumps(refclient.Object{{Name: "message", Value: w}}))
}

// text renders a call to another swarm, its header in the reference's order.
func (p *Peer) text(peer remote, path, body string) string {
	host := strings.TrimPrefix(peer.base, "http://")
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nUser-Agent: MAIL-Interswarm-Router/%s\r\n"+
		"Accept: */*\r\nAccept-Encoding: gzip, deflate\r\nContent-Length: %d\r\nContent-Type: application/json\r\n\r\n%s",
		path, host, peer.token, p.opt.Name, len(body), body)
}
