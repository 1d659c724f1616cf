package contract

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
)

// Binding is one of several ways in which messages of a protocol come and go.
type Binding struct {
	// Name is also the name of the partner that our agents write to.
	Name string
	// Without are cases and parts that the binding cannot express, as [Protocol.Without].
	Without map[string]string
	// Outbox is set where answers leave as messages of their own, each with a logged line.
	Outbox bool
	// Dial returns a client of the host at a URL that shows a token.
	Dial func(t testing.TB, url, token string) Client
	// Serve connects a foreign agent of a partner with the host at a URL. It returns when
	// messages reach the agent, and what stops it.
	Serve func(t testing.TB, url, token string, handle Handler) (stop func())
}

// bindingCases are the cases in which a binding can matter: how a message comes and leaves
// (01 to 04), how a repeat finds its answer (11), how refusals and errors reach their
// caller (10, 12, 15), by what the sender is known (08, 13), what becomes of messages for a
// peer that is away (23), what is read of a text (28), and what is recorded (29). The others
// are about what a message means, which is the same however it comes, and run over one
// binding. What a stop, a kill or a revoked token does to connections, and what these cost
// (14, 22, 24, 30), each binding's own tests show: TestSocketEnds and TestSocketMemory,
// TestACPStdioReconnects and TestACPStdioEnds, TestMQTT.
var bindingCases = []string{"01", "02", "03", "04", "08", "10", "11", "12", "13", "15", "23", "29"}

// RunBindings holds further bindings of a protocol against the cases of the contract in
// which a binding can matter, all on one host. Serve of the protocol is not used.
func RunBindings(t *testing.T, p Protocol, list []Binding) {
	t.Helper()
	p.Serve = nil
	s := newSuite(t, p, tablesOf(list), "requests = RATE", "requests = 0") // they count over all bindings
	for _, b := range list {
		t.Run(b.Name, func(t *testing.T) { s.over(t, b).runBinding(t) })
	}
	t.Run("29 no secret is written", s.noSecrets)
}

// tablesOf are the partners of bindings, with their keys: of each the one that our agents
// write to, and the one that is watched; and those that are away.
func tablesOf(list []Binding) string {
	tables := "[gateways.NAME.partners.dead]\ngive_up = \"10m\"\n[gateways.NAME.partners.gone]\ngive_up = \"1s\"\n"
	for _, name := range []string{"dead", "gone"} {
		tables += keyTable(name)
	}
	for _, b := range list {
		tables += fmt.Sprintf("[gateways.NAME.partners.%s]\nids = [\"x\", %[1]q]\nmay = [\"ask\", \"tell\"]\n[gateways.NAME.partners.watched-%[1]s]\nagents = [\"math\"]\n", b.Name)
		for _, name := range []string{b.Name, "watched-" + b.Name} {
			tables += keyTable(name)
		}
	}
	return tables
}

// keyTable has the key of a partner.
func keyTable(name string) string {
	return fmt.Sprintf("[[auth.keys]]\nid = %q\nrole = \"agent\"\nkey = %q\n", name, tokenOf(name))
}

// tokenOf is the token of a partner of [RunBindings].
func tokenOf(name string) string { return "token-of-the-realm-" + name + "-20" }

// over is the suite with clients and a foreign agent of a binding.
func (s *suite) over(t *testing.T, b Binding) *suite {
	t.Helper()
	own := *s
	watched := "watched-" + b.Name
	own.foreign, own.peer, own.watched, own.deadAddress = newForeign(), "x@"+b.Name, realm{watched, tokenOf(watched)}, "dead"
	own.outbox = b.Outbox
	own.p.Without, own.p.Dial, own.unused = b.Without, b.Dial, keysOf(b.Without)
	own.p.Serve = func(t testing.TB, partner string, handle Handler) (string, func()) {
		t.Helper()
		return "", b.Serve(t, s.site.URL(), tokenOf(partner), handle)
	}
	_, stop := own.p.Serve(t, b.Name, own.foreign.handle)
	t.Cleanup(stop)
	return &own
}

// runBinding runs the cases. What is refused comes last, since the writes of the store are
// watched.
func (s *suite) runBinding(t *testing.T) {
	var ran atomic.Int32
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases() {
			if !slices.Contains(bindingCases, c.number) {
				continue
			}
			t.Run(c.number+" "+c.name, func(t *testing.T) {
				t.Parallel()
				ran.Add(1)
				s.part(t, c.number, func() { c.run(s, t) })
			})
		}
	})
	t.Run("28 refused before a durable write", func(t *testing.T) {
		ran.Add(1)
		s.refusedEarly(t)
	})
	s.checkWithout(t, int(ran.Load()) == len(bindingCases)+1)
}
