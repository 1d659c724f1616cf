package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// testedServer is a server that is compared with others: what is asked of it to
// have a message handled, and to have a task read.
type testedServer struct {
	name  string
	on    *child
	post  func() httpRequest
	get   httpRequest
	reads eventReaders
}

// trivialAnswer is what every server but the echo answers to [trivialBody].
const trivialAnswer = "boss got [q] hello"

// serverSwarm has an agent that others can be written to.
const serverSwarm = benchSwarm + `
[agents.echo]
source = "bundled:script"
comm_targets = ["boss"]
`

// servers compares a host with a2a-go's server, whose tasks are lost with its
// process, and with a server that does nothing. Each has a process of its own;
// the clients have this one.
func servers(b *bench) {
	ours := must(openHostServer(b.ctx))
	defer ours.on.stop()
	theirs := must(openA2AServer(b.ctx))
	defer theirs.on.stop()
	size := must(answerSize(ours))
	bare := must(openBareServer(b.ctx, size))
	defer bare.on.stop()
	for _, clients := range []int{1, 16} {
		b.servedPosts(clients, ours, theirs, bare)
	}
	for _, clients := range []int{1, 16} {
		b.servedReads(clients, ours, theirs, bare)
	}
	b.listing()
	b.compareReaders(ours, theirs, bare)
}

func (b *bench) servedPosts(clients int, ours, theirs, bare testedServer) {
	guest := theirs
	guest.post = func() httpRequest { return a2aPost(theirs.on.url, wantGuest) }
	rates := must(b.rates(requesting(ours.post, clients, trivialAnswer), requesting(theirs.post, clients, trivialAnswer),
		requesting(guest.post, clients, trivialAnswer), requesting(bare.post, clients, "hello")))
	target := none()
	if clients == 16 {
		target = ahead()
	}
	name := fmt.Sprintf("durable POST /message, %d clients", clients)
	b.report.compare(name, rates[0], rate, "a2a-go, a task in memory only, no sandbox", rates[1], target)
	b.report.compare(name, rates[0], rate, "a2a-go, a task in memory only, the same guest", rates[2], none())
	b.report.compare(name, rates[0], rate, bare.name, rates[3], none())
}

func (b *bench) servedReads(clients int, ours, theirs, bare testedServer) {
	rates := must(b.rates(ours.reading(clients, trivialAnswer), theirs.reading(clients, trivialAnswer), bare.reading(clients, "x")))
	name := fmt.Sprintf("GET /task with its log, %d clients", clients)
	b.report.compare(name, rates[0], rate, bare.name+", as many bytes", rates[2], none())
	own, other := must(answerSize(ours)), must(answerSize(theirs))
	b.report.compare("  bytes of it a second", rates[0]*float64(own), bytesOf, "a2a-go, from memory", rates[1]*float64(other), atLeast(0.8))
	if clients == 1 {
		b.report.compare("  its size", float64(own), bytesOf, "a2a-go", float64(other), none())
	}
}

func answerSize(c testedServer) (int, error) {
	raw, err := c.get.send(context.Background(), http.DefaultClient)
	return len(raw), err
}

// reading is a subject that reads the task from n clients.
func (c testedServer) reading(n int, want string) subject {
	return requesting(func() httpRequest { return c.get }, n, want)
}

func openHostServer(ctx context.Context) (testedServer, error) {
	on, err := startHost(ctx, strings.Replace(serverSwarm, "can_complete", "comm_targets = [\"echo\"]\ncan_complete", 1))
	if err != nil {
		return testedServer{}, err
	}
	c := testedServer{
		name: "skep", on: on, reads: &hostReaders{url: on.url},
		post: func() httpRequest { return message(on.url, trivialBody) },
		get:  getFrom(on.url + "/task?task_id=read").as(benchKey),
	}
	first := message(on.url, `{"body":"hello","subject":"q","task_id":"read"}`)
	if err := first.expect(http.DefaultClient, trivialAnswer); err != nil {
		on.stop()
		return testedServer{}, err
	}
	return c, nil
}

func openA2AServer(ctx context.Context) (testedServer, error) {
	on, err := startServer(ctx, nil, "a2a")
	if err != nil {
		return testedServer{}, err
	}
	post := func() httpRequest { return a2aPost(on.url, wantAnswer) }
	raw, err := post().send(ctx, http.DefaultClient)
	var task string
	if err == nil {
		task, err = a2aTask(raw)
	}
	if err != nil {
		on.stop()
		return testedServer{}, err
	}
	return testedServer{
		name: "a2a-go", on: on, post: post, reads: &a2aReaders{url: on.url},
		get: getFrom(on.url + "/tasks/" + task),
	}, nil
}

func openBareServer(ctx context.Context, size int) (testedServer, error) {
	on, err := startServer(ctx, nil, "bare")
	if err != nil {
		return testedServer{}, err
	}
	return testedServer{
		name: "httprouter, nothing behind it", on: on, reads: &bareReaders{url: on.url},
		post: func() httpRequest { return postTo(on.url+"/message", trivialBody) },
		get:  getFrom(fmt.Sprintf("%s/task?size=%d", on.url, size)),
	}, nil
}

// a2aPost makes a request that waits until the task is done.
func a2aPost(base, text string) httpRequest {
	return a2aRequest(base, a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))})
}

func a2aRequest(base string, r a2a.SendMessageRequest) httpRequest {
	body, err := json.Marshal(r)
	if err != nil {
		panic(err) // it holds texts only
	}
	return postTo(base+"/message:send", string(body))
}

// a2aTask is the id of the task in an answer.
func a2aTask(raw []byte) (string, error) {
	var in struct {
		Task struct {
			ID string `json:"id"`
		} `json:"task"`
	}
	if err := json.Unmarshal(raw, &in); err != nil || in.Task.ID == "" {
		return "", fmt.Errorf("a2a-go answered %.200q, which has no task: %v", raw, err)
	}
	return url.PathEscape(in.Task.ID), nil
}
