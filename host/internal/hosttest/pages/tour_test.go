package pages_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// shown is a command of a page, and what it prints according to the page; … stands
// for anything.
type shown struct{ command, output string }

// consoleOf returns the commands of a section of a page.
func consoleOf(t *testing.T, file, section string) (all []shown) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %q", file, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return consolesIn(rest)
}

// consolesIn returns the commands of a part of a page.
func consolesIn(part string) (all []shown) {
	inside := false
	for line := range strings.Lines(part) {
		command, is := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console\n"
		case inside && is:
			all = append(all, shown{command: strings.TrimSpace(command)})
		case inside:
			all[len(all)-1].output += line
		}
	}
	return all
}

// matches reports whether an output is what the page says.
func (s shown) matches(output string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(s.output)), "…", `[\s\S]*`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(strings.TrimSpace(strings.ReplaceAll(output, "\r\n", "\n")))
}

// tour follows a page in a directory that has the swarms of the repository.
type tour struct {
	t    *testing.T
	dir  string
	host *hosttest.Host
	// vars are the variables set so far.
	vars string
}

var (
	serves = regexp.MustCompile(`^bin/skep serve(?: -c (\S+))?$`)
	sets   = regexp.MustCompile(`^[A-Z]+=`)
)

func (r *tour) do(s shown) {
	r.t.Helper()
	if m := serves.FindStringSubmatch(s.command); m != nil {
		r.serve(m[1])
		return
	}
	if s.command == "make build" {
		return
	}
	command := strings.ReplaceAll(s.command, "http://127.0.0.1:8000", "http://"+r.host.Addr())
	if sets.MatchString(command) {
		r.vars += command + "\n"
		return
	}
	cmd := exec.CommandContext(r.t.Context(), "sh", "-c", r.vars+command)
	cmd.Dir, cmd.Env = r.dir, []string{"PATH=" + os.Getenv("PATH")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || s.output == "" || !s.matches(string(out)) {
		r.t.Errorf("$ %s\n%s%s\n%v, want\n%s", s.command, out, &stderr, err, s.output)
	}
}

// serve starts a host in the place of the one before, at its address.
func (r *tour) serve(file string) {
	r.t.Helper()
	if file == "" {
		file = "swarm.toml"
	}
	r.stop()
	text, err := os.ReadFile(filepath.Join(guests.Root(), file))
	if err != nil {
		r.t.Fatal(err)
	}
	path := filepath.Join(r.dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.host = hosttest.Start(r.t, path, filepath.Join(filepath.Dir(path), ".skep"))
	r.vars = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).ReplaceAllString(r.vars, "http://"+r.host.Addr())
}

func (r *tour) stop() {
	if r.host == nil {
		return
	}
	if err := r.host.Stop(); err != nil {
		r.t.Error("stop:", err)
	}
	r.host = nil
}

// TestCurlTour: the README's tour with curl alone goes as the page says.
func TestCurlTour(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		if guests.ToolchainsRequired() {
			t.Fatal("curl is not here, and all tools are required: ", err)
		}
		t.Skip("curl is not here, so the README's tour is not tried: ", err)
	}
	r := &tour{t: t, dir: t.TempDir()}
	defer r.stop()
	all := consoleOf(t, "../../../../README.md", "Five minutes with curl alone")
	if len(all) < 10 || !serves.MatchString(all[1].command) {
		t.Fatalf("the tour has %d commands, or does not begin with serve", len(all))
	}
	for _, s := range all {
		r.do(s)
	}
}

// TestTourNotices: an output that differs from the page is found.
func TestTourNotices(t *testing.T) {
	s := shown{output: "{\"a\":1,…}\n…\nlast: x.y\n"}
	for output, want := range map[string]bool{
		"{\"a\":1,\"b\":2}\r\nmore\r\nlast: x.y\r\n": true, "{\"a\":2}\nmore\nlast: x.y": false,
		"{\"a\":1,}\nmore\nlast: xzy": false, "before {\"a\":1,}\nlast: x.y": false, "": false,
	} {
		if s.matches(output) != want {
			t.Errorf("%q matches: %v, want %v", output, !want, want)
		}
	}
}
