package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// walk does with a page what its reader does: saves each file that is printed, where the
// paragraph before it says, and types each command, in the order of the page.
type walk struct {
	t *testing.T
	p *installed
	// dir is the reader's directory, where files are saved, as names of these.
	dir   string
	files []string
	// samples are the languages of blocks that a reader only looks at.
	samples []string
	// begun runs what a command starts that does not end, by the beginning of the command.
	begun map[string]func()
	// waits come before a command: the time that a person takes to type it.
	waits map[string]string
	// replace puts addresses of this machine in the place of the page's.
	replace []string

	host *hosttest.Host
	vars string
	// tried counts the commands.
	tried int
}

// newWalk returns a walk in an empty directory. The command skep serve starts a host there,
// in the place of the one before.
func newWalk(t *testing.T, files ...string) *walk {
	w := &walk{t: t, p: install(t), dir: t.TempDir(), files: files, waits: map[string]string{}}
	w.begun = map[string]func(){"skep serve": w.serve}
	return w
}

// fences are the blocks of a page, each with the paragraph before it.
var fences = regexp.MustCompile("(?s)(?:([^\n]*)\n\n)?```([a-z]*)\n(.*?)```\n")

// quoted are words in a paragraph that may name a file.
var quoted = regexp.MustCompile("`([^`]+)`")

// read walks through a page.
func (w *walk) read(page string) {
	w.t.Helper()
	all := fences.FindAllStringSubmatch(page, -1)
	if n := strings.Count(page, "\n```"); n == 0 || 2*len(all) != n {
		w.t.Fatalf("%d blocks were found, of %d fences", len(all), n)
	}
	for _, block := range all {
		if block[2] == "console" {
			for _, s := range consolesIn("```console\n" + block[3] + "```\n") {
				w.do(s)
			}
			continue
		}
		if !slices.Contains(w.samples, block[2]) {
			w.save(block[1], block[3])
		}
	}
}

// save adds a block to the file that the paragraph before it names first.
func (w *walk) save(paragraph, text string) {
	w.t.Helper()
	for _, m := range quoted.FindAllStringSubmatch(paragraph, -1) {
		if slices.Contains(w.files, m[1]) {
			f, err := os.OpenFile(filepath.Join(w.dir, m[1]), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				w.t.Fatal(err)
			}
			if _, err := f.WriteString(strings.NewReplacer(w.replace...).Replace(text)); err != nil {
				w.t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				w.t.Fatal(err)
			}
			return
		}
	}
	w.t.Fatalf("the page has no place for\n%s", text)
}

// do types a command and looks at what it prints.
func (w *walk) do(s shown) {
	w.t.Helper()
	w.tried++
	for beginning, start := range w.begun {
		if strings.HasPrefix(s.command, beginning) {
			start()
			return
		}
	}
	if strings.HasPrefix(s.command, "export ") {
		w.vars += s.command + "\n"
		return
	}
	for _, name := range []string{"curl", "node", "python3", "mosquitto_sub", "mosquitto_pub"} {
		if strings.HasPrefix(s.command, name+" ") {
			hosttest.SystemProgram(w.t, name)
		}
	}
	command := strings.NewReplacer(w.replace...).Replace(w.vars + w.waits[s.command] + "\n" + s.command)
	cmd := exec.CommandContext(w.t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = w.dir, append(w.p.env[:len(w.p.env):len(w.p.env)], "PATH="+filepath.Dir(w.p.path)+":"+os.Getenv("PATH"))
	if w.host != nil {
		cmd.Env = append(cmd.Env, "SKEP_URL="+w.host.URL())
	}
	if out, err := cmd.Output(); err != nil || !s.matches(string(out)) {
		w.t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
	}
}

// serve starts the host of the file as it is by now.
func (w *walk) serve() {
	w.t.Helper()
	if w.host != nil {
		if err := w.host.Stop(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.host = hosttest.Start(w.t, filepath.Join(w.dir, "swarm.toml"), filepath.Join(w.dir, ".skep"))
	w.host.StopAtEnd(w.t)
}
