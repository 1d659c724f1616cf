package pages_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

var (
	another = regexp.MustCompile(`^bin/skep serve -c (\S+)(?: +#.*)?$`)
	// skipped are commands that have been run already, or that another test tries.
	skipped = regexp.MustCompile(`^(make|clang) `)
	// rootLine names a directory that a file expects beside it.
	rootLine = regexp.MustCompile(`(?m)^root = "(.*)"$`)
)

// preceding is what comes before a command: what a page says in words, or the time that
// a person takes to type it.
var preceding = map[string]string{
	"bin/skep send -c examples/reminder/swarm.toml list": `for n in $(seq 200); do bin/skep send -c examples/reminder/swarm.toml list 2>&1 | grep -q '^Pending' && break; sleep 0.05; done`,

	"SKEP_TOKEN=a-key-to-try-on-this-machine bin/skep task show -c examples/acp/swarm.toml $(cat bin/acp-task) | grep ^answer": `for n in $(seq 600); do SKEP_TOKEN=a-key-to-try-on-this-machine bin/skep task show $(cat bin/acp-task) 2>&1 | grep -q ^answer && break; sleep 0.05; done`,

	"SKEP_TOKEN=a-key-of-the-admin-on-this-machine bin/skep questions -c examples/acp/swarm.toml": `for n in $(seq 600); do SKEP_TOKEN=a-key-of-the-admin-on-this-machine bin/skep questions -o json | grep -q call_id && break; sleep 0.05; done`,

	"PYTHONPATH=bin/acp python3 examples/acp/python/customer.py screws 8": `for p in acp:spec/gateways/acp/acp-1.0.acp order:examples/acp/order.acp; do bin/skep acp compile ${p#*:} --lang python -o bin/acp/${p%%:*} >/dev/null || exit 1; done`,

	"go test ./agent": `sed -i 's|^source = .*|source = "file:agent.wasm"|' swarm.toml`,
}

// TestExamplePages follows the page of every example, in what looks like a checkout
// that was built: each command goes, and prints what the page says.
func TestExamplePages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../../../examples/*/README.md")
	if err != nil || len(pages) < 2 {
		t.Fatalf("pages: %q, %v", pages, err)
	}
	p := install(t)
	for _, page := range pages {
		dir := filepath.Dir(page)
		if name := filepath.Base(dir); name == "acp" || name == "uamp" || name == "everywhere" {
			continue // TestACPExample, TestUAMPExample and TestEverywhereExample run their commands
		}
		t.Run(filepath.Base(dir), func(t *testing.T) { t.Parallel(); followPage(t, p, dir, consolesIn(hosttest.ReadText(t, page))) })
	}
}

// TestExamplesAreBuilt: the page of an example has the command that builds what its files
// name in bin/examples.
func TestExamplesAreBuilt(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../examples/*/swarm.toml")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, file := range files {
		if strings.Contains(hosttest.ReadText(t, file), "bin/examples/") {
			tried++
			if page := filepath.Join(filepath.Dir(file), "README.md"); !strings.Contains(hosttest.ReadText(t, page), "$ make examples\n") {
				t.Errorf("%s has no make examples", page)
			}
		}
	}
	if tried < 6 {
		t.Errorf("%d examples were tried", tried)
	}
}

// followPage runs the commands of a page in one shell. A host that the page starts
// runs in this process, and the commands find it by a variable.
func followPage(t *testing.T, p *installed, example string, all []shown) {
	t.Helper()
	dir := checkout(t, p, example)
	_, model := provider(t, researchReplies(t, "Because of live models."))
	env := append(append(goEnv(t), p.env...), model[1:]...) // a page sets its key itself
	script, tried := "", all[:0:0]
	for _, s := range tryable(t, dir, all) {
		if m := another.FindStringSubmatch(s.command); m != nil {
			env = append(env, "SKEP_URL=http://"+serveFor(t, filepath.Join(dir, m[1])))
			continue
		}
		script += fmt.Sprintf("%s\n%s\n"+`printf '\001%%d' $?; printf '\001' >&2`+"\n", preceding[s.command], s.command)
		tried = append(tried, s)
	}
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err, stderr.String())
	}
	out, told := strings.Split("0"+stdout.String(), "\x01"), strings.Split(stderr.String(), "\x01")
	for i, s := range tried {
		printed, code := out[i][1:], out[i+1][:1]
		if (code != "0" || s.output != "" && !s.matches(printed)) && (s.output == "" || !s.matches(told[i])) {
			t.Errorf("$ %s\n%s%s(%s) want\n%s", s.command, printed, told[i], code, s.output)
		}
	}
}

// tryable leaves out what is done already, and what this machine has not got.
func tryable(t *testing.T, dir string, all []shown) (some []shown) {
	_, missing := os.Stat(filepath.Join(dir, "bin", "python", "clerk")) // `make python` needs a network
	for _, s := range all {
		switch {
		case skipped.MatchString(s.command):
		case strings.Contains(s.command, "/python/") && missing != nil:
			t.Log("not tried, as `make python` has not been run: ", s.command)
		default:
			some = append(some, s)
		}
	}
	return some
}

// serveFor starts the host of a file, and returns its address.
func serveFor(t *testing.T, file string) string {
	t.Helper()
	r := hosttest.Start(t, file, filepath.Join(filepath.Dir(file), ".skep"))
	r.StopAtEnd(t)
	return r.Addr()
}

// checkout looks as the root of a checkout that was built, with one example in it.
func checkout(t *testing.T, p *installed, example string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	to := filepath.Join(dir, "examples", filepath.Base(example))
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".skep", "*/.skep"} { // of a person who has tried the example
		data, err := filepath.Glob(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range data {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	for from, to := range map[string]string{
		p.path: "bin/skep", filepath.Join(guests.Root(), "bin", "plugins"): "bin/plugins",
		filepath.Join(guests.Root(), "bin", "examples"): "bin/examples", filepath.Join(guests.Root(), "bin", "python"): "bin/python",
		filepath.Join(guests.Root(), "sdk"): "sdk",
	} {
		if err := os.Symlink(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// goEnv lets commands of Go use what was compiled already, and download nothing.
func goEnv(t *testing.T) []string {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"GOCACHE=" + strings.TrimSpace(string(cache)), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local"}
}

// TestWholeFiles: each swarm.toml that a page prints whole has no faults.
func TestWholeFiles(t *testing.T) {
	t.Parallel()
	guests.Bytes(t, "plugins/script")
	tried := 0
	for _, pattern := range []string{"../../../../README.md", "../../../../host/docs/*.md", "../../../../plugins/*/README.md", "../../../../examples/*/README.md", "../../../../sdk/*/README.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			for _, block := range strings.Split(hosttest.ReadText(t, page), "```toml\n")[1:] {
				text, _, _ := strings.Cut(block, "```")
				if strings.HasPrefix(text, "schema = 1\n") {
					tried++
					checkWhole(t, page, text)
				}
			}
		}
	}
	if tried < 5 {
		t.Errorf("%d files were tried", tried)
	}
}

// checkWhole reads a file with every variable set that it may name, and the directories
// there that it expects beside it.
func checkWhole(t *testing.T, page, text string) {
	t.Helper()
	dir := t.TempDir()
	for _, m := range rootLine.FindAllStringSubmatch(text, -1) {
		if err := os.MkdirAll(filepath.Join(dir, m[1]), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) {
		if strings.HasSuffix(name, "_URL") {
			return "https://api.example.com/v1", true
		}
		return "0123456789abcdef-" + name, true
	}
	opt := config.Options{Env: env, BundleDir: hosttest.Bundles()}
	if _, err := config.Parse("swarm.toml", []byte(text), dir, opt); err != nil {
		t.Errorf("%s:\n%v", page, err)
	}
}
