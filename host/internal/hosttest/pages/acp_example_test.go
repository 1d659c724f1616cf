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
// for long. Those that send messages by hand are run twice, as readers do.
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
			if strings.Contains(block, "curl ") { // its messages have other ids when it is run again
				runBlock(t, dir, p.env, vars, commands)
			}
		})
		tried++
	}
	if tried != 10 {
		t.Errorf("%d blocks of commands", tried)
	}
	t.Cleanup(func() {
		for _, name := range []string{"agent/messages.go", "agent/parse.go", "agent/read.go", "agent/write.go", "rust/src/messages.rs"} {
			file := filepath.Join("examples", "acp", name)
			if hosttest.ReadText(t, filepath.Join(dir, file)) != hosttest.ReadText(t, filepath.Join("../../../..", file)) {
				t.Errorf("%s is not what the compiler writes: run the command of the page", file)
			}
		}
	})
}

// languages are the programs that a block of commands may need.
var languages = regexp.MustCompile(`\b(cargo|python3|curl|javac|java|tsc|node|scalac|scala) `)

// runBlock runs commands one after the other where the programs are that they need.
func runBlock(t *testing.T, dir string, env []string, vars string, commands []shown) {
	t.Helper()
	path := filepath.Dir(os.Getenv("CARGO")) + ":" + os.Getenv("PATH") + ":" + filepath.Join(guests.Root(), "host/internal/gateway/acp/gen/testdata/typescript/node_modules/.bin")
	for _, s := range commands {
		for _, m := range languages.FindAllStringSubmatch(s.command, -1) {
			hasProgram(t, m[1], path)
			if m[1] == "cargo" {
				hasRustTarget(t, path)
			}
		}
	}
	for _, s := range commands {
		if skipped.MatchString(s.command) {
			continue
		}
		if m := another.FindStringSubmatch(s.command); m != nil {
			if m[1] != "examples/acp/swarm.toml" { // that host serves already
				vars += "SKEP_URL=http://" + serveFor(t, filepath.Join(dir, m[1])) + "\n"
			}
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", vars+preceding[s.command]+"\n"+s.command)
		var stderr bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(env[:len(env):len(env)], append(rustEnv(), "PATH="+path)...), &stderr
		if out, err := cmd.Output(); err != nil || !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%s%v, want\n%s", s.command, out, &stderr, err, s.output)
		}
	}
}

// rustEnv has cargo find its compiler, which may not be installed for the test's HOME.
func rustEnv() (env []string) {
	for name, otherwise := range map[string]string{"RUSTC": "", "CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup"} {
		value := os.Getenv(name)
		if home, err := os.UserHomeDir(); value == "" && otherwise != "" && err == nil {
			value = filepath.Join(home, otherwise)
		}
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
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

// hasRustTarget looks for Rust's standard library for modules, which cargo does not bring.
func hasRustTarget(t *testing.T, path string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `ls "$("${RUSTC:-rustc}" --print target-libdir --target wasm32-unknown-unknown)"/libstd-*.rlib`)
	cmd.Env = append(os.Environ(), "PATH="+path)
	switch err := cmd.Run(); {
	case err == nil:
	case guests.ToolchainsRequired():
		t.Fatalf("Rust's library for wasm32-unknown-unknown is not here, and all tools are required: %v", err)
	default:
		t.Skip("Rust's library for wasm32-unknown-unknown is not here")
	}
}
