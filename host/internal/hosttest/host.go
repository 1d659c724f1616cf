package hosttest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/turn/process"
)

// Host is a host in this process.
type Host struct {
	*host.Host
	// Config is its configuration, Data its data directory.
	Config *config.Config
	Data   string
	// Key is what Client shows: by default the operator's, if the file has no keys.
	Key string
	// Stop ends the host and returns what Run has returned.
	Stop func() error
}

// Start starts a host of a file. The test stops it.
func Start(t *testing.T, file, data string) *Host {
	t.Helper()
	guests.Bytes(t, "plugins/script") // builds all guests if it must
	cfg, err := config.Load(file, config.Options{BundleDir: Bundles()})
	if err != nil {
		t.Fatal(err)
	}
	return Run(t, host.Options{Config: cfg, DataDir: data})
}

// Bundles is the directory of the bundled modules.
func Bundles() string { return filepath.Join(guests.Root(), "bin", "plugins") }

// Run starts a host on loopback. The test stops it.
func Run(t *testing.T, opt host.Options) *Host {
	t.Helper()
	opt.CacheDir, opt.Listen, opt.AdminListen = guests.CacheDir(t), "127.0.0.1:0", "127.0.0.1:0"
	opt.Subprocess = []string{"/proc/self/exe", process.Command}
	keepOnServer(t, &opt)
	ctx, cancel := context.WithCancel(context.Background())
	h, err := host.New(ctx, opt)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	r := &Host{Host: h, Config: opt.Config, Data: opt.DataDir}
	r.Stop = sync.OnceValue(func() error { cancel(); return <-done })
	if path := h.OperatorKeyPath(); path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r.Key = strings.TrimSpace(string(raw))
	}
	return r
}

// keepOnServer moves the store of a host to a server, if that is asked for.
func keepOnServer(t *testing.T, opt *host.Options) {
	t.Helper()
	if !OnServer() {
		return
	}
	if opt.DataDir == "" {
		opt.DataDir = filepath.Join(opt.Config.Dir, ".skep")
	}
	data := opt.DataDir
	opt.Config.Store = StoreOf(t, data, opt.Config.Store)
	reread := opt.Reread
	if reread == nil {
		return
	}
	opt.Reread = func() (*config.Config, error) {
		cfg, err := reread()
		if err == nil {
			cfg.Store = StoreOf(t, data, cfg.Store)
		}
		return cfg, err
	}
}

// StopAtEnd stops the host when the test ends, if it runs by then.
func (r *Host) StopAtEnd(t *testing.T) {
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error("stop:", err)
		}
	})
}

// StartText starts a host of a file with these variables in its environment, and
// returns its log. Beside the file lie the module script.wasm and the secret site.key.
// The end of the test stops the host.
func StartText(t *testing.T, text string, variables map[string]string, change ...func(*host.Options)) (*Host, *LogBuffer) {
	t.Helper()
	dir, log := t.TempDir(), &LogBuffer{}
	for name, content := range map[string][]byte{
		"swarm.toml": []byte(text), "script.wasm": guests.Bytes(t, "plugins/script"), "site.key": []byte(SiteKey + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) { value, ok := variables[name]; return value, ok }
	cfg, err := config.Load(filepath.Join(dir, "swarm.toml"), config.Options{Env: env, BundleDir: Bundles()})
	if err != nil {
		t.Fatal(err)
	}
	opt := host.Options{Config: cfg, DataDir: t.TempDir(), Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, c := range change {
		c(&opt)
	}
	r := Run(t, opt)
	r.StopAtEnd(t)
	return r, log
}

// Client returns a client with the host's key.
func (r *Host) Client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: "http://" + r.Addr(), Token: r.Key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Answer posts a script and returns the answer.
func (r *Host) Answer(t *testing.T, task string, calls ...Step) client.Answer {
	t.Helper()
	body, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.Client(t).PostMessage(t.Context(), client.Post{Task: task, Subject: "s", Body: string(body)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Call makes a request with a key and returns the status and the answer.
// A post that prefers "respond-async" does not wait for its answer.
func (r *Host) Call(t *testing.T, key, method, path, body string, prefer ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header["Prefer"] = prefer
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp.StatusCode, string(text)
}

// Metrics returns the page of the host's metrics.
func (r *Host) Metrics(t *testing.T) string {
	t.Helper()
	rsp, text := Fetch(t, http.DefaultClient, "http://"+r.AdminAddr()+"/metrics")
	if rsp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", rsp.Status, text)
	}
	return text
}
