package host_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/client"
	"skep/host/internal/guests"
)

// places are the hosts of a chain, each with a loopback address of its own.
var places = []struct{ name, ip string }{{"hive", "127.0.0.2"}, {"depot", "127.0.0.3"}, {"yard", "127.0.0.4"}}

// chain is three host processes, and a wire for each way between two of them.
type chain struct {
	*web
	hosts map[string]*victim
	owner *client.Client
	// striking is held while hosts are killed and started: two strikes at once
	// would start one host twice.
	striking sync.Mutex
}

// program builds what operators run: a host with the race detector would take
// seconds to come back.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "skep")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./host/cmd/skep")
	cmd.Dir, cmd.Env = guests.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// newChain starts a chain. extra is more of every host's file.
func newChain(t *testing.T, program, giveUp, extra string) *chain {
	t.Helper()
	c := &chain{web: &web{cut: map[string]int{}}, hosts: map[string]*victim{}}
	for _, p := range places {
		v := &victim{t: t, dir: t.TempDir(), addr: freeAddress(t, p.ip), log: logOf(t, p.name)}
		v.command = []string{program, "serve", "-c", filepath.Join(v.dir, "swarm.toml")}
		if err := os.Mkdir(v.data(), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(guests.CacheDir(t), filepath.Join(v.data(), "cache")); err != nil {
			t.Fatal(err)
		}
		c.hosts[p.name] = v
	}
	for _, p := range places {
		at := fmt.Sprintf("[server]\nlisten = %q\nadmin_listen = %q\n", c.hosts[p.name].addr, freeAddress(t, p.ip))
		c.hosts[p.name].settle(c.file(t, p.name, p.ip, giveUp) + at + extra)
	}
	for _, p := range slices.Backward(places) {
		c.owner = c.hosts[p.name].clientOf(aliceKey)
	}
	return c
}

// logOf keeps what a host writes, and shows it when the test fails.
func logOf(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if raw, err := os.ReadFile(f.Name()); t.Failed() && err == nil {
			t.Logf("%s has written:\n%s", name, raw)
		}
		_ = f.Close()
	})
	return f
}

// file is the configuration of one host: its peers are behind wires.
func (c *chain) file(t *testing.T, name, ip, giveUp string) string {
	t.Helper()
	var targets []string
	file := ""
	for _, peer := range places {
		if peer.name == name {
			continue
		}
		at := newWire(t, c.web, name+">"+peer.name, ip, c.hosts[peer.name].addr)
		targets = append(targets, fmt.Sprintf("%q, %q", "boss@"+peer.name, "math@"+peer.name))
		file += peerTables(name, peer.name, "http://"+at.l.Addr().String(), giveUp)
	}
	file = strings.NewReplacer("NAME", name, "TARGETS", strings.Join(targets, ", ")).Replace(federatedSwarm) + file
	return strings.Replace(file, "[agents.math]\n", "[agents.math]\nallow = { kv = \"task\" }\n", 1)
}

// chainTask goes from hive's boss to depot's, on to yard's math, and back. Math
// claims a key: a turn that were done twice would find it taken.
func chainTask() string {
	math := script(step{"kv.cas", args{"key": "once", "expect": nil, "value": "1", "scope": "task"}}, step{"sleep", args{"ms": 20}},
		step{"send_response", args{"target": "boss@depot", "subject": "Re: s", "body": "claimed {{0}}"}})
	boss := script(step{"sleep", args{"ms": 20}}, step{"send_request", args{"target": "math@yard", "subject": "s", "body": math}}, step{"await_message", args{}})
	return script(step{"send_request", args{"target": "boss@depot", "subject": "s", "body": boss}}, step{"await_message", args{}})
}

// ask has the task done, over its events and by its answer.
func (c *chain) ask(ctx context.Context, task, want string) error {
	return answered(ctx, c.owner, client.Post{Task: task, Key: "key-" + task, Body: chainTask()}, true, want)
}

// calm does the task while nothing happens, and returns its answer and what passed.
func (c *chain) calm(t *testing.T) (answer string, passed []crossing) {
	t.Helper()
	c.watch("calm", nil)
	a, err := c.owner.PostMessage(t.Context(), client.Post{Task: "calm", Key: "key-calm", Body: chainTask()})
	if err != nil {
		t.Fatal(err)
	}
	c.settled(t, "calm")
	return a.Body, c.crossings()
}

// blow is one way in which a crossing is disturbed.
type blow struct {
	name string
	deed deed
}

// blows are all there are: a host, or all of them, is killed while the message is
// under way or when it has passed; it passes in part, or not at all.
func (c *chain) blows() (all []blow) {
	victims := map[string][]*victim{}
	for _, p := range places {
		victims[p.name] = []*victim{c.hosts[p.name]}
		victims["all"] = append(victims["all"], c.hosts[p.name])
	}
	for _, who := range slices.Sorted(maps.Keys(victims)) {
		strike := func() {
			c.striking.Lock()
			defer c.striking.Unlock()
			for _, v := range victims[who] {
				v.kill()
			}
			for _, v := range victims[who] {
				v.start()
			}
		}
		all = append(all, blow{"kill " + who + " before", deed{before: strike}}, blow{"kill " + who + " after", deed{after: strike}})
	}
	return append(all, blow{"half", deed{half: true}}, blow{"lost, then cut", deed{lost: true, cut: 2}})
}

// disturb does the task under blows, and wants its answer nevertheless.
func (c *chain) disturb(t *testing.T, task, want string, deeds map[crossing]deed) {
	t.Helper()
	c.watch(task, deeds)
	begun := time.Now()
	if err := c.ask(t.Context(), task, want); err != nil {
		t.Fatalf("%s: %v", task, err)
	}
	eventuallyTrue(t, "no host is being killed", c.still)
	c.settled(t, task)
	t.Logf("%v: %s", time.Since(begun).Round(time.Millisecond), task)
	met := func(c crossing) bool { _, ok := deeds[c]; return ok }
	if !slices.ContainsFunc(c.crossings(), met) {
		t.Errorf("%s never came to pass: %v", task, c.crossings())
	}
}

// storm gives each crossing a blow, another one with each n.
func (c *chain) storm(passed []crossing, n int) map[crossing]deed {
	all, deeds := c.blows(), map[crossing]deed{}
	for i, at := range passed {
		deeds[at] = all[(3*i+n)%len(all)].deed
	}
	return deeds
}

// TestKillAcrossHosts disturbs a task of three host processes at each step of its
// exchange, and at every step at once (R-031, R-032, G-65). It ends with its one
// answer, every host ends its part, nothing is given up, and no agent gets a
// message twice or misses one.
func TestKillAcrossHosts(t *testing.T) {
	c := newChain(t, program(t), "2m", "")
	want, passed := c.calm(t)
	tasks, every, storms := []string{"calm"}, 3, 2
	switch {
	case os.Getenv("SKEP_SOAK") != "":
		every, storms = 1, len(c.blows())
	case testing.Short():
		every, storms = 9, 1
	}
	for i, at := range passed {
		for j, b := range c.blows() {
			if (i+j)%every != 0 {
				continue // others at the next crossing
			}
			tasks = append(tasks, fmt.Sprintf("%s, %s", at, b.name))
			c.disturb(t, tasks[len(tasks)-1], want, map[crossing]deed{at: b.deed})
		}
	}
	for n := range storms {
		tasks = append(tasks, fmt.Sprint("storm ", n))
		c.disturb(t, tasks[len(tasks)-1], want, c.storm(passed, n))
	}
	told, lives := c.told(t, tasks), 0
	for _, task := range tasks {
		if diff := cmp.Diff(told["calm"], told[task]); diff != "" {
			t.Errorf("%s: the mail differs from that of a calm run (-calm +disturbed):\n%s", task, diff)
		}
	}
	for _, v := range c.hosts {
		lives += v.life
	}
	t.Logf("%d crossings, %d tasks, %d lives of three hosts, %d messages each", len(passed), len(tasks), lives, len(told["calm"]))
}
