package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"skep/host/client"
	"skep/spec/mail"
)

// peerSwarm is a host that others write to and that writes to them: NAME, and the
// key of PEER there.
const peerSwarm = `schema = 1
[swarm]
name = "NAME"
entrypoint = "boss"
enable_interswarm = true
[agents.boss]
source = "bundled:script"
comm_targets = ["math", "*@*"]
enable_entrypoint = true
can_complete_tasks = true
enable_interswarm = true
[agents.math]
source = "bundled:script"
comm_targets = ["boss", "*@*"]
enable_interswarm = true
[[auth.keys]]
id = "bench"
role = "admin"
key = "` + benchKey + `"
[[auth.keys]]
id = "PEER"
role = "agent"
key = "the-key-of-PEER-at-NAME"
[limits]
queue = 0
task_messages = 0
`

func peerFile(name, peer string) string {
	return strings.NewReplacer("NAME", name, "PEER", peer).Replace(peerSwarm)
}

// known makes a swarm known to a host.
func (b *bench) known(at *child, local, name, url string) error {
	c, err := client.New(client.Options{URL: at.url, Token: benchKey})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.RegisterSwarm(b.ctx, client.Registration{Name: name, BaseURL: url, Token: fmt.Sprintf("the-key-of-%s-at-%s", local, name)})
	return err
}

// interswarm measures a task that goes to another host and back, beside pairs of
// servers that do nothing but call each other, and what one link between two hosts
// carries.
func interswarm(b *bench) {
	one := must(startHost(b.ctx, peerFile("hive", "depot")))
	defer one.stop()
	other := must(startHost(b.ctx, peerFile("depot", "hive")))
	defer other.stop()
	check(b.known(one, "hive", "depot", other.url))
	check(b.known(other, "depot", "hive", one.url))
	plain, endPlain := must2(b.barePair(false))
	defer endPlain()
	kept, endKept := must2(b.barePair(true))
	defer endKept()
	for _, clients := range []int{1, 16} {
		rates := must(b.rates(requesting(asksPeer(one, "math@depot"), clients, "echo: x"), requesting(asksPeer(one, "math"), clients, "echo: x"),
			requesting(plain, clients, "answered"), requesting(kept, clients, "answered")))
		name := fmt.Sprintf("a task that asks a peer and has its answer, %d clients", clients)
		b.report.compare(name, rates[0], rate, "the same task with an agent of its own host", rates[1], none())
		b.report.compare(name, rates[0], rate, "two bare servers that call each other", rates[2], none())
		b.report.compare(name, rates[0], rate, "the same, each letter in SQLite and synced on both sides", rates[3], none())
	}
	b.links(one, other)
}

// asksPeer makes a post whose agent asks another.
func asksPeer(on *child, target string) func() httpRequest {
	script := fmt.Sprintf(`[["send_request",{"target":%q,"subject":"s","body":"x"}],["await_message",{}]]`, target)
	body, _ := json.Marshal(map[string]string{"body": script}) // texts always encode
	return func() httpRequest { return message(on.url, string(body)) }
}

// barePair starts two servers; ask makes a request of the first whose message goes
// to the second and is answered.
func (b *bench) barePair(keep bool) (ask func() httpRequest, stop func(), err error) {
	var sides []*child
	stop = func() {
		for _, s := range sides {
			s.stop()
		}
	}
	for range 2 {
		args := []string{"relay"}
		remove := func() {}
		if keep {
			var dir string
			if dir, remove, err = scratch(); err != nil {
				stop()
				return nil, nil, err
			}
			args = append(args, dir)
		}
		side, err := startServer(b.ctx, nil, args...)
		if err != nil {
			remove()
			stop()
			return nil, nil, err
		}
		side.after = remove
		sides = append(sides, side)
	}
	var n atomic.Int64
	return func() httpRequest {
		url := fmt.Sprintf("%s/start?id=%d&from=%s&to=%s", sides[0].url, n.Add(1), sides[0].url, sides[1].url)
		return postTo(url, "")
	}, stop, nil
}

// burstOf is how many messages a task of [bench.links] sends.
const burstOf = 64

// links measures messages a second over one link, from one task and from many: what
// a host sends to a server that takes everything, what it takes from a client, and
// what two hosts exchange.
func (b *bench) links(one, other *child) {
	receiver := newReceiver()
	defer receiver.close()
	check(b.known(one, "hive", "sink", receiver.url))
	for _, tasks := range []int{1, 64} {
		rates := must(b.rates(subject{"sent", func(time.Duration) (int, time.Duration, error) { return receiver.drain(one, tasks) }},
			subject{"taken", forwards(other, tasks)},
			subject{"bare", forwards(&child{url: receiver.url}, tasks)}))
		name := fmt.Sprintf("letters of %d tasks over one link", tasks)
		b.report.compare(name+", sent", rates[0], rate, "posts of as many clients to a bare server", rates[2], none())
		b.report.compare(name+", taken", rates[1], rate, "posts of as many clients to a bare server", rates[2], none())
	}
}

// forwards posts messages as a peer does, one after the other in each task.
func forwards(to *child, tasks int) func(time.Duration) (int, time.Duration, error) {
	return func(span time.Duration) (int, time.Duration, error) {
		cl := clientOf(tasks)
		defer cl.CloseIdleConnections()
		run := time.Now().UnixNano()
		return parallel(tasks, span, func(worker int) error { return forward(cl, to.url, fmt.Sprintf("%d-%d", run, worker)) })
	}
}

// forward posts a message that opens no task: a response to no request.
func forward(cl *http.Client, url, task string) error {
	var random [16]byte
	rand.Read(random[:]) // it never fails
	id := mail.NewUUID(random)
	raw, err := json.Marshal(map[string]any{"message": map[string]any{
		"message_id": id, "source_swarm": "hive", "target_swarm": "depot", "timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"msg_type": "response", "auth_token": "", "metadata": map[string]any{}, "task_owner": "user:u@hive", "task_contributors": []string{"user:u@hive"},
		"payload": map[string]any{
			"task_id": task, "request_id": id, "subject": "s", "body": strings.Repeat("x", messageSize/2),
			"sender": map[string]string{"address_type": "agent", "address": "boss@hive"}, "recipient": map[string]string{"address_type": "agent", "address": "math@depot"},
		},
	}})
	if err != nil {
		return err
	}
	return postTo(url+"/interswarm/forward", string(raw)).as("the-key-of-hive-at-depot").expect(cl, "")
}
