package crash_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// hostNames are the hosts of a chain, each with a loopback address of its own.
var hostNames = []struct{ name, ip string }{{"hive", "127.0.0.2"}, {"depot", "127.0.0.3"}, {"yard", "127.0.0.4"}}

// chain is three host processes, and a wire for each way between two of them.
type chain struct {
	*network
	hosts map[string]*hosttest.Process
	owner *client.Client
	// killing is held while hosts are killed and started: two kills at once
	// would start one host twice.
	killing sync.Mutex
}

// newChain starts a chain. extra is more of every host's file.
func newChain(t *testing.T, giveUp, extra string) *chain {
	t.Helper()
	c := &chain{network: &network{cut: map[string]int{}}, hosts: map[string]*hosttest.Process{}}
	for _, p := range hostNames {
		c.hosts[p.name] = hosttest.NewProcess(t, p.ip)
	}
	for _, p := range hostNames {
		c.hosts[p.name].Launch(c.file(t, p.name, p.ip, giveUp) + extra)
	}
	for _, p := range slices.Backward(hostNames) {
		c.owner = c.hosts[p.name].ClientAs(hosttest.AliceKey)
	}
	return c
}

// file is the configuration of one host: its peers are behind wires.
func (c *chain) file(t *testing.T, name, ip, giveUp string) string {
	t.Helper()
	var targets []string
	file := ""
	for _, peer := range hostNames {
		if peer.name == name {
			continue
		}
		at := newWire(t, c.network, name+">"+peer.name, ip, c.hosts[peer.name].Addr)
		targets = append(targets, fmt.Sprintf("%q, %q", "boss@"+peer.name, "math@"+peer.name))
		file += hosttest.PeerTables(name, peer.name, "http://"+at.l.Addr().String(), giveUp)
	}
	file = strings.NewReplacer("NAME", name, "TARGETS", strings.Join(targets, ", ")).Replace(hosttest.FederatedSwarm) + file
	return strings.Replace(file, "[agents.math]\n", "[agents.math]\nallow = { kv = \"task\" }\n", 1)
}

// chainTask goes from hive's boss to depot's, on to yard's math, and back. Math
// claims a key: a turn that were done twice would find it taken.
func chainTask() string {
	math := hosttest.Script(hosttest.Step{"kv.cas", hosttest.Args{"key": "once", "expect": nil, "value": "1", "scope": "task"}}, hosttest.Step{"sleep", hosttest.Args{"ms": 20}},
		hosttest.Step{"send_response", hosttest.Args{"target": "boss@depot", "subject": "Re: s", "body": "claimed {{0}}"}})
	boss := hosttest.Script(hosttest.Step{"sleep", hosttest.Args{"ms": 20}}, hosttest.Step{"send_request", hosttest.Args{"target": "math@yard", "subject": "s", "body": math}}, hosttest.Step{"await_message", hosttest.Args{}})
	return hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": "boss@depot", "subject": "s", "body": boss}}, hosttest.Step{"await_message", hosttest.Args{}})
}

// ask has the task done, over its events and by its answer.
func (c *chain) ask(ctx context.Context, task, want string) error {
	return hosttest.CheckAnswer(ctx, c.owner, client.Post{Task: task, Key: "key-" + task, Body: chainTask()}, true, want)
}

// runUndisturbed does the task while nothing happens, and returns its answer and what passed.
func (c *chain) runUndisturbed(t *testing.T) (answer string, passed []crossing) {
	t.Helper()
	c.watch("calm", nil)
	a, err := c.owner.PostMessage(t.Context(), client.Post{Task: "calm", Key: "key-calm", Body: chainTask()})
	if err != nil {
		t.Fatal(err)
	}
	c.waitSettled(t, "calm")
	return a.Body, c.crossings()
}

// namedFault is one way in which a crossing is disturbed.
type namedFault struct {
	name  string
	fault fault
}

// faults are all there are: a host, or all of them, is killed while the message is
// under way or when it has passed; it passes in part, or not at all.
func (c *chain) faults() (all []namedFault) {
	victims := map[string][]*hosttest.Process{}
	for _, p := range hostNames {
		victims[p.name] = []*hosttest.Process{c.hosts[p.name]}
		victims["all"] = append(victims["all"], c.hosts[p.name])
	}
	for _, who := range slices.Sorted(maps.Keys(victims)) {
		strike := func() {
			c.killing.Lock()
			defer c.killing.Unlock()
			for _, v := range victims[who] {
				v.Kill()
			}
			for _, v := range victims[who] {
				v.Start()
			}
		}
		all = append(all, namedFault{"kill " + who + " before", fault{before: strike}}, namedFault{"kill " + who + " after", fault{after: strike}})
	}
	return append(all, namedFault{"half", fault{half: true}}, namedFault{"lost, then cut", fault{lost: true, cut: 2}})
}

// disturb does the task under faults, and wants its answer nevertheless.
func (c *chain) disturb(t *testing.T, task, want string, deeds map[crossing]fault) {
	t.Helper()
	c.watch(task, deeds)
	begun := time.Now()
	if err := c.ask(t.Context(), task, want); err != nil {
		t.Fatalf("%s: %v", task, err)
	}
	hosttest.Eventually(t, "no host is being killed", c.idle)
	c.waitSettled(t, task)
	t.Logf("%v: %s", time.Since(begun).Round(time.Millisecond), task)
	met := func(c crossing) bool { _, ok := deeds[c]; return ok }
	if !slices.ContainsFunc(c.crossings(), met) {
		t.Errorf("%s never came to pass: %v", task, c.crossings())
	}
}

// faultEverywhere gives each crossing a fault, another one with each n.
func (c *chain) faultEverywhere(passed []crossing, n int) map[crossing]fault {
	all, deeds := c.faults(), map[crossing]fault{}
	for i, at := range passed {
		deeds[at] = all[(3*i+n)%len(all)].fault
	}
	return deeds
}

// TestKillAcrossHosts disturbs a task of three host processes at each step of its
// exchange, and at every step at once (R-031, R-032, G-65). It ends with its one
// answer, every host ends its part, nothing is given up, and no agent gets a
// message twice or misses one.
func TestKillAcrossHosts(t *testing.T) {
	t.Parallel()
	c := newChain(t, "2m", "")
	want, passed := c.runUndisturbed(t)
	tasks, every, storms := []string{"calm"}, 3, 2
	switch {
	case os.Getenv("SKEP_SOAK") != "":
		every, storms = 1, len(c.faults())
	case testing.Short():
		every, storms = 9, 1
	}
	for i, at := range passed {
		for j, b := range c.faults() {
			if (i+j)%every != 0 {
				continue // others at the next crossing
			}
			tasks = append(tasks, fmt.Sprintf("%s, %s", at, b.name))
			c.disturb(t, tasks[len(tasks)-1], want, map[crossing]fault{at: b.fault})
		}
	}
	for n := range storms {
		tasks = append(tasks, fmt.Sprint("storm ", n))
		c.disturb(t, tasks[len(tasks)-1], want, c.faultEverywhere(passed, n))
	}
	told, lives := c.storedMail(t, tasks), 0
	for _, task := range tasks {
		if diff := cmp.Diff(told["calm"], told[task]); diff != "" {
			t.Errorf("%s: the mail differs from that of a calm run (-calm +disturbed):\n%s", task, diff)
		}
	}
	for _, v := range c.hosts {
		lives += v.Life
	}
	t.Logf("%d crossings, %d tasks, %d lives of three hosts, %d messages each", len(passed), len(tasks), lives, len(told["calm"]))
}
