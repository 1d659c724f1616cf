package config

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"skep/host/internal/pathcheck"
)

// Config is one swarm.toml with every reference resolved and every default
// applied. It is a plain value; nothing changes it after [Parse].
type Config struct {
	File string // as it is named in messages
	Dir  string // what relative paths in the file are relative to

	Swarm     Swarm
	Agents    []Agent // in the order of the file, as all lists here
	Actions   []Action
	Models    []Model
	Secrets   []SecretGrant
	MCP       []MCP
	Limits    Limits
	Server    Server
	Auth      Auth
	Tenants   []Tenant // always holds "default"
	Peers     []Peer
	Store     Store
	Cluster   Cluster
	Telemetry Telemetry
	Console   Console
	Questions Questions
	Gateways  []Gateway

	// Warnings are what is probably not meant but works.
	Warnings Faults

	src  *source
	root *node
}

// Pos is a place in the file, both numbers from 1.
type Pos struct{ Line, Col int }

// Options is what a file may refer to besides other files.
type Options struct {
	// Env looks up the variables that env:: names. Nil means that none is set.
	Env func(name string) (string, bool)
	// BundleDir holds the bundled modules: bundled:NAME is NAME.wasm in it.
	BundleDir string
	// Bundled has the modules that are part of the program, for those that BundleDir
	// lacks. It may be nil.
	Bundled Bundle
	// PlainHTTP allows what [server] plain_http does.
	PlainHTTP bool
	// Now is when a host is to show the file's certificate: one that is not valid
	// then is a fault. The zero time leaves that to a host that runs already.
	Now time.Time
	// Gateways are protocols that the host serves besides those of this package. Tests
	// set it.
	Gateways []string
}

// Load reads and checks the file at path. Its error is [Faults] if the file
// could be read, and wraps fs.ErrNotExist if there is none.
func Load(path string, opt Options) (*Config, error) {
	text, dir, err := readText(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text, dir, opt)
}

// Door is where callers find a host.
type Door struct {
	Listen    string // as in [Server]
	PublicURL string
	TLS       bool
}

// Listen reads where a host listens, and nothing else, from the file at path:
// other settings may be at fault, or refer to what only the host has. Its
// errors are as [Load] has them.
func Listen(path string, opt Options) (Door, error) {
	d, file, err := open(path, opt)
	if err != nil {
		return Door{}, err
	}
	server := file.table("server")
	door := Door{Listen: server.address("listen", defaultListen), PublicURL: server.url("public_url"), TLS: server.has("tls")}
	if len(d.faults) > 0 {
		return Door{}, d.result()
	}
	return door, nil
}

// open reads the values of the file at path, for one who wants a few of them.
func open(path string, opt Options) (*decoder, *table, error) {
	text, dir, err := readText(path)
	if err != nil {
		return nil, nil, err
	}
	src := newSource(path, strings.TrimPrefix(string(text), string(bom)))
	values, root, fault := read(src)
	if fault != nil {
		return nil, nil, Faults{*fault}
	}
	d := &decoder{src: src, dir: dir, opt: opt, unimplemented: refusedCapabilities()}
	return d, &table{location: location{node: root}, d: d, values: values}, nil
}

func readText(path string) (text []byte, dir string, err error) {
	dir, err = filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, "", fmt.Errorf("config %s: %w", path, err)
	}
	f, err := pathcheck.OpenRegular(path)
	if err != nil {
		return nil, "", fmt.Errorf("config %s: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	text, err = io.ReadAll(io.LimitReader(f, maxText+4)) // 4: a byte order mark and one byte too many
	if err != nil {
		return nil, "", fmt.Errorf("config %s: %w", path, err)
	}
	return text, dir, nil
}

// Parse checks the text of a file called name. Relative paths in it are
// relative to dir. Its error is [Faults].
func Parse(name string, text []byte, dir string, opt Options) (*Config, error) {
	return parse(name, text, dir, opt, refusedCapabilities())
}

func parse(name string, text []byte, dir string, opt Options, unimplemented map[string]string) (*Config, error) {
	src := newSource(name, strings.TrimPrefix(string(text), string(bom)))
	values, root, fault := read(src)
	if fault != nil {
		return nil, Faults{*fault}
	}
	d := &decoder{src: src, dir: dir, opt: opt, unimplemented: unimplemented}
	c := &Config{File: name, Dir: dir, src: src, root: root}
	d.file(c, &table{location: location{node: root}, d: d, values: values})
	if len(d.faults) > 0 {
		return nil, d.result()
	}
	c.Warnings = d.warnings.sorted()
	return c, nil
}

// file reads the whole grammar. The order matters where one section is checked
// against another that was read before it.
func (d *decoder) file(c *Config, t *table) {
	d.schema(t)
	c.Swarm = d.swarm(t.table("swarm"))
	c.Models, d.known.models = d.models(t)
	c.Secrets, d.known.secrets = d.secrets(t)
	c.MCP = d.mcp(t)
	d.known.mcp = c.MCP
	c.Actions = d.actions(t)
	drafts := d.agents(t, c.Swarm)
	t.section("limits", c.Limits.Settings())
	var tenants []string
	c.Tenants, tenants = d.tenants(t)
	c.Auth = d.auth(t.table("auth"), c.Swarm.Name, tenants)
	c.Server = d.server(t.table("server"), knowsCallers(t.table("auth")))
	c.Peers = d.peers(t, c.Swarm.Name, c.Server)
	c.Store = d.store(t.table("store"))
	c.Telemetry = d.telemetry(t.table("telemetry"))
	c.Console = d.console(t, c.Server)
	c.Questions = d.questions(t.table("questions"))
	c.Gateways = d.gateways(t, c, tenants)
	c.Cluster = d.cluster(t, c)
	t.refuseUnknown()
	d.checkSwarm(c, t, drafts)
	d.checkExposure(t, c, drafts)
	d.checkPartners(t, c)
	d.checkSpeakers(t, c)
	for _, a := range drafts {
		c.Agents = append(c.Agents, a.Agent)
	}
	d.checkRoots(t, c)
	d.checkPrices(t, c)
}

func (d *decoder) schema(t *table) {
	const current = 1
	v, sp, ok := t.lookUp("schema")
	switch n, isInt := v.(int64); {
	case !ok:
		d.report(0, "schema", "schema is missing; add the line schema = 1")
	case !isInt:
		t.wrong(sp, "the number 1", v)
	case n != current:
		d.atValue(sp, fmt.Sprintf("schema %d is not known; this version of skep reads schema %d", n, current))
	}
}

// Agent returns the agent of that name.
func (c *Config) Agent(name string) (Agent, bool) {
	for _, a := range c.Agents {
		if a.Name == name {
			return a, true
		}
	}
	return Agent{}, false
}

// Fault makes a fault of the setting at a path of keys, for checks that only
// others can make, as of a module's digest. An absent setting is placed at the
// table it is missing from.
func (c *Config) Fault(message string, path ...string) Fault {
	f := Fault{File: c.File, Line: 1, Col: 1, Message: message}
	if c.src == nil {
		return f
	}
	at := location{node: c.root}
	for _, name := range path {
		at = at.child(name)
	}
	if at.absent {
		return c.src.fault(at.node.key, at.path, message)
	}
	return c.src.fault(at.node.value, at.path, message)
}
