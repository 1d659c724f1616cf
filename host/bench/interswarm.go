package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
func (b *bench) known(at *apart, local, name, url string) error {
	c, err := client.New(client.Options{URL: at.url, Token: benchKey})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.RegisterSwarm(b.ctx, client.Registration{Name: name, BaseURL: url, Token: fmt.Sprintf("the-key-of-%s-at-%s", local, name)})
	return err
}

// twoHosts are in processes of their own, and know each other.
func (b *bench) twoHosts() (one, other *apart, stop func(), err error) {
	if one, err = hostApart(b.ctx, peerFile("hive", "depot")); err != nil {
		return nil, nil, nil, err
	}
	if other, err = hostApart(b.ctx, peerFile("depot", "hive")); err != nil {
		one.stop()
		return nil, nil, nil, err
	}
	stop = func() { one.stop(); other.stop() }
	if err = errors.Join(b.known(one, "hive", "depot", other.url), b.known(other, "depot", "hive", one.url)); err != nil {
		stop()
	}
	return one, other, stop, err
}

// interswarm measures a task that goes to another host and back, beside pairs of
// servers that do nothing but call each other, and what one link between two hosts
// carries.
func interswarm(b *bench) error {
	one, other, stop, err := b.twoHosts()
	if err != nil {
		return err
	}
	defer stop()
	plain, endPlain, err := b.barePair(false)
	if err != nil {
		return err
	}
	defer endPlain()
	kept, endKept, err := b.barePair(true)
	if err != nil {
		return err
	}
	defer endKept()
	for _, clients := range []int{1, 16} {
		rates, err := b.rates(asked(asksPeer(one, "math@depot"), clients, "echo: x"), asked(asksPeer(one, "math"), clients, "echo: x"),
			asked(plain, clients, "answered"), asked(kept, clients, "answered"))
		if err != nil {
			return err
		}
		name := fmt.Sprintf("a task that asks a peer and has its answer, %d clients", clients)
		b.report.compare(name, rates[0], rate, "the same task with an agent of its own host", rates[1], none())
		b.report.compare(name, rates[0], rate, "two bare servers that call each other", rates[2], none())
		b.report.compare(name, rates[0], rate, "the same, each letter in SQLite and synced on both sides", rates[3], none())
	}
	return b.links(one, other)
}

// asksPeer makes a post whose agent asks another.
func asksPeer(on *apart, target string) func() (*http.Request, error) {
	script := fmt.Sprintf(`[["send_request",{"target":%q,"subject":"s","body":"x"}],["await_message",{}]]`, target)
	body, _ := json.Marshal(map[string]string{"body": script}) // texts always encode
	return func() (*http.Request, error) { return keyed(http.MethodPost, on.url+"/message", string(body)) }
}

// barePair starts two servers; ask makes a request of the first whose letter goes
// to the second and is answered.
func (b *bench) barePair(keep bool) (ask func() (*http.Request, error), stop func(), err error) {
	var sides []*apart
	stop = func() {
		for _, s := range sides {
			s.stop()
		}
	}
	for range 2 {
		args := []string{"side"}
		remove := func() {}
		if keep {
			var dir string
			if dir, remove, err = scratch(); err != nil {
				stop()
				return nil, nil, err
			}
			args = append(args, dir)
		}
		side, err := startApart(b.ctx, args...)
		if err != nil {
			remove()
			stop()
			return nil, nil, err
		}
		side.after = remove
		sides = append(sides, side)
	}
	var n atomic.Int64
	return func() (*http.Request, error) {
		url := fmt.Sprintf("%s/start?id=%d&from=%s&to=%s", sides[0].url, n.Add(1), sides[0].url, sides[1].url)
		return http.NewRequest(http.MethodPost, url, http.NoBody)
	}, stop, nil
}

// burstOf is how many letters a task of [bench.links] sends.
const burstOf = 64

// links measures letters a second over one link, from one task and from many: what
// a host sends to a server that takes everything, what it takes from a client, and
// what two hosts exchange.
func (b *bench) links(one, other *apart) error {
	sink := newSink()
	defer sink.close()
	if err := b.known(one, "hive", "sink", sink.url); err != nil {
		return err
	}
	for _, tasks := range []int{1, 64} {
		rates, err := b.rates(subject{"sent", func(time.Duration) (int, time.Duration, error) { return sink.drain(one, tasks) }},
			subject{"taken", forwards(other, tasks)},
			subject{"bare", forwards(&apart{url: sink.url}, tasks)})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("letters of %d tasks over one link", tasks)
		b.report.compare(name+", sent", rates[0], rate, "posts of as many clients to a bare server", rates[2], none())
		b.report.compare(name+", taken", rates[1], rate, "posts of as many clients to a bare server", rates[2], none())
	}
	return nil
}

// forwards hands letters in as a peer does, one after the other in each task.
func forwards(to *apart, tasks int) func(time.Duration) (int, time.Duration, error) {
	return func(span time.Duration) (int, time.Duration, error) {
		cl := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: tasks}}
		defer cl.CloseIdleConnections()
		run := time.Now().UnixNano()
		return parallel(tasks, span, func(worker int) error { return forward(cl, to.url, fmt.Sprintf("%d-%d", run, worker)) })
	}
}

// forward hands in a letter that opens nothing: a response to what nobody asked.
func forward(cl *http.Client, url, task string) error {
	var random [16]byte
	rand.Read(random[:]) // it never fails
	id := mail.NewUUID(random)
	raw, err := json.Marshal(map[string]any{"message": map[string]any{
		"message_id": id, "source_swarm": "hive", "target_swarm": "depot", "timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"msg_type": "response", "auth_token": "", "metadata": map[string]any{}, "task_owner": "user:u@hive", "task_contributors": []string{"user:u@hive"},
		"payload": map[string]any{
			"task_id": task, "request_id": id, "subject": "s", "body": strings.Repeat("x", letterSize/2),
			"sender": map[string]string{"address_type": "agent", "address": "boss@hive"}, "recipient": map[string]string{"address_type": "agent", "address": "math@depot"},
		},
	}})
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, url+"/interswarm/forward", bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer the-key-of-hive-at-depot")
	rsp, err := cl.Do(req)
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	if answer, err := io.ReadAll(rsp.Body); err != nil || rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s, %w", rsp.Status, answer, err)
	}
	return nil
}
