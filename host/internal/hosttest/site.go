package hosttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
)

// Site is a host on a file that can be changed.
type Site struct {
	*Host
	t         *testing.T
	Dir, Data string
	// options change the host's options at each start.
	options []func(*host.Options)
}

// NewSite starts a host of a file, with changes of its options at each start. The end
// of the test stops it.
func NewSite(t *testing.T, file string, options ...func(*host.Options)) *Site {
	t.Helper()
	s := EmptySite(t)
	s.options = options
	s.Write(file)
	s.Start()
	return s
}

// EmptySite returns a site without a file and without a host. Its directory has the
// module script.wasm.
func EmptySite(t *testing.T) *Site {
	t.Helper()
	s := &Site{t: t, Dir: t.TempDir(), Data: t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.Dir, "script.wasm"), guests.Bytes(t, "plugins/script"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Write replaces the file.
func (s *Site) Write(file string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, "swarm.toml"), []byte(file), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Load reads the file. Its environment has the variable SKEP_TEST_KEY.
func (s *Site) Load() (*config.Config, error) {
	return config.Load(filepath.Join(s.Dir, "swarm.toml"), config.Options{
		BundleDir: Bundles(),
		Env:       func(name string) (string, bool) { return "a secret", name == "SKEP_TEST_KEY" },
	})
}

// Start starts a host of the file.
func (s *Site) Start() {
	s.t.Helper()
	cfg, err := s.Load()
	if err != nil {
		s.t.Fatal(err)
	}
	opt := host.Options{Config: cfg, DataDir: s.Data, Reread: s.Load}
	for _, change := range s.options {
		change(&opt)
	}
	s.Host = Run(s.t, opt)
	s.t.Cleanup(func() { _ = s.Stop() })
}

// StartWith is [Site.Start] with changes of the host's options at this and each further start.
func (s *Site) StartWith(options ...func(*host.Options)) {
	s.t.Helper()
	s.options = options
	s.Start()
}

// Restart stops the host and starts it again on its data.
func (s *Site) Restart() {
	s.t.Helper()
	if err := s.Stop(); err != nil {
		s.t.Fatal("stop:", err)
	}
	s.Start()
}

// As returns a client with a given key.
func (s *Site) As(key string) *client.Client {
	s.Key = key
	return s.Client(s.t)
}

// Audited returns the lines of the audit log with a text.
func (s *Site) Audited(word string) (lines []string) {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.Data, "audit.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, word) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Do runs calls as a principal and returns their answers, separated by " | ".
func (s *Site) Do(key, task string, steps ...Step) string {
	s.t.Helper()
	var places []string
	for i := range steps {
		places = append(places, fmt.Sprintf("{{%d}}", i))
	}
	body := strings.ReplaceAll(Script(append(steps, Step{"task_complete", Args{"finish_message": strings.Join(places, " | ")}})...), `{\u007b`, "{{")
	got, err := s.As(key).PostMessage(s.t.Context(), client.Post{Task: task, Body: body})
	if err != nil {
		s.t.Fatal(err)
	}
	return got.Body
}
