package config

import (
	"crypto/sha256"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skep/host/internal/api/listener"
	"skep/host/internal/turn/wasm/binary"
)

// revealed compares secrets by their text, which cmp could not print otherwise.
var revealed = cmp.Options{
	cmpopts.IgnoreUnexported(Config{}),
	cmp.Transformer("reveal", Secret.Reveal),
	cmpopts.EquateComparable(netip.Prefix{}),
	cmp.Transformer("text", func(r json.RawMessage) string { return string(r) }),
}

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("swarm.toml", []byte(text), "testdata/valid", testOptions)
	if err != nil {
		t.Fatalf("Parse:\n%v", err)
	}
	return c
}

func readValid(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/valid", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := &Config{
		File: "swarm.toml",
		Dir:  "testdata/valid",
		Swarm: Swarm{
			Name: "hive", Keywords: []string{}, Entrypoint: "a", BreakpointTools: []string{},
			ExcludeTools: []string{}, InterruptMode: "queue", Pos: Pos{2, 2},
		},
		Agents: []Agent{{
			Name:        "a",
			Source:      Source{Kind: SourceBundled, Ref: "script", Path: "testdata/valid/plugins/script.wasm"},
			CommTargets: []string{}, EnableEntrypoint: true, CanCompleteTasks: true,
			Actions: []string{}, Expose: []string{}, ExcludeTools: []string{}, Params: json.RawMessage("{}"),
			Allow: Allow{LLM: []string{}, HTTP: []string{}, HTTPNoKey: []string{}, Secrets: []string{}, RetryInDoubt: true},
			Limits: AgentLimits{
				Memory: 64 << 20, Turn: 10 * time.Minute, CPU: 10 * time.Second, Fuel: 200e9,
				Output: 1 << 20, Stack: 8 << 20, HostCalls: 1000, HostBytes: 16 << 20, Grace: 250 * time.Millisecond,
			},
			Pos: Pos{5, 9},
		}},
		Limits: Limits{
			TaskMessages: 100, TaskTimeout: time.Hour, Instances: 10_000, PeerTasks: 1000, Queue: 10_000, Turns: 64, ProcessIdle: 10 * time.Minute,
			AgentRestAfter: 5, AgentRest: time.Minute, TurnBuffers: 512 * MiB, WaitingTurns: 64,
			HTTP: HTTPLimits{Timeout: time.Minute, Request: 2 << 20, Response: 8 << 20},
			Module: binary.Caps{
				Size: 16 << 20, Functions: 50_000, Body: 64 << 10, Locals: 256, Nesting: 1024, BrTable: 10_000,
				Types: 10_000, Imports: 64, Exports: 1024, Globals: 10_000, DataSegments: 200_000,
				ElementSegments: 10_000, Tables: 4, TableElements: 100_000, CompileWork: 1000,
			},
		},
		Server: Server{
			Listen: "127.0.0.1:8000", AdminListen: "127.0.0.1:8001", Hosts: []string{}, CORSOrigins: []string{},
			MaxBody: 1 << 20, MaxDepth: 64, ShutdownGrace: 30 * time.Second, PeerHealth: 30 * time.Second, RateLimit: RateLimit{Tenant: 6000, Per: time.Minute},
			MaxConnections: 16_384, MaxStreams: 10_000, MaxStreamsPerPrincipal: 1_000,
		},
		Auth:      Auth{},
		Tenants:   []Tenant{{Name: "default", Weight: 1, Definitions: 64, Pos: Pos{1, 1}}},
		Store:     Store{Driver: "sqlite", JournalRetention: 168 * time.Hour, MessageLog: GiB},
		Telemetry: Telemetry{LogLevel: "info", LogFormat: "auto", Sample: 1, Logs: true, SpanQueue: 4096, ExportTimeout: 10 * time.Second},
		Console:   Console{Look: LookFree},
	}
	if diff := cmp.Diff(want, mustParse(t, readValid(t, "minimal.toml")), revealed); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}

// Content is free where only this machine calls and no tenant is configured, and elsewhere nobody's.
func TestLookDefault(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"":                    LookFree,
		"[tenants.acme]\n":    LookNever,
		"[tenants.default]\n": LookNever,
		"[server]\npublic_url = \"https://hive.example\"\n": LookNever,
		"[server]\ntrusted_proxies = [\"10.0.0.0/8\"]\n":    LookNever,
		"[tenants.acme]\n[console]\nlook = \"reason\"\n":    LookReason,
		"[console]\nlook = \"never\"\n":                     LookNever,
		"[tenants.acme]\n[console]\nlook = \"free\"\n":      LookFree,
	} {
		if c := mustParse(t, readValid(t, "minimal.toml")+"\n"+more); c.Console.Look != want {
			t.Errorf("%s: look is %q, want %q", more, c.Console.Look, want)
		}
	}
}

func TestInterruptModeIsBuilt(t *testing.T) {
	t.Parallel()
	text := strings.Replace(readValid(t, "minimal.toml"), "[swarm]\n", "[swarm]\ninterrupt_mode = \"preempt\"\n", 1)
	if c := mustParse(t, text); c.Swarm.InterruptMode != InterruptPreempt {
		t.Errorf("interrupt_mode is %q", c.Swarm.InterruptMode)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	c := mustParse(t, readValid(t, "forms.toml"))
	var names []string
	for _, a := range c.Agents {
		names = append(names, a.Name)
	}
	if diff := cmp.Diff([]string{"zeta", "été", "alpha"}, names); diff != "" {
		t.Errorf("agents are not in the order of the file (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"alpha", "été"}, c.Agents[0].CommTargets); diff != "" {
		t.Errorf("comm_targets (-want +got):\n%s", diff)
	}
	const params = `{"empty":{},"list":[[1,2],[]],"raw":"a\\b''c","text":"He said \"hi\" to \"\"all\"\""}`
	if got := string(c.Agents[1].Params); got != params {
		t.Errorf("params = %s, want %s", got, params)
	}
	if got := c.Agents[2]; got.Limits.Turn != 90*time.Second || got.Pos != (Pos{30, 9}) {
		t.Errorf("alpha: turn %v at %v", got.Limits.Turn, got.Pos)
	}
	if c.Limits.Queue != 12 || c.Limits.Turns != 0 || !c.Swarm.Public || c.Server.Listen != "127.0.0.1:9999" {
		t.Errorf("limits %+v, server %+v", c.Limits, c.Server)
	}
	key := AuthKey{Tenant: "default", ID: "a.b_c~d-e", Role: "operator", SHA256: sha256.Sum256([]byte("0123456789abcdef-ops")), Pos: Pos{10, 15}}
	if diff := cmp.Diff([]AuthKey{key}, c.Auth.Keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// The whole grammar is accepted once every capability is built.
func TestWholeGrammar(t *testing.T) {
	t.Parallel()
	env := func(name string) (string, bool) {
		if name == "DATABASE_URL" {
			return "postgres://database_url.example", true
		}
		return "https://" + strings.ToLower(name) + ".example", true
	}
	c, err := parse("whole.toml", []byte(readValid(t, "whole.toml")), "testdata/valid", Options{Env: env, BundleDir: "testdata/valid/plugins"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Agents[0]
	checks := map[string]struct{ got, want any }{
		"breakpoints": {c.Swarm.BreakpointTools, []string{"confirm_order"}},
		"targets":     {a.CommTargets, []string{"calc", "native", "remote", "stats@depot"}},
		"excluded":    {a.ExcludeTools, []string{"help", "ignore_broadcast"}},
		"sha256":      {a.SHA256, strings.Repeat("0123456789abcdef", 4)},
		"params":      {string(a.Params), `{"model":"default","odd key":[1,2.5,{"at":"2026-11-20T10:00:00Z"}],"system":"You run the port.\n"}`},
		"limits":      {a.Limits, AgentLimits{96 * MiB, 5 * time.Minute, 90 * time.Minute, 5e6, 512_000, MiB, 10, 65536, time.Second, 50_000, 0.5}},
		"allow": {a.Allow, Allow{LLM: []string{"default"}, HTTP: []string{"https://api.example.com", "http://[::1]:8080"},
			HTTPNoKey: []string{"POST https://api.example.com/odd"}, HTTPPrivate: true, KV: "agent", Secrets: []string{"weather_key"}}},
		"exec":       {c.Agents[2].Source, Source{SourceExec, "./build/native", "testdata/valid/build/native", nil}},
		"oci":        {c.Agents[3].Source.Kind, SourceOCI},
		"times":      {string(c.Agents[3].Params), `{"deep":{"date":"2026-11-20","local":"2026-11-20T07:32:00","time":"07:32:00"}}`},
		"human":      {c.Actions[0].Source, Source{Kind: SourceHuman}},
		"parameters": {string(c.Actions[0].Parameters), `{"properties":{"order":{"type":"string"}},"required":["order"],"type":"object"}`},
		"action":     {c.Actions[1].Timeout, 30 * time.Second},
		"process": {[]any{actionOf(c, "tool").Source.Kind, actionOf(c, "tool").Trusted, actionOf(c, "tool").Readable},
			[]any{SourceExec, true, []string{"testdata/valid/prompts"}}},
		"model": {c.Models[0], Model{
			Name: "default", Provider: "openai", BaseURL: "https://openai_base_url.example", Model: "small",
			APIKey: "https://openai_api_key.example", MaxTokens: 1000, Timeout: 30 * time.Second, RestAfter: 5, Rest: 30 * time.Second,
			InputPrice: 0.15, CachedPrice: 0.075, OutputPrice: 6, CassetteMode: "auto", AllowPrivate: true, Pos: c.Models[0].Pos,
		}},
		"thinking":   {[]any{c.Models[2].Reasoning, c.Models[2].Cache, c.Models[2].WritePrice}, []any{"medium", true, 3.75}},
		"script":     {c.Models[1].Cassette, "testdata/valid/prompts/answers.json"},
		"budgets":    {[]any{c.Limits.TaskTokens, c.Limits.TaskUSD}, []any{int64(200_000), 2.0}},
		"secret":     {c.Secrets[0].Value.Reveal(), "https://weather_key.example"},
		"public_url": {c.Server.PublicURL, "https://hive.example/mail"},
		"rate":       {c.Server.RateLimit, RateLimit{120, 6000, 10 * time.Second}},
		"jwt": {c.Auth.JWT, JWT{
			Issuer: "https://id.example/", Audience: "hive", Leeway: time.Minute, Algorithms: []string{"EdDSA", "HS256"},
			Keys: `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"one","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
			Outsiders: Outsiders{
				TenantClaim: "org", RoleClaim: "realm_access.roles", Role: "agent", Agents: []string{"depot"},
				Roles: map[string]string{"staff": "user", "skep-admin": "admin"},
			},
		}},
		"endpoints": {c.Auth.Endpoints, AuthEndpoints{
			Login: "https://id.example/login", TokenInfo: "http://127.0.0.1:9/info?x=1", CacheTTL: 10 * time.Second,
			Outsiders: Outsiders{Tenant: "acme", RoleClaim: "role"},
		}},
		"key peer":    {c.Auth.Keys[2].Peer, "depot"},
		"tenant":      {c.Tenants[0].USDPerDay, 2.5},
		"tenants":     {len(c.Tenants), 2},
		"quotas":      {[]int{c.Tenants[1].Turns, c.Tenants[1].Tasks, c.Tenants[1].Queue, c.Tenants[1].Weight}, []int{8, 50, 500, 1}},
		"key tenants": {[]string{c.Auth.Keys[0].Tenant, c.Auth.Keys[1].Tenant}, []string{"default", "acme"}},
		"peer":        {string(c.Peers[0].Metadata), `{"region":"north"}`},
		"peer flags":  {[]bool{c.Peers[0].AllowPrivate, c.Peers[0].LegacyBodyToken, c.Peers[0].Public}, []bool{true, true, true}},
		"verify key":  {c.Peers[0].VerifyKey, "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="},
		"signatures":  {c.Server.SignLetters, true},
		"peer health": {c.Server.PeerHealth, time.Duration(0)},
		"dsn":         {c.Store.DSN.Reveal(), "postgres://database_url.example"},
		"keyring":     {c.Store.Keyring.Reveal(), "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},
		"retention":   {[]time.Duration{c.Store.JournalRetention, c.Store.HistoryRetention}, []time.Duration{60 * time.Hour, 2160 * time.Hour}},
		"message log": {c.Store.MessageLog, 2 * GiB},
		"tls": {c.Server.TLS, TLS{Files: listener.Files{Cert: "testdata/valid/tls/cert.pem", Key: "testdata/valid/tls/key.pem",
			ClientCA: "testdata/valid/tls/cert.pem"}, RequireClient: true}},
		"proxies": {c.Server.TrustedProxies, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}},
		"crowd": {[]int{c.Server.MaxConnections, c.Server.MaxConnectionsPerAddress, c.Server.MaxStreams, c.Server.MaxStreamsPerPrincipal},
			[]int{5000, 20, 0, 7}},
		"telemetry": {c.Telemetry, Telemetry{"debug", "json", true, "http://127.0.0.1:4318", "X-Collector-Key", "https://ops_key.example", false, 0.25, 1000, 3 * time.Second}},
		"console":   {c.Console, Console{LookReason}},
		"questions": {c.Questions, Questions{"https://hooks.example/skep/?sig=a%2Fb", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}},
		"gateway": {withoutPartners(gatewayOf(c, "a2a")), Gateway{
			Name: "a2a", Profile: ProfileStrict, Admit: []string{"did:web:*.example.org"}, StrangerTenant: "acme", Hold: 20 * time.Second, Keep: 48 * time.Hour,
			MaxBody: 16 * MiB, MaxDepth: 32, RateLimit: RealmRate{60, 10 * time.Second}, Asks: 17, Sessions: 9, KeepRaw: true, BehindProxy: true,
			Protocol: &A2A{}, Pos: gatewayOf(c, "a2a").Pos,
		}},
		"partner": {withoutTLS(gatewayOf(c, "a2a").Partners[0]), Partner{
			Name: "shop", Gateway: "a2a", URL: "https://shop.example/a2a", IDs: []string{"shop-*"}, Agents: []string{"supervisor"}, Tenant: "acme",
			AuthToken: "https://shop_token.example", APIKey: "https://shop_key.example", HMACKey: "https://shop_hmac.example",
			CA: "testdata/valid/tls/cert.pem", Certificate: "testdata/valid/tls/cert.pem", Key: "testdata/valid/tls/key.pem", Certificates: []string{"spiffe://shop.example/agents"},
			May: []string{"ask", "tell", "contexts"}, Timeout: 90 * time.Second, GiveUp: time.Minute, AllowPrivate: true,
			Protocol: &A2APartner{Card: "https://shop.example/.well-known/agent-card.json", Keys: []string{`{"kty":"OKP","crv":"Ed25519","kid":"one","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`}}, Pos: gatewayOf(c, "a2a").Partners[0].Pos,
		}},
		"partner's certificate": {len(gatewayOf(c, "a2a").Partners[0].TLS.Certificates), 1},
		"partner's authorities": {gatewayOf(c, "a2a").Partners[0].TLS.RootCAs != nil, true},
		"gateway defaults": {gatewayOf(c, "mcp"), Gateway{
			Name: "mcp", Profile: ProfileDefault, Admit: []string{}, StrangerTenant: "guests", Hold: 30 * time.Second, Keep: 24 * time.Hour,
			MaxBody: MiB, MaxDepth: 64, RateLimit: RealmRate{600, time.Minute}, Asks: 256, Sessions: 256,
			Protocol: &MCPGateway{SessionIdle: 5 * time.Minute}, Pos: gatewayOf(c, "mcp").Pos,
		}},
		"token of amp": {gatewayOf(c, "amp").Protocol, Keys(&AMP{Token: "AIP", Lease: time.Minute, RabbitMQ: RabbitMQ{
			Broker: "amqps://broker.example:5671/mesh", Exchange: "mesh", BrokerAccess: BrokerAccess{Username: "hive", Password: "https://ops_key.example"},
		}, Kafka: Kafka{Prefix: "amp", Mechanism: "plain"}})},
		"amp":              {gatewayOf(c, "amp").Partners[0].Protocol, Keys(&AMPPartner{HMACAlone: true, Binding: BindingHTTP, Queues: true})},
		"uamp":             {gatewayOf(c, "uamp").Protocol, Keys(&UAMP{DID: "did:web:hive.example", RequireCapToken: true, ClockSkew: time.Minute, MaxWindow: 32, Subscriptions: 17})},
		"iacp":             {gatewayOf(c, "iacp").Protocol, Keys(&IACP{Listen: "127.0.0.1:9001", Heartbeat: 20 * time.Second, Idle: 50 * time.Second, Ack: 5 * time.Second})},
		"address of a hub": {gatewayOf(c, "iacp").Partners[0].URL, "iacps://mill.example:9000"},
		"instances":        {c.Limits.Instances, 5},
		"peer tasks":       {c.Limits.PeerTasks, 9},
		"module size":      {c.Limits.Module.Size, int64(32 * MiB)},
	}
	for name, check := range checks {
		if diff := cmp.Diff(check.want, check.got, revealed); diff != "" {
			t.Errorf("%s mismatch (-want +got):\n%s", name, diff)
		}
	}
}

// Every row of the table of unimplemented capabilities is what some setting of the
// whole grammar runs into, and nothing else stops that file.
func TestUnbuilt(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(readValid(t, "whole.toml"), "env::", "https://")
	for capability, what := range refusedCapabilities() {
		_, err := parse("whole.toml", []byte(text), "testdata/valid", testOptions, map[string]string{capability: what})
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: error = %v", capability, err)
		}
	}
}

// A refusal of a setting that a protocol has no use for lists the protocols that have one.
func TestUses(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"hold", "ids", "profile", "sessions"} {
		var users []string
		for _, name := range gatewayNames {
			if !slices.Contains(protocols[name].lacks, key) {
				users = append(users, name)
			}
		}
		if text := inapplicable["gateways."+key]; !strings.HasSuffix(text, ": "+strings.Join(users, ", ")) {
			t.Errorf("%s: %q, want %q", key, text, users)
		}
	}
}

func TestNeutralSettingsOfUnbuiltCapabilities(t *testing.T) {
	t.Parallel()
	mustParse(t, readValid(t, "minimal.toml")+`
enable_interswarm = false
expose = []
actions = []
allow = { llm = [], http = [], secrets = [] }
[tenants.default]
[server]
require_lock = false
[store]
driver = "sqlite"
[actions]
[peers]
`)
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `schema = 1
[swarm]
name = "hive"
entrypoint = "a"
enable_interswarm = true
[server]
listen = ":8000"
plain_http = true
[[auth.keys]]
id = "alice"
role = "user"
key = "0123456789abcdef-alice"
[agents.a]
source = "bundled:script"
enable_entrypoint = true
comm_targets = ["b"]
[agents.b]
source = "bundled:script"
can_complete_tasks = true
[agents.c]
source = "bundled:script"
comm_targets = ["b", "d"]
[agents.d]
source = "bundled:script"
comm_targets = ["c"]
[agents.e]
source = "bundled:script"
comm_targets = ["b", "x@yard", "x@depot", "y@depot", "*@*"]
enable_entrypoint = true
enable_interswarm = true
allow = { kv = "task" }
[peers.yard]
base_url = "https://yard.example"
[models.big]
provider = "openai"
model = "big"
[models.small]
provider = "openai"
base_url = "http://models.example/v1"
model = "small"
input_usd_per_mtok = 1
[limits]
task_usd = 1
`)
	want := `swarm.toml:12:1: auth.keys[0].key stands in this file, and whoever reads the file has it; write "env::NAME" or "file::PATH"
swarm.toml:20:9: no entrypoint reaches the agent "c" through comm_targets
swarm.toml:23:9: no entrypoint reaches the agent "d" through comm_targets
swarm.toml:28:32: agents.e.comm_targets[2]: this file has no [peers.depot]; until ` + "`skep peer add depot`" + ` makes it known to the running host, nothing reaches "x@depot"
swarm.toml:31:1: the agent "e" does what its messages say: whoever can write to it has its grants
swarm.toml:32:8: peers.yard has no auth_token: this swarm can neither ask yard nor answer it
swarm.toml:34:9: models.big has no prices, so budgets of dollars do not bound its calls; add input_usd_per_mtok and output_usd_per_mtok
swarm.toml:39:1: models.small.base_url is http: whoever is on the way reads the key and all that is said; write https`
	if diff := cmp.Diff(want, c.Warnings.Error()); diff != "" {
		t.Errorf("warnings mismatch (-want +got):\n%s", diff)
	}
	if c.Server.RateLimit.Requests != 600 {
		t.Errorf("rate limit of a public listener = %+v, want the default", c.Server.RateLimit)
	}
	if c.Server.MaxConnectionsPerAddress != 256 {
		t.Errorf("a public listener takes %d connections from an address, want the default", c.Server.MaxConnectionsPerAddress)
	}
}

// What a file sets and nothing heeds is told, and is no limit in force.
func TestSettingsWithoutEffect(t *testing.T) {
	t.Parallel()
	const process = "\n[agents.p]\nsource = \"exec:build/native\"\ntrusted = true\ncan_complete_tasks = true\nenable_entrypoint = true\n"
	for more, want := range map[string]string{
		process + "limits = { fuel = 5, cpu = \"1s\", memory = \"64MiB\" }\n": "swarm.toml:15:12: agents.p.limits.fuel has no effect: a process is bounded by memory, turn, output, host_calls and host_bytes\n" +
			"swarm.toml:15:22: agents.p.limits.cpu has no effect: a process is bounded by memory, turn, output, host_calls and host_bytes",
		process + "limits = { memory = \"64MiB\", turn = \"1m\", host_calls = 5 }\n": "",
		"\n[actions.ask]\nsource = \"human\"\ndescription = \"Asks.\"\nparameters = {}\nallow = { kv = \"task\" }\nparams = { a = 1 }\n": "swarm.toml:14:1: actions.ask.allow has no effect: a person answers this action\n" +
			"swarm.toml:15:1: actions.ask.params has no effect: a person answers this action",
		"params = { sistem = \"x\" }\n": "swarm.toml:9:1: agents.a.params has no effect: bundled:script takes no params",
		"\n[models.m]\nprovider = \"openai\"\nmodel = \"m\"\napi_key = \"env::EMPTY\"\n": "swarm.toml:13:1: models.m.api_key is empty, because the variable EMPTY is: its calls carry no key",
		"\n[models.m]\nprovider = \"openai\"\nmodel = \"m\"\napi_key = \"\"\n":           "",
	} {
		c := mustParse(t, readValid(t, "minimal.toml")+more)
		if diff := cmp.Diff(want, c.Warnings.Error()); diff != "" {
			t.Errorf("%s\n%s", more, diff)
		}
		for _, s := range Explain(c) {
			if s.Key == "agents.p.limits.fuel" || s.Key == "agents.p.limits.cpu" || s.Key == "agents.p.limits.stack" || s.Key == "limits.history" {
				t.Errorf("%s is told to be in force", s.Key)
			}
		}
	}
}

func TestConfigFault(t *testing.T) {
	t.Parallel()
	c := mustParse(t, readValid(t, "minimal.toml"))
	for _, tt := range []struct{ path, want string }{
		{"agents a source", `swarm.toml:6:10: why`},
		{"agents a sha256", `swarm.toml:5:9: why`},
		{"agents a allow http", `swarm.toml:5:9: why`},
		{"limits module size", `swarm.toml:1:1: why`},
		{"", `swarm.toml:1:1: why`},
	} {
		if got := c.Fault("why", strings.Fields(tt.path)...).String(); got != tt.want {
			t.Errorf("Fault(%s) = %s, want %s", tt.path, got, tt.want)
		}
	}
	if got := (&Config{File: "f"}).Fault("why", "a").String(); got != "f:1:1: why" {
		t.Errorf("Fault of a Config made by hand = %s", got)
	}
}

func TestAgent(t *testing.T) {
	t.Parallel()
	c := mustParse(t, readValid(t, "minimal.toml"))
	if a, ok := c.Agent("a"); !ok || a.Name != "a" {
		t.Errorf("Agent(a) = %v, %v", a.Name, ok)
	}
	if _, ok := c.Agent("b"); ok {
		t.Error("Agent(b) was found")
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	c := mustParse(t, readValid(t, "minimal.toml")+"limits = { memory = \"1.5MiB\" }\n[limits]\ntask_timeout = 0\nqueue = 0\nhttp = { request = \"64KiB\" }\n[tenants.acme]\nturns = 4\n")
	got := map[string]Limit{}
	for _, s := range Explain(c) {
		got[s.Key] = s
	}
	for _, want := range []Limit{
		{"limits.task_messages", "100", false},
		{"limits.task_timeout", "unlimited", true},
		{"limits.queue", "unlimited", true},
		{"limits.http.timeout", "1m", false},
		{"limits.http.request", "64KiB", true},
		{"limits.http.response", "8MiB", false},
		{"limits.module.body", "64KiB", false},
		{"server.shutdown_grace", "30s", false},
		{"server.rate_limit.requests", "unlimited", false},
		{"store.journal_retention", "168h", false},
		{"store.history_retention", "unlimited", false},
		{"tenants.acme.turns", "4", true},
		{"tenants.acme.storage", "unlimited", false},
		{"tenants.acme.weight", "1", false},
		{"agents.a.limits.memory", "1536KiB", true},
		{"agents.a.limits.turn", "10m", false},
	} {
		if got[want.Key] != want {
			t.Errorf("Explain[%s] = %+v, want %+v", want.Key, got[want.Key], want)
		}
	}
	if len(got) != 13+18+9+3+8+13+1 { // the last is the source of a
		t.Errorf("%d settings", len(got))
	}
}

func actionOf(c *Config, name string) Action {
	for _, a := range c.Actions {
		if a.Name == name {
			return a
		}
	}
	return Action{}
}
