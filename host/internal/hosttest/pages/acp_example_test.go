package pages_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// TestACPExample: the commands of the example for ACP print what its page
// says: programs with generated codecs talk to an agent with such, whose files are what the
// compiler writes today. Each block of commands runs beside the others, as Scala compiles
// for long.
func TestACPExample(t *testing.T) {
	t.Parallel()
	const example = "../../../../examples/acp"
	page, p := hosttest.ReadText(t, example+"/README.md"), install(t)
	dir := checkout(t, p, example)
	if err := os.CopyFS(filepath.Join(dir, "spec/gateways/acp"), os.DirFS("../../../../spec/gateways/acp")); err != nil {
		t.Fatal(err)
	}
	url, vars, tried := serveFor(t, filepath.Join(dir, "examples/acp/swarm.toml")), "", 0
	for i, block := range strings.Split(page, "```console\n")[1:] {
		commands := consolesIn("```console\n" + block)
		if strings.HasPrefix(commands[0].command, ": ") {
			vars = "SKEP_URL=http://" + url + "\n" + commands[0].command + "\n"
			continue
		}
		vars := vars
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			runBlock(t, dir, p.env, vars, commands)
		})
		tried++
	}
	if tried != 9 {
		t.Errorf("%d blocks of commands", tried)
	}
	t.Cleanup(func() {
		for _, name := range []string{"messages.go", "parse.go", "read.go", "write.go"} {
			file := filepath.Join("examples", "acp", "agent", name)
			if hosttest.ReadText(t, filepath.Join(dir, file)) != hosttest.ReadText(t, filepath.Join("../../../..", file)) {
				t.Errorf("%s is not what the compiler writes: run the command of the page", file)
			}
		}
	})
}

// languages are the programs that a block of commands may need.
var languages = regexp.MustCompile(`\b(python3|curl|javac|java|tsc|node|scalac|scala) `)

// runBlock runs commands one after the other where the programs are that they need.
func runBlock(t *testing.T, dir string, env []string, vars string, commands []shown) {
	t.Helper()
	path := os.Getenv("PATH") + ":" + filepath.Join(guests.Root(), "host/internal/gateway/acp/gen/testdata/typescript/node_modules/.bin")
	for _, s := range commands {
		for _, m := range languages.FindAllStringSubmatch(s.command, -1) {
			hasProgram(t, m[1], path)
		}
	}
	for _, s := range commands {
		if another.MatchString(s.command) {
			continue // the host serves already
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", vars+preceding[s.command]+"\n"+s.command)
		var stderr bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(env[:len(env):len(env)], "PATH="+path), &stderr
		if out, err := cmd.Output(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%s%v, want\n%s", s.command, out, &stderr, err, s.output)
		}
	}
}

// hasProgram skips a test without a program, or fails it where all are required.
func hasProgram(t *testing.T, name, path string) {
	t.Helper()
	for _, dir := range filepath.SplitList(path) {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return
		}
	}
	if guests.ToolchainsRequired() {
		t.Fatalf("%s is not here, and all tools are required", name)
	}
	t.Skipf("%s is not here", name)
}
