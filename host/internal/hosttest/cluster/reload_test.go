package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// swarmWith is the swarm with a further agent of a module.
func swarmWith(agent, source string) string {
	return strings.Replace(hosttest.ScriptSwarm, "[[auth.keys]]", "[agents."+agent+"]\nsource = \""+source+"\"\ncomm_targets = [\"boss\"]\n[[auth.keys]]", 1)
}

// reloadSite is hosts that share a schema, with clients of each.
type reloadSite struct {
	dsn       string
	hosts     []*hosttest.Process
	admins    []*client.Client
	operators []*client.Client
}

func reloadSiteOf(t *testing.T, n int) *reloadSite {
	t.Helper()
	return reloadSiteRunning(t, n, hosttest.ScriptSwarm)
}

func reloadSiteRunning(t *testing.T, n int, swarm string) *reloadSite {
	t.Helper()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	s := &reloadSite{dsn: pgtest.Schema(t)}
	s.hosts = hostsRunning(t, n, s.dsn, swarm)
	for _, p := range s.hosts {
		s.admins, s.operators = append(s.admins, p.ClientAs(adminKey)), append(s.operators, p.ClientAs(operatorKey))
	}
	for i := range s.hosts {
		s.waitReady(t, i)
	}
	return s
}

// write gives hosts a file.
func (s *reloadSite) write(swarm string, hosts ...int) {
	for _, i := range hosts {
		s.hosts[i].Write(sharedFile(s.dsn, s.hosts[i].Addr, swarm))
	}
}

// readiness is the status of a host's readyz, and what it says.
func (s *reloadSite) readiness(t *testing.T, host int) (status int, text string) {
	t.Helper()
	resp, err := http.Get("http://" + s.hosts[host].Admin() + "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(raw)
}

func (s *reloadSite) waitReady(t *testing.T, host int) {
	t.Helper()
	var status int
	var text string
	for range patience {
		if status, text = s.readiness(t, host); status == http.StatusOK {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("host %d does not get ready: %d, %s", host, status, text)
}

// runs returns the digest of what a host runs.
func (s *reloadSite) runs(t *testing.T, host int) string {
	t.Helper()
	d, err := s.admins[host].Definition(t.Context())
	if err != nil {
		t.Fatalf("host %d: %v", host, err)
	}
	return d.Digest
}

// wantAll wants all hosts to run one definition soon, other than before.
func (s *reloadSite) wantAll(t *testing.T, before string) (now string) {
	t.Helper()
	seen := make([]string, len(s.hosts))
	for range patience {
		for i := range seen {
			seen[i] = s.runs(t, i)
		}
		now = seen[0]
		if now != before && !slices.ContainsFunc(seen, func(d string) bool { return d != now }) {
			return now
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the hosts run %v, before %s", seen, before)
	return ""
}

// wantNone wants no host to run another definition than before, for some beats.
func (s *reloadSite) wantNone(t *testing.T, before string) {
	t.Helper()
	for range 8 {
		for i := range s.hosts {
			if got := s.runs(t, i); got != before {
				t.Fatalf("host %d runs %s, before %s", i, got, before)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// reload reloads at a host; another reload may be about to end there.
func (s *reloadSite) reload(ctx context.Context, host int) (err error) {
	for range patience {
		if _, err = s.operators[host].Reload(ctx); err == nil || !strings.Contains(err.Error(), "reload again when it is done") {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// wantRefusal wants a reload to be refused for what is the matter with a host.
func (s *reloadSite) wantRefusal(t *testing.T, at, of int, says ...string) {
	t.Helper()
	err := s.reload(t.Context(), at)
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		t.Fatalf("reload: %v", err)
	}
	for _, want := range append(says, "nothing has changed", "http://"+s.hosts[of].Addr) {
		if !strings.Contains(refused.Detail, want) {
			t.Errorf("the refusal %q does not say %q", refused.Detail, want)
		}
	}
}

// TestReload: a reload at one host puts the file in force on all. One that a host cannot follow, because it
// lacks a module or has another file, changes nothing anywhere. A host of another swarm does not start beside them.
func TestReload(t *testing.T) {
	t.Parallel()
	s := reloadSiteOf(t, 3)
	before := s.runs(t, 0)
	s.write(swarmWith("calc", "bundled:calculator"), 0, 1, 2)
	if err := s.reload(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	now := s.wantAll(t, before)

	s.write(swarmWith("other", "file:other.wasm"), 0, 1, 2)
	for i, p := range s.hosts {
		module := guests.Bytes(t, "plugins/script")
		if i == 2 {
			module = []byte("not wasm")
		}
		if err := os.WriteFile(filepath.Join(p.Dir, "other.wasm"), module, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.wantRefusal(t, 0, 2, "agent other", "give all hosts one file")
	s.wantNone(t, now)
	if err := os.Remove(filepath.Join(s.hosts[2].Dir, "other.wasm")); err != nil {
		t.Fatal(err)
	}
	s.wantRefusal(t, 0, 2, "the module \"file:other.wasm\" does not exist")
	s.wantNone(t, now)

	s.write(hosttest.ScriptSwarm, 0, 2)
	s.wantRefusal(t, 0, 1, "its file differs in", "agent other")
	s.write(hosttest.ScriptSwarm+"[models", 1)
	s.wantRefusal(t, 0, 1, "the file is at fault")
	s.wantNone(t, now)

	s.write(hosttest.ScriptSwarm, 1)
	if err := s.reload(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if got := s.wantAll(t, now); got != before {
		t.Errorf("the first file is another one: %s, before %s", got, before)
	}
	s.wantNoOther(t, 2)
}

// wantNoOther wants a host that is started again with a file of another swarm to end.
func (s *reloadSite) wantNoOther(t *testing.T, host int) {
	t.Helper()
	p := s.hosts[host]
	p.Kill()
	s.write(strings.Replace(hosttest.ScriptSwarm, `name = "hive"`, `name = "other"`, 1), host)
	p.Start()
	if code, log := p.End(); code <= 0 || !strings.Contains(log, "the tasks of swarm") {
		t.Errorf("a host of another swarm has ended with code %d: %s", code, log)
	}
}

// TestReloadTwice: of reloads at several hosts at once one is done, and the others are or are refused for it.
func TestReloadTwice(t *testing.T) {
	t.Parallel()
	s := reloadSiteOf(t, 3)
	before := s.runs(t, 0)
	for _, swarm := range []string{swarmWith("calc", "bundled:calculator"), hosttest.ScriptSwarm, swarmWith("sums", "bundled:calculator")} {
		s.write(swarm, 0, 1, 2)
		ends := make(chan error, len(s.hosts))
		for i := range s.hosts {
			go func() {
				_, err := s.operators[i].Reload(t.Context())
				ends <- err
			}()
		}
		done := 0
		for range s.hosts {
			err := <-ends
			if err == nil {
				done++
			} else if !strings.Contains(err.Error(), "reload again when it is done") {
				t.Error(err)
			}
		}
		if done == 0 {
			t.Error("no reload is done")
		}
		before = s.wantAll(t, before)
	}
}

// TestReloadQuota: a quota that is raised at one host is raised at all, and one that a host cannot follow, because its
// file has another, is raised at none.
func TestReloadQuota(t *testing.T) {
	t.Parallel()
	file := func(tasks int) string {
		return hosttest.ScriptSwarm + fmt.Sprintf("[tenants.default]\ntasks = %d\n", tasks)
	}
	s := reloadSiteRunning(t, 2, file(1))
	opens := func(host int, task string) bool {
		t.Helper()
		c, err := client.New(client.Options{URL: "http://" + s.hosts[host].Addr, Token: hosttest.ScriptKey, NoWait: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.PostAsync(t.Context(), client.Post{Task: task, Body: `[["sleep",{"ms":600000}]]`})
		if err != nil && !strings.Contains(err.Error(), "raise [tenants.default] tasks") {
			t.Fatal(err)
		}
		return err == nil
	}
	if !opens(0, "first") || opens(1, "second") {
		t.Error("a quota of one task does not let exactly one begin")
	}
	s.write(file(2), 0)
	s.wantRefusal(t, 0, 1, "its file differs in", "tenants.default.tasks")
	if opens(0, "second") || opens(1, "second") {
		t.Error("a quota that not all hosts have is in force")
	}
	s.write(file(2), 1)
	if err := s.reload(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	hosttest.Eventually(t, "the other host goes by the higher quota", func() bool { return opens(1, "second") })
	if opens(0, "third") || opens(1, "third") {
		t.Error("three tasks are open, of two")
	}
}
