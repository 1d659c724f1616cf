package contract

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// Tokens of callers. None may stand in what a host writes.
const (
	aliceToken    = "token-of-alice-a-user-0001"
	bobToken      = "token-of-bob-a-user-00002"
	adaToken      = "token-of-ada-an-admin-0003"
	operatorToken = "token-of-the-operator-0004"
	annToken      = "token-of-ann-of-acme-0005"
	depotToken    = "token-of-the-realm-depot-06"
	shopToken     = "token-of-the-realm-shop-007"
	dimToken      = "token-of-the-realm-dim-0008"
	farToken      = "token-of-far-of-acme-00009"
	greedyToken   = "token-of-the-realm-greedy-10"
	chattyToken   = "token-of-the-realm-chatty-11"
	watchedToken  = "token-of-the-realm-watched-13"
	waltToken     = "token-of-walt-a-user-00014"
	chloeToken    = "token-of-chloe-a-user-0015"
	unaToken      = "token-of-una-a-user-000016"
	outToken      = "token-shown-to-partners-012"
)

// hive is the file of the suite's host. NAME is the gateway's name, TABLE and PARTNER its
// lines, WEB the address of a server that agents reach, URL the address of the foreign
// agent.
const hive = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
enable_interswarm = true
breakpoint_tools = ["confirm"]
[agents.boss]
source = "file:script.wasm"
comm_targets = ["*@*"]
enable_entrypoint = true
can_complete_tasks = true
enable_interswarm = true
actions = ["confirm"]
expose = ["NAME"]
allow = { kv = "task", http = ["GET WEB"], http_private = true }
[agents.math]
source = "file:script.wasm"
expose = ["NAME"]
allow = { kv = "task", http = ["GET WEB"], http_private = true }
[agents.weak]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
expose = ["NAME"]
limits = { cpu = "200ms", host_calls = 3 }
[agents.hidden]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
[actions.confirm]
source = "human"
description = "a person confirms"
parameters = { type = "object" }
[tenants.acme]
[limits]
agent_rest_after = 0
turns = 256
[gateways.NAME]
HOLD
BODY
asks = ASKS
rate_limit = { requests = RATE, per = "1h" }
TABLE
[gateways.NAME.partners.depot]
IDS depot
may = ["ask", "tell"]
give_up = "5m"
timeout = "5m"
OUT
[gateways.NAME.partners.shop]
IDS shop
may = ["ask", "tell"]
[gateways.NAME.partners.dim]
IDS dim
may = ["ask"]
agents = ["math"]
[gateways.NAME.partners.greedy]
IDS greedy
[gateways.NAME.partners.chatty]
IDS chatty
[gateways.NAME.partners.watched]
IDS watched
agents = ["math"]
MORE[gateways.NAME.partners.far]
IDS far
tenant = "acme"
`

// callers are who may call the host.
var callers = []struct{ token, role, id, tenant string }{
	{aliceToken, "user", "alice", "default"},
	{bobToken, "user", "bob", "default"},
	{adaToken, "admin", "ada", "default"},
	{operatorToken, "operator", "op", "default"},
	{annToken, "user", "ann", "acme"},
	{depotToken, "agent", "depot", "default"},
	{shopToken, "agent", "shop", "default"},
	{watchedToken, "agent", "watched", "default"},
	{waltToken, "user", "walt", "default"},
	{unaToken, "user", "una", "default"},
	{chloeToken, "user", "chloe", "default"},
	{dimToken, "agent", "dim", "default"},
	{greedyToken, "agent", "greedy", "default"},
	{chattyToken, "agent", "chatty", "default"},
	{farToken, "agent", "far", "acme"},
}

// keys are the tables of the callers.
func keys() string {
	var b strings.Builder
	for _, c := range callers {
		fmt.Fprintf(&b, "[[auth.keys]]\nrole = %q\nid = %q\ntenant = %q\nkey = %q\n", c.role, c.id, c.tenant, c.token)
	}
	return b.String()
}

// token is the token of the protocol's first role.
func (s *suite) token() string {
	if s.p.Realms {
		return depotToken
	}
	return aliceToken
}

// otherToken is the token of another caller in that role.
func (s *suite) otherToken() string {
	if s.p.Realms {
		return shopToken
	}
	return bobToken
}

// Limits of the host's realms: open asks of one, and its messages in an hour.
const (
	openAsks       = 40
	messagesInTime = 200
)

// suite is a protocol, and the host on which most cases run.
type suite struct {
	p    Protocol
	site *hosttest.Host
	log  *hosttest.LogBuffer
	web  *web
	// foreign is the agent that the host's agents call.
	foreign *foreign
	// peer is the agent that ours write to, of the partner that foreign speaks for, and
	// watched a partner that speaks in one case only.
	peer    string
	watched realm
	// outbox is [Binding.Outbox].
	outbox bool
	// more are tables at the end of the file; deadAddress is where the partner dead will
	// listen.
	more, deadAddress string

	unused *unusedKeys
	// server are lines of the table [server], of a case with a host of its own.
	server string
	// root is a directory far above the host's, of the cases with a host of their own.
	root string
	// witness sees what the gateway does for callers; version changes with the store.
	witness *witness
	version func() int64
}

// unusedKeys are the keys of Without that no case has met.
type unusedKeys struct {
	mu   sync.Mutex
	keys map[string]bool
}

func keysOf(without map[string]string) *unusedKeys {
	u := &unusedKeys{keys: map[string]bool{}}
	for key := range without {
		u.keys[key] = true
	}
	return u
}

// realm is a partner that speaks, and its token.
type realm struct{ name, token string }

// newSuite starts the host of a suite, with more tables at the end of its file and with
// changes of its text.
func newSuite(t *testing.T, p Protocol, more string, changes ...string) *suite {
	t.Helper()
	s := &suite{
		p: p, web: newWeb(t), foreign: newForeign(), log: &hosttest.LogBuffer{}, witness: newWitness(),
		peer: p.agentOf("depot"), outbox: p.Broker, watched: realm{"watched", watchedToken}, more: more,
	}
	dir := t.TempDir()
	s.write(t, dir, changes...)
	s.site = startSite(t, s.p, dir, s.log, func(o *host.Options) {
		o.Runtime = func(_ string, rt gateway.Runtime) gateway.Runtime { return witnessed{rt, s.witness} }
	})
	s.site.StopAtEnd(t)
	return s
}

// partnerTable begins the table of a partner.
var partnerTable = regexp.MustCompile(`\[gateways\.\w+\.partners\.([\w-]+)\]\n`)

// write writes the file of a host, with changes of its text, and starts its foreign agent.
func (s *suite) write(t *testing.T, dir string, changes ...string) {
	t.Helper()
	if s.p.Place != nil {
		s.p = s.p.Place(t)
	}
	outgoing := []string{"OUT", "", "MORE", s.more}
	if s.p.Serve != nil {
		url, stop := s.p.Serve(t, "127.0.0.1:0", s.foreign.handle)
		t.Cleanup(stop)
		s.deadAddress = hosttest.FreeAddress(t, "127.0.0.1")
		dead, stop := s.p.Serve(t, s.deadAddress, s.foreign.handle)
		stop()
		outgoing = []string{"OUT", s.partner(url), "MORE", s.table("mirror", url, "5m", "5m") + s.table("late", url, "1s", "1s") + s.table("dead", dead, "10m", "5m") + s.table("gone", dead, "1s", "1s")}
	}
	if _, unnamed := s.p.Without["13"]; unnamed { // its messages name no senders
		changes = append(changes, "IDS depot\n", "", "IDS shop\n", "")
	}
	if _, texts := s.p.Without["25"]; !texts { // its bodies are small
		changes = append(changes, "BODY", `max_body = "24MiB"`)
	} else {
		changes = append(changes, "BODY\n", "")
	}
	if changes = append(changes, s.ids()...); s.p.NoHold {
		changes = append(changes, "HOLD\n", "")
	}
	changes = append(changes, "HOLD", `hold = "10m"`)
	lines := strings.NewReplacer(append(outgoing, changes...)...).Replace(hive + keys())
	lines += "[server]\n" + s.server
	if s.p.Cert != "" {
		lines += fmt.Sprintf("tls = { cert = %q, key = %q }\n", s.p.Cert, s.p.Key)
	}
	lines = strings.NewReplacer("NAME", s.p.Name, "TABLE", s.p.Table, "WEB", s.web.url, "ASKS", fmt.Sprint(openAsks), "RATE", fmt.Sprint(messagesInTime)).Replace(lines)
	lines = partnerTable.ReplaceAllString(lines, "${0}"+strings.ReplaceAll(s.p.EachPartner, "PARTNER", "$1"))
	files := map[string][]byte{"swarm.toml": []byte(lines), "script.wasm": guests.Bytes(t, "plugins/script")}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ids are the changes of the file that give partners their ids.
func (s *suite) ids() (changes []string) {
	for name, pattern := range map[string]string{"depot": "depot-*", "shop": "shop-*", "dim": "", "greedy": "", "chatty": "", "watched": "", "far": ""} {
		patterns := []string{pattern}
		if s.p.IDs != nil {
			patterns = s.p.IDs(name)
		}
		line := ""
		if patterns[0] != "" {
			line = fmt.Sprintf("ids = [\"%s\"]\n", strings.Join(patterns, `", "`))
		}
		changes = append(changes, "IDS "+name+"\n", line)
	}
	return changes
}

// partner are the lines of a partner that is called at a URL.
func (s *suite) partner(url string) string {
	if s.p.Broker { // it has no address
		return s.p.Partner + "\n"
	}
	return fmt.Sprintf("url = %q\nauth_token = %q\nallow_private = true\n%s\n", url, outToken, s.p.Partner)
}

// table is the table of one more partner.
func (s *suite) table(name, url, giveUp, timeout string) string {
	return fmt.Sprintf("[gateways.NAME.partners.%s]\ngive_up = %q\ntimeout = %q\n%s", name, giveUp, timeout, s.partner(url))
}

// startSite starts a host of the files in a directory in this process, with a log or
// without one, and with changes of its options. The caller stops it.
func startSite(t *testing.T, p Protocol, dir string, log *hosttest.LogBuffer, changes ...func(*host.Options)) *hosttest.Host {
	t.Helper()
	cfg, err := load(p, dir)()
	if err != nil {
		t.Fatal(err)
	}
	opt := options(p, dir, cfg)
	if log != nil {
		opt.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	for _, change := range changes {
		change(&opt)
	}
	return hosttest.Run(t, opt)
}

// options are the options of a host of the files in a directory.
func options(p Protocol, dir string, cfg *config.Config) host.Options {
	opt := host.Options{Config: cfg, DataDir: filepath.Join(dir, ".skep"), Reread: load(p, dir), Ping: 50 * time.Millisecond}
	if p.Gateway != nil {
		opt.Gateways = map[string]host.NewGateway{p.Name: p.Gateway}
	}
	return opt
}

// dial returns a client of the suite's host.
func (s *suite) dial(t *testing.T, token string) Client {
	t.Helper()
	return s.p.Dial(t, s.site.URL(), token)
}

// finish is the step of a script that completes the task.
func finish(text string) hosttest.Step {
	return hosttest.Step{"task_complete", hosttest.Args{"finish_message": text}}
}
