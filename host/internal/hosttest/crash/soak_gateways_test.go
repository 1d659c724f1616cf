package crash_test

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// soakKeys are the keys of the soak's guests at Hive: a partner of each gateway that has partners,
// and a user.
const (
	soakKey     = "a-key-of-the-guest-over-"
	soakUserKey = "a-key-to-try-on-this-machine"
	soakOpsKey  = "a-key-of-the-operator-on-this-machine"
)

// soakGuests are the tables of the guests. goal is asked by each of them.
const soakGuests = `[gateways.a2a.partners.depot-a2a]
[gateways.mcp]
[gateways.a2a.partners.guest-a2a]
[gateways.acp.partners.guest-acp]
ids = ["guest-*"]
[gateways.amp.partners.guest-amp]
ids = ["guest-*"]
[gateways.amp.partners.guest-queue]
ids = ["reader-*"]
queues = true
hmac_key = "` + queueKey + `"
give_up = "10m"
[gateways.iacp.partners.guest-iacp]
ids = ["guest-*"]
[gateways.uamp.partners.guest-uamp]
ids = ["did:key:*"]
`

// soak is both hosts with guests, and a broker of RabbitMQ where there is one.
type soak struct {
	t      *testing.T
	e      *hosttest.Everywhere
	iacp   string
	broker *hosttest.RabbitMQ
	// ops are the clients of both hosts' operator.
	ops   map[*hosttest.Process]*client.Client
	tally soakTally
	// every is the time between two disturbances, and between two lines of progress if it is a minute
	// or more.
	every time.Duration
	// reloads counts what was reloaded.
	reloads int
	begun   time.Time
}

// TestSoakGateways: guests ask over all gateways, come and go, cut their connections, send what is no
// message, and stop reading, while the files are reloaded. In the first half the hosts and the broker
// are killed, too; in the second half no host is, and after its last three quarters the hosts hold no
// more memory, goroutines and files than before these, within the bounds of [soak.checkFootprints].
// Each question has one answer, its agent got it once, and the logs are as they were written.
// SKEP_SOAK_GATEWAYS is how long that goes, 20 s if it is not set.
func TestSoakGateways(t *testing.T) {
	t.Parallel()
	length, err := time.ParseDuration(os.Getenv("SKEP_SOAK_GATEWAYS"))
	if err != nil {
		length = 20 * time.Second
	}
	s := startSoak(t, max(length/120, time.Second))
	callers := s.callers()
	s.run(callers, length/2, s.roughly())
	s.run(callers, length/8, s.gently()) // the hosts are warm again
	before, answered := s.footprints("at rest before the last part"), s.tally.answered()
	s.run(callers, length*3/8, s.gently())
	s.checkFootprints(before, int64(s.tally.answered()-answered))
	s.checkBroker()
	s.checkLogs()
	s.checkMail()
	t.Logf("%s\n%d lives of hive, %d of depot, %d reloads", s.tally.table(), s.e.Hive.Life, s.e.Depot.Life, s.reloads)
}

// startSoak starts the hosts with the guests' tables.
func startSoak(t *testing.T, every time.Duration) *soak {
	t.Helper()
	s := &soak{t: t, every: every, iacp: hosttest.FreeAddress(t, "127.0.0.1"), begun: time.Now()}
	guests := soakGuests
	for _, over := range []string{"a2a", "acp", "amp", "iacp", "uamp"} {
		guests += "[[auth.keys]]\nid = \"guest-" + over + "\"\nrole = \"agent\"\nkey = \"" + soakKey + over + "\"\n"
	}
	queues := ""
	if _, err := hosttest.FindSystemProgram("rabbitmq-server"); err == nil {
		s.broker = hosttest.StartRabbitMQ(t)
		queues = "[gateways.amp.rabbitmq]\nbroker = \"amqp://" + s.broker.Addr + "\"\nusername = \"guest\"\npassword = \"guest\"\n"
	}
	_, port, _ := strings.Cut(s.iacp, ":")
	const wait = `timeout = "5m"`
	const ofAction = "of a call\n" + wait // which has no give_up
	s.e = hosttest.StartEverywhere(t, ofAction, ofAction, wait, wait+"\ngive_up = \"10m\"",
		`expose = ["a2a"]`, `expose = ["a2a", "acp", "amp", "iacp", "mcp", "uamp"]`,
		"[gateways.amp]\n\n[gateways.amp.partners.depot-amp]", "[gateways.amp]\n"+queues+"[gateways.amp.partners.depot-amp]",
		"[gateways.a2a.partners.depot-a2a]", guests, "8445", port)
	s.ops = map[*hosttest.Process]*client.Client{}
	for _, p := range s.hosts() {
		s.ops[p] = s.e.ClientOf(p, soakOpsKey, "")
	}
	return s
}

// run lets the callers ask for a time while disturbances follow each other.
func (s *soak) run(callers []*soakCaller, length time.Duration, disturbances []func()) {
	var all sync.WaitGroup
	end := time.Now().Add(length)
	for _, c := range callers {
		all.Go(func() {
			for time.Now().Before(end) {
				c.turn(s)
			}
		})
	}
	all.Go(func() {
		for n := 0; time.Now().Before(end); n++ {
			time.Sleep(s.every)
			disturbances[n%len(disturbances)]()
		}
	})
	all.Go(func() {
		for time.Until(end) > time.Minute {
			time.Sleep(time.Minute)
			s.t.Logf("%v\n%s\n%s", time.Since(s.begun).Round(time.Second), s.tally.table(), s.footprint())
		}
	})
	all.Wait()
	for _, c := range callers {
		c.leave()
	}
}

// hosts are both hosts, by name.
func (s *soak) hosts() map[string]*hosttest.Process {
	return map[string]*hosttest.Process{"hive": s.e.Hive, "depot": s.e.Depot}
}
