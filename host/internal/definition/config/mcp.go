package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skep/host/internal/spelling"
	"skep/host/internal/turn/mcp/toolpin"
)

// MCP is one [mcp.NAME] table: a server whose tools may be actions.
type MCP struct {
	Name         string
	Command      []string // the program's path on disk, and its arguments; or none
	Env          []EnvVar // what the program gets besides what every program needs
	Trusted      bool     // the command may run, as the operator's own
	URL          string   // of a server that is reached; or empty
	AuthToken    Secret
	AllowPrivate bool          // url may lead to private addresses, and be http
	Timeout      time.Duration // of the opening of a session
	Idle         time.Duration // after which a session ends that nobody uses
	MaxResult    Size          // of one answer
	Pins         string        // path of the file with the tools that were approved
	Tools        []toolpin.Tool
	InUse        []string // the tools that actions of the file name
	Pos          Pos
}

// EnvVar is a variable of a program's environment.
type EnvVar struct {
	Name  string
	Value Secret
	// Hidden is set where the file does not show the value.
	Hidden bool
}

// MCPServers reads the [mcp] tables, and nothing else, from the file at path: its
// actions may name tools that are to be pinned yet. Its errors are as
// [Load] has them.
func MCPServers(path string, opt Options) ([]MCP, error) {
	d, file, err := open(path, opt)
	if err != nil {
		return nil, err
	}
	d.lenient = true
	servers := d.mcp(file)
	if len(d.faults) > 0 {
		return nil, d.result()
	}
	return servers, nil
}

func (m *MCP) Settings() []Setting {
	return []Setting{
		readElsewhere(&m.Command, "command", "list of strings", "The program, by its path or in PATH, and its arguments.").by(Fixed),
		readElsewhere(&m.Env, "env", "table", "Variables of the program besides what every program needs.").by(Fixed),
		boolean(&m.Trusted, "trusted", false, "The command may run, as your own programs do.").by(Grant),
		readElsewhere(&m.URL, "url", "URL", "The server, where it is reached and not started.").by(Fixed),
		secretText(&m.AuthToken, "auth_token", "What is shown to the server at `url`."),
		boolean(&m.AllowPrivate, "allow_private", false, "`url` may lead to a private address, and be http.").by(Grant),
		span(&m.Timeout, "timeout", 30*time.Second, 100*time.Millisecond, 10*time.Minute, "The opening of a session."),
		span(&m.Idle, "idle", 5*time.Minute, time.Second, day, "Time without a call after which a session ends."),
		size(&m.MaxResult, "max_result", MiB, KiB, 8*MiB, "One answer."),
		field(&m.Pins, "pins", "path", func(t *table, key string) string { return cmp.Or(t.fileName(key), m.Pins) }, "The file with the tools that were approved.").withDefaultText("NAME.mcp.json"),
	}
}

func (d *decoder) mcp(t *table) (out []MCP) {
	names, subs := t.named("mcp")
	for i, sub := range subs {
		d.checkLocal(sub.location, names[i], "an MCP server")
		out = append(out, d.mcpServer(names[i], sub, toolsInUse(t, names[i])))
	}
	return out
}

// toolsInUse are the tools of a server that the file's actions name, in order.
func toolsInUse(t *table, server string) (names []string) {
	actions, _ := t.values["actions"].(map[string]any)
	for _, action := range actions {
		a, _ := action.(map[string]any)
		source, _ := a["source"].(string)
		name, ok := strings.CutPrefix(source, string(SourceMCP)+":"+server+"/")
		if ok && toolpin.IsName(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (d *decoder) mcpServer(name string, t *table, used []string) MCP {
	m := MCP{Name: name, Pins: d.path(name + ".mcp.json"), Pos: d.pos(t.location)}
	t.read(m.Settings())
	if t.url("url") != "" {
		m.URL = t.text("url", "") // a slash at its end counts
	}
	m.InUse = used
	m.Command, m.Env = d.command(t), d.environment(t)
	d.oneWay(t, m)
	m.Tools = d.pins(t, m, used)
	t.refuseUnknown()
	return m
}

// oneWay holds that a server is started or reached, and that what is set belongs to
// that.
func (d *decoder) oneWay(t *table, m MCP) {
	runs, reached := t.has("command"), t.has("url")
	switch {
	case runs && reached:
		d.atKey(t.child("url"), fmt.Sprintf("%s.command and %s.url exclude each other", t.path, t.path))
		return
	case !runs && !reached:
		t.missing("command", `, and so is url; one of them says where the server is, as in command = ["./notes-server"]`)
		return
	case runs && !m.Trusted:
		d.atKey(t.child("command"), fmt.Sprintf("%s.command runs outside the sandbox, as your own programs do, and needs trusted = true", t.path))
	}
	others := map[bool][]string{true: {"auth_token", "allow_private"}, false: {"trusted", "env"}}[runs]
	for _, key := range others {
		if t.has(key) {
			d.atKey(t.child(key), fmt.Sprintf("%s.%s is for a server with %s", t.path, key, map[bool]string{true: "url", false: "command"}[runs]))
		}
	}
	if u, err := url.Parse(m.URL); err == nil && u.Scheme == "http" && !m.AllowPrivate {
		d.atValue(t.child("url"), fmt.Sprintf("%s.url: over http anybody on the way could read and change what is sent; use https, or set allow_private = true for this machine or a network of your own", t.path))
	}
}

// command reads a command line and finds its program: beside the file where the
// word is a path, else in the directories of PATH.
func (d *decoder) command(t *table) []string {
	items, sp, ok := t.lookUp("command")
	if !ok {
		return nil
	}
	list, isArray := items.([]any)
	if !isArray || len(list) == 0 {
		t.wrong(sp, `an array of strings, as in ["./notes-server", "--stdio"]`, items)
		return nil
	}
	var words []string
	for i, item := range list {
		word, isText := item.(string)
		if !isText || strings.ContainsRune(word, 0) {
			t.wrong(sp.elem(i), "a string", item)
			return nil
		}
		if strings.HasPrefix(word, envPrefix) || strings.HasPrefix(word, filePrefix) {
			d.atValue(sp.elem(i), "a command line is no place for env:: and file::, because everybody on the machine can read it; use env")
			return nil
		}
		words = append(words, word)
	}
	path, err := d.program(words[0])
	if err != nil {
		d.atValue(sp.elem(0), fmt.Sprintf("the program %q %v", words[0], err))
		return nil
	}
	words[0] = path
	return words
}

// program finds a program by its name.
func (d *decoder) program(name string) (string, error) {
	if strings.Contains(name, "/") {
		path := d.path(name)
		return path, isProgram(path)
	}
	var list string
	if d.opt.Env != nil {
		list, _ = d.opt.Env("PATH")
	}
	for _, dir := range filepath.SplitList(list) {
		if path := filepath.Join(dir, name); name != "" && filepath.IsAbs(dir) && isProgram(path) == nil {
			return path, nil
		}
	}
	return "", errors.New("is not in PATH; write a path with a slash for one beside the file")
}

func isProgram(path string) error {
	if err := isFile(path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
		return errors.New("is not executable")
	}
	return nil
}

// environment reads variables.
func (d *decoder) environment(t *table) (out []EnvVar) {
	env := t.table("env")
	for _, name := range env.names() {
		v, ok := env.value(name)
		switch {
		case !ok:
		case !envName.MatchString(name):
			d.atKey(v.location, fmt.Sprintf("%q is not the name of an environment variable", name))
		case strings.ContainsRune(v.text, 0):
			d.atValue(v.location, v.path+" must not hold a null character")
		default:
			out = append(out, EnvVar{name, Secret(v.text), v.ref})
		}
	}
	env.refuseUnknown()
	return out
}

// pins reads the tools that were approved. No file has none. Of one that is at fault
// the tools in use are to be approved again, and no others.
func (d *decoder) pins(t *table, m MCP, used []string) []toolpin.Tool {
	fault := func(err error) []toolpin.Tool {
		if !d.lenient {
			again := d.mcpCommand("pin", m.Name, cmp.Or(strings.Join(used, " "), "TOOL"))
			d.atKey(t.child("pins"), fmt.Sprintf("the file %q %v; write it anew with %s", m.Pins, err, again))
		}
		if d.unpinned == nil {
			d.unpinned = map[string]bool{}
		}
		d.unpinned[m.Name] = true
		return nil
	}
	f, err := os.Open(m.Pins)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !t.has("pins"), errors.Is(err, fs.ErrNotExist) && d.lenient:
		return nil
	case err != nil:
		return fault(fmt.Errorf("cannot be read: %w", reason(err)))
	}
	defer func() { _ = f.Close() }()
	if err := isFile(m.Pins); err != nil {
		return fault(err)
	}
	text, err := io.ReadAll(io.LimitReader(f, toolpin.MaxFile+1))
	if err != nil {
		return fault(fmt.Errorf("cannot be read: %w", reason(err)))
	}
	tools, err := toolpin.Decode(m.Name, text)
	if err != nil {
		return fault(err)
	}
	return tools
}

// mcpCommand writes a command of skep mcp that finds this file.
func (d *decoder) mcpCommand(words ...string) string {
	if d.src.name != "swarm.toml" {
		words = append(words, "-c", d.src.name)
	}
	return "`skep mcp " + strings.Join(words, " ") + "`"
}

// tool reports whether a tool of an MCP server does an action.
func (d *decoder) tool(t *table) bool {
	v, _, _ := t.lookUp("source")
	text, _ := v.(string)
	return strings.HasPrefix(text, string(SourceMCP)+":")
}

// toolAction reads what an action has that a tool does. What its callers are shown is
// what was pinned.
func (d *decoder) toolAction(a *Action, t *table, servers []MCP) {
	a.Limits = AgentLimits{}
	for _, key := range []string{"trusted", "params", "actions", "limits"} {
		if t.has(key) {
			d.atKey(t.child(key), fmt.Sprintf("%s.%s is for actions with a module; an MCP server does this one", t.path, key))
		}
	}
	if a.Allow.any() || a.Allow.HTTPPrivate {
		d.atKey(t.child("allow"), fmt.Sprintf("%s.allow has retry_in_doubt alone for an action that an MCP server does", t.path))
	}
	if d.remote != nil {
		a.Source = d.remoteSource(t, a.SHA256)
		if d.remote.literal {
			a.Source = Source{Kind: SourceMCP, Ref: strings.TrimPrefix(t.text("source", ""), string(SourceMCP)+":")}
		}
		return
	}
	if t.has("sha256") {
		d.atKey(t.child("sha256"), fmt.Sprintf("%s.sha256 is not needed: the tool is pinned in the file of its server", t.path))
	}
	v, ok := t.value("source")
	if !ok {
		return
	}
	a.Source = Source{Kind: SourceMCP, Ref: strings.TrimPrefix(v.text, string(SourceMCP)+":")}
	if tool, ok := d.pinned(v, a.Source.Ref, servers); ok {
		a.pin(tool, t)
	}
}

// pinned finds the tool that a source names.
func (d *decoder) pinned(v value, ref string, servers []MCP) (toolpin.Tool, bool) {
	server, name, _ := strings.Cut(ref, "/")
	if name == "" || server == "" {
		d.atValue(v.location, fmt.Sprintf(`%s must name a tool of an MCP server, as in "mcp:SERVER/TOOL", which %s does not`, v.path, v.shown))
		return toolpin.Tool{}, false
	}
	var names []string
	for _, m := range servers {
		names = append(names, m.Name)
		if m.Name != server {
			continue
		}
		tool, ok := toolpin.Find(m.Tools, name)
		if ok || d.unpinned[server] {
			return tool, ok
		}
		var pinned []string
		for _, t := range m.Tools {
			pinned = append(pinned, t.Name)
		}
		f := d.atValue(v.location, fmt.Sprintf("the tool %q of [mcp.%s] is not pinned; look at it with %s and approve it with %s", name, server, d.mcpCommand("tools", server), d.mcpCommand("pin", server, name)))
		if near := spelling.Nearest(name, pinned); near != "" {
			f.suggest(v.suggest(string(SourceMCP) + ":" + server + "/" + near))
		}
		return toolpin.Tool{}, false
	}
	f := d.atValue(v.location, fmt.Sprintf(`%s names the MCP server %q, and there is no [mcp.%s]; a source is "mcp:SERVER/TOOL"`, v.path, server, server))
	if near := spelling.Nearest(server, names); near != "" {
		f.suggest(v.suggest(string(SourceMCP) + ":" + near + "/" + name))
	}
	return toolpin.Tool{}, false
}

// pin gives an action what was pinned of its tool, where the file says nothing else.
func (a *Action) pin(tool toolpin.Tool, t *table) {
	a.SHA256 = tool.SHA256
	if a.Description == "" {
		a.Description = tool.Description
	}
	if !t.has("parameters") {
		a.Parameters = tool.InputSchema
	}
	if !t.table("allow").has("retry_in_doubt") {
		a.Allow.RetryInDoubt, a.RepeatableByID = tool.Repeatable(), true
	}
}
