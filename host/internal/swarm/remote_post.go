package swarm

import (
	"fmt"
	"slices"
	"strings"

	"skep/spec/mail"
)

// A remote post is a post to agents of other swarms. It goes out as requests in the
// name of the entrypoint, so that they can be answered; the answers complete the task.

// RemoteAnswer is an answer to a remote post that waits for further answers.
type RemoteAnswer struct {
	Post int64 `json:"post"`
	// From is the address of the agent that the request was made to.
	From string `json:"from"`
	Text string `json:"text"`
	// Failed means that Text is the reason why there is no answer.
	Failed bool `json:"failed,omitempty"`
}

// maxRemoteAnswerBytes bounds the answers to one post, in bytes: with their names they
// become one body.
const maxRemoteAnswerBytes = MaxBody - 16<<10

// addRemoteRequest sends a post to another swarm's agent as a request or an interrupt.
// A broadcast becomes a request, too: the poster waits for the answer.
func (mut *mutationBuilder) addRemoteRequest(p Post, n int64, target, swarm string) {
	kind := mail.Request
	if p.Type == mail.Interrupt {
		kind = p.Type
	}
	m := newMessage(kind, messageParts{
		task: mut.Task.Key.Task, swarm: mut.def.Name, id: newID(), payloadID: newID(), at: mut.now,
		sender:     mail.Address{Type: mail.Agent, Name: mut.def.Entrypoint},
		recipients: []mail.Address{{Type: mail.Agent, Name: target}},
		subject:    p.Subject, body: p.Body,
	})
	m.Payload.RecipientSwarms = []string{swarm}
	m.Payload.RoutingInfo = routingInfo("remote_swarm", swarm)
	msg := OutboxMessage{ID: m.ID, Peer: swarm, Message: m, Post: n, Trace: mut.active.traces.leaving(mut.Task, mut.rowTrace(p.Trace))}
	request, _ := msg.openRequest()
	mut.addToOutbox(msg)
	if mut.Task.Grace {
		mut.collectRemoteAnswer(request, "The task has used up its messages.", true)
		return
	}
	mut.Task.Requests = append(mut.Task.Requests, request)
}

// postRequests are the open requests of remote posts and of exchanges.
func (t Task) postRequests() (list []OpenRequest) {
	for _, r := range t.Requests {
		if r.Post > 0 || r.Exchange != nil {
			list = append(list, r)
		}
	}
	return list
}

// handleRemoteResponse handles a response that has closed a request, and reports
// whether it was a remote post's: then no agent gets the response.
func (mut *mutationBuilder) handleRemoteResponse(peer string, r OpenRequest, m mail.Message) bool {
	if r.ID == "" {
		return false
	}
	if r.Post > 0 {
		mut.logMessage(m, map[string]any{"recipient": r.From})
		mut.collectRemoteAnswer(r, m.Payload.Body, false)
	}
	mut.dropPeerCalls(peer)
	return r.Post > 0
}

// collectRemoteAnswer records the answer to a remote post's closed request, or why
// there is none.
func (mut *mutationBuilder) collectRemoteAnswer(r OpenRequest, text string, failed bool) {
	size, others := len(text), slices.ContainsFunc(mut.Task.Requests, func(o OpenRequest) bool { return o.Post == r.Post })
	for _, g := range mut.Task.RemoteAnswers {
		if g.Post == r.Post {
			size, others = size+len(g.Text), true
		}
	}
	if others && size > maxRemoteAnswerBytes {
		text = fmt.Sprintf("(an answer of %d bytes, which the task's log has)", len(text))
	}
	mut.Task.RemoteAnswers = append(mut.Task.RemoteAnswers, RemoteAnswer{r.Post, r.To, text, failed})
}

// completeRemotePosts completes a running task for the remote posts that have all
// answers.
func (mut *mutationBuilder) completeRemotePosts() {
	for mut.Task.State == StateRunning {
		i := slices.IndexFunc(mut.Task.RemoteAnswers, func(g RemoteAnswer) bool {
			return !slices.ContainsFunc(mut.Task.Requests, func(r OpenRequest) bool { return r.Post == g.Post })
		})
		if i < 0 {
			return
		}
		post := mut.Task.RemoteAnswers[i].Post
		var mine []RemoteAnswer
		mut.Task.RemoteAnswers = slices.DeleteFunc(mut.Task.RemoteAnswers, func(g RemoteAnswer) bool {
			if g.Post == post {
				mine = append(mine, g)
			}
			return g.Post == post
		})
		mut.markHandled(post)
		mut.completeRemotePost(mine)
	}
}

// completeRemotePost ends the task with all answers to a remote post.
func (mut *mutationBuilder) completeRemotePost(all []RemoteAnswer) {
	failed := !slices.ContainsFunc(all, func(g RemoteAnswer) bool { return !g.Failed })
	from, text := all[0].From, all[0].Text
	if len(all) > 1 {
		var parts []string
		for _, g := range all {
			said := g.Text
			if g.Failed {
				said = "ERROR: " + said
			}
			parts = append(parts, g.From+": "+said)
		}
		from, text = mut.Task.Entrypoint, strings.Join(parts, "\n\n")
	}
	if failed {
		mut.endBySystem(StateFailed, mail.SubjectRouterError, text)
		return
	}
	m := mut.systemMessage(mail.BroadcastComplete, "", mail.SubjectTaskComplete, text)
	m.Payload.Sender = mail.Address{Type: mail.Agent, Name: from}
	if _, swarm, _ := mail.ParseAddr(from); swarm != "" {
		m.Payload.SenderSwarm = swarm
	}
	mut.completeTask(from, m)
}
