package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// contestant is a server that is compared with others: what is asked of it to
// have a message handled, and to have a task read.
type contestant struct {
	name  string
	on    *apart
	post  func() (*http.Request, error)
	get   func() (*http.Request, error)
	reads audience
}

// trivialAnswer is what everybody but the echo answers to [trivialBody].
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
func servers(b *bench) error {
	ours, err := hostContestant(b.ctx)
	if err != nil {
		return err
	}
	defer ours.on.stop()
	theirs, err := a2aContestant(b.ctx)
	if err != nil {
		return err
	}
	defer theirs.on.stop()
	size, err := answerSize(ours)
	if err != nil {
		return err
	}
	bare, err := bareContestant(b.ctx, size)
	if err != nil {
		return err
	}
	defer bare.on.stop()
	for _, clients := range []int{1, 16} {
		if err := b.servedPosts(clients, ours, theirs, bare); err != nil {
			return err
		}
	}
	for _, clients := range []int{1, 16} {
		if err := b.servedReads(clients, ours, theirs, bare); err != nil {
			return err
		}
	}
	return b.audiences(ours, theirs, bare)
}

func (b *bench) servedPosts(clients int, ours, theirs, bare contestant) error {
	guest := theirs
	guest.post = func() (*http.Request, error) { return a2aPost(theirs.on.url, wantGuest) }
	rates, err := b.rates(asked(ours.post, clients, trivialAnswer), asked(theirs.post, clients, trivialAnswer),
		asked(guest.post, clients, trivialAnswer), asked(bare.post, clients, "hello"))
	if err != nil {
		return err
	}
	target := none()
	if clients == 16 {
		target = ahead()
	}
	name := fmt.Sprintf("durable POST /message, %d clients", clients)
	b.report.compare(name, rates[0], rate, "a2a-go, a task in memory only, no sandbox", rates[1], target)
	b.report.compare(name, rates[0], rate, "a2a-go, a task in memory only, the same guest", rates[2], none())
	b.report.compare(name, rates[0], rate, bare.name, rates[3], none())
	return nil
}

func (b *bench) servedReads(clients int, ours, theirs, bare contestant) error {
	rates, err := b.rates(asked(ours.get, clients, trivialAnswer), asked(theirs.get, clients, trivialAnswer), asked(bare.get, clients, "x"))
	if err != nil {
		return err
	}
	name := fmt.Sprintf("GET /task with its log, %d clients", clients)
	b.report.compare(name, rates[0], rate, "a2a-go, from memory", rates[1], none())
	b.report.compare(name, rates[0], rate, bare.name+", as many bytes", rates[2], none())
	if clients > 1 {
		return nil
	}
	for _, c := range []contestant{ours, theirs} {
		size, err := answerSize(c)
		if err != nil {
			return err
		}
		b.report.fact("  answer of "+c.name, float64(size), bytesOf)
	}
	return nil
}

// asked sends a request again and again from a number of clients, and wants its
// answer to have a text.
func asked(request func() (*http.Request, error), clients int, want string) subject {
	return subject{want, func(span time.Duration) (int, time.Duration, error) {
		cl := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
		defer cl.CloseIdleConnections()
		return parallel(clients, span, func(int) error { return askOnce(cl, request, want) })
	}}
}

func askOnce(cl *http.Client, request func() (*http.Request, error), want string) error {
	raw, err := answerTo(cl, request)
	if err == nil && !bytes.Contains(raw, []byte(want)) {
		err = fmt.Errorf("answer %.1000q without %q", raw, want)
	}
	return err
}

func answerTo(cl *http.Client, request func() (*http.Request, error)) ([]byte, error) {
	req, err := request()
	if err != nil {
		return nil, err
	}
	rsp, err := cl.Do(req)
	if err != nil {
		return nil, err
	}
	defer rsp.Body.Close()
	raw, err := io.ReadAll(rsp.Body)
	if err == nil && rsp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %.200s", req.Method, req.URL, rsp.Status, raw)
	}
	return raw, err
}

func answerSize(c contestant) (int, error) {
	raw, err := answerTo(http.DefaultClient, c.get)
	return len(raw), err
}

// keyed makes a request of a host.
func keyed(method, url, body string) (*http.Request, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+benchKey)
	}
	return req, err
}

func hostContestant(ctx context.Context) (contestant, error) {
	on, err := hostApart(ctx, strings.Replace(serverSwarm, "can_complete", "comm_targets = [\"echo\"]\ncan_complete", 1))
	if err != nil {
		return contestant{}, err
	}
	c := contestant{
		name: "skep", on: on, reads: &hostAudience{url: on.url},
		post: func() (*http.Request, error) { return keyed(http.MethodPost, on.url+"/message", trivialBody) },
		get:  func() (*http.Request, error) { return keyed(http.MethodGet, on.url+"/task?task_id=read", "") },
	}
	first := func() (*http.Request, error) {
		return keyed(http.MethodPost, on.url+"/message", `{"body":"hello","subject":"q","task_id":"read"}`)
	}
	if err := askOnce(http.DefaultClient, first, trivialAnswer); err != nil {
		on.stop()
		return contestant{}, err
	}
	return c, nil
}

func a2aContestant(ctx context.Context) (contestant, error) {
	on, err := startApart(ctx, "a2a")
	if err != nil {
		return contestant{}, err
	}
	post := func() (*http.Request, error) { return a2aPost(on.url, wantAnswer) }
	raw, err := answerTo(http.DefaultClient, post)
	if err != nil {
		on.stop()
		return contestant{}, err
	}
	task, err := a2aTask(raw)
	if err != nil {
		on.stop()
		return contestant{}, err
	}
	return contestant{
		name: "a2a-go", on: on, post: post, reads: &a2aAudience{url: on.url},
		get: func() (*http.Request, error) { return http.NewRequest(http.MethodGet, on.url+"/tasks/"+task, nil) },
	}, nil
}

func bareContestant(ctx context.Context, size int) (contestant, error) {
	on, err := startApart(ctx, "bare")
	if err != nil {
		return contestant{}, err
	}
	return contestant{
		name: "httprouter, nothing behind it", on: on, reads: &bareAudience{url: on.url},
		post: func() (*http.Request, error) {
			return http.NewRequest(http.MethodPost, on.url+"/message", strings.NewReader(trivialBody))
		},
		get: func() (*http.Request, error) {
			return http.NewRequest(http.MethodGet, on.url+"/task?size="+strconv.Itoa(size), nil)
		},
	}, nil
}

// a2aPost makes a request that waits until the task is done.
func a2aPost(base, text string) (*http.Request, error) {
	return a2aRequest(base, a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))})
}

func a2aRequest(base string, r a2a.SendMessageRequest) (*http.Request, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return http.NewRequest(http.MethodPost, base+"/message:send", bytes.NewReader(body))
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
