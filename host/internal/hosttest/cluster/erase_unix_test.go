//go:build unix

package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// blueKey is the key of a user of the tenant blue.
const blueKey = "a-key-for-the-user-of-blue"

// eraseSwarm is the swarm for two tenants, whose agent writes files.
var eraseSwarm = strings.Replace(hosttest.ScriptSwarm, "[agents.math]", "actions = [\"write_file\"]\n[agents.math]", 1) + `[[auth.keys]]
id = "bea"
role = "user"
tenant = "blue"
key = "` + blueKey + `"
[tenants.default]
weight = 1
[tenants.blue]
weight = 1
[actions.write_file]
source = "builtin:fs"
root = "%s"
write = true
`

// eraseSite is hosts with work of the tenant blue.
type eraseSite struct {
	*reloadSite
	users []*client.Client
	tasks []string
	// swarm is the file of the hosts, notes the directory of their files.
	swarm, notes string
}

func eraseSiteOf(t *testing.T, n int) *eraseSite {
	t.Helper()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	s := &eraseSite{reloadSite: &reloadSite{dsn: pgtest.Schema(t)}, notes: t.TempDir()}
	s.swarm = fmt.Sprintf(eraseSwarm, s.notes)
	s.hosts = hostsRunning(t, n, s.dsn, s.swarm)
	for i, p := range s.hosts {
		s.admins, s.operators = append(s.admins, p.ClientAs(adminKey)), append(s.operators, p.ClientAs(operatorKey))
		s.users = append(s.users, p.ClientAs(blueKey))
		s.waitReady(t, i)
	}
	return s
}

// planted is the text of a task.
func planted(id string) string { return "planted-" + id + "-text" }

// plant makes tasks of blue through all hosts, each with a text and a file. Every third goes on for long.
func (s *eraseSite) plant(t *testing.T, name string, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		id := fmt.Sprint(name, i)
		s.tasks = append(s.tasks, id)
		end := ""
		if i%3 == 0 {
			end = `,["sleep",{"ms":600000}]`
		}
		all.Go(func() {
			post := client.Post{Task: id, Subject: planted(id), Body: fmt.Sprintf(`[["write_file",{"path":%q,"content":%q}]%s]`, id, planted(id), end)}
			c := s.users[i%len(s.users)]
			if end != "" {
				if _, err := c.PostAsync(t.Context(), post); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			} else if answer, err := c.PostMessage(t.Context(), post); err != nil || !strings.Contains(answer.Body, "boss got") {
				t.Errorf("%s: %+v, %v", id, answer, err)
			}
		})
	}
	all.Wait()
	if files, err := os.ReadDir(filepath.Join(s.notes, "blue")); len(files) == 0 || err != nil {
		t.Errorf("no task has written a file: %v", err)
	}
}

// wantErased wants no host to have anything of what was planted, and each to begin anew.
func (s *eraseSite) wantErased(t *testing.T, hosts ...int) {
	t.Helper()
	for _, i := range hosts {
		for _, id := range s.tasks {
			if task, err := s.users[i].Task(t.Context(), id); !isStatus(err, http.StatusNotFound) {
				t.Errorf("host %d, task %s: %+v, %v", i, id, task, err)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(s.notes, "blue")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there are files: %v", err)
	}
	s.wantNowhere(t, hosts[0])
	for _, i := range hosts {
		id := fmt.Sprint("anew", i, len(s.tasks))
		hosttest.Eventually(t, "the tenant begins anew", func() bool {
			_, err := s.users[i].PostMessage(t.Context(), client.Post{Task: id, Key: id, Body: "[]"})
			if err != nil && !isStatus(err, http.StatusServiceUnavailable) {
				t.Errorf("host %d: %v", i, err)
				return true
			}
			return err == nil
		})
	}
}

func isStatus(err error, status int) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status == status
}

// wantNowhere wants an export to have nothing, and a backup none of the texts.
func (s *eraseSite) wantNowhere(t *testing.T, host int) {
	t.Helper()
	dir := t.TempDir()
	backup, restored := filepath.Join(dir, "backup"), filepath.Join(dir, "restored")
	if out, err := s.skep(t, host, "backup", "--with-keyring", backup); err != nil {
		t.Error(out, err)
	}
	if out, err := s.skep(t, host, "tenant", "export", "blue", filepath.Join(dir, "export")); err == nil || !strings.Contains(out, "keeps nothing") {
		t.Error(out, err)
	}
	file := filepath.Join(dir, "swarm.toml")
	key := filepath.Join(s.hosts[host].Dir, "store.key")
	if err := os.WriteFile(file, []byte(hosttest.ScriptSwarm+"[store]\nkeyring = \"file::"+key+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"restore", backup}, {"tenant", "export", "blue", filepath.Join(dir, "export")}} {
		cmd := exec.Command(hosttest.Program(t), append(args, "-c", file, "--data", restored)...)
		out, err := cmd.CombinedOutput()
		if args[0] == "restore" && err != nil || args[0] != "restore" && (err == nil || !strings.Contains(string(out), "keeps nothing")) {
			t.Errorf("%v: %s %v", args, out, err)
		}
	}
	texts := ""
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			texts += hosttest.ReadText(t, path)
		}
		return err
	})
	for _, id := range s.tasks {
		if strings.Contains(texts, planted(id)) {
			t.Errorf("a backup has the text of %s", id)
		}
	}
}

// skep runs a command beside a host's file.
func (s *eraseSite) skep(t *testing.T, host int, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(hosttest.Program(t), args...)
	cmd.Dir = s.hosts[host].Dir
	cmd.Env = append(os.Environ(), "SKEP_TOKEN="+operatorKey)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// phase is the phase of what the hosts do for blue, -1 for nothing.
func (s *eraseSite) phase(t *testing.T) int {
	t.Helper()
	return s.ask(t, "SELECT coalesce(max(phase), -1) FROM shared_chores")
}

// number is the highest number that anything had that the hosts do together.
func (s *eraseSite) number(t *testing.T) int {
	t.Helper()
	return s.ask(t, "SELECT last_value FROM shared_chores_n_seq")
}

// ask asks the server for a number.
func (s *eraseSite) ask(t *testing.T, text string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if err := conn.QueryRow(t.Context(), text).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *eraseSite) awaitPhase(t *testing.T, phase int) {
	t.Helper()
	for range patience {
		if s.phase(t) == phase {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("phase %d does not come, it is %d", phase, s.phase(t))
}

// erase erases blue at a host, whose connection may break.
func (s *eraseSite) erase(t *testing.T, host int) <-chan error {
	end := make(chan error, 1)
	go func() { end <- s.operators[host].EraseTenant(t.Context(), "blue") }()
	return end
}

// TestSharedErase: an erasure at one host, asked for at two, removes what all hosts have of a tenant, beside the
// load of another one, and its callers are told.
func TestSharedErase(t *testing.T) {
	t.Parallel()
	s := eraseSiteOf(t, 3)
	loaded := startLoad(t, clientsOf(s.hosts), "e", 24, 4)
	s.plant(t, "p", 40)
	waits := make(chan error, 1)
	go func() {
		_, err := s.users[1].PostMessage(t.Context(), client.Post{Task: "p0", Continue: true, Body: "[]"})
		waits <- err
	}()
	ends := []<-chan error{s.erase(t, 0), s.erase(t, 1)}
	done := 0
	for _, end := range ends {
		if err := <-end; err == nil {
			done++
		} else if !isStatus(err, http.StatusConflict) && !isStatus(err, http.StatusNotFound) {
			t.Error(err)
		}
	}
	if done == 0 {
		t.Error("no erasure is done")
	}
	select {
	case <-waits:
	case <-time.After(loadTime):
		t.Error("who waited for an answer waits on")
	}
	s.wantErased(t, 0, 1, 2)
	loaded()
	if err := <-s.erase(t, 2); err != nil {
		t.Error(err)
	}
	hosttest.Eventually(t, "nothing is left to be erased", func() bool {
		return isStatus(<-s.erase(t, 1), http.StatusNotFound)
	})
}

// TestSharedEraseKilled: an erasure goes on when the host that was asked is killed in the midst of it, and waits for
// no host that stands still.
func TestSharedEraseKilled(t *testing.T) {
	t.Parallel()
	s := eraseSiteOf(t, 3)
	s.plant(t, "k", 12)
	s.hosts[2].Signal(syscall.SIGSTOP)
	_ = s.erase(t, 0)
	s.awaitPhase(t, 1) // host 2 has not stopped its work
	s.hosts[0].Kill()
	s.awaitPhase(t, -1)
	s.hosts[2].Signal(syscall.SIGCONT)
	if code, _ := s.hosts[2].End(); code <= 0 {
		t.Errorf("a host that stood still has ended with code %d", code)
	}
	for _, i := range []int{0, 2} {
		s.hosts[i].Start()
		waitReady(t, s.hosts[i]) // what it computed was erased: nobody tries it
	}
	s.wantErased(t, 0, 1, 2)

	// Killed at some moment, asked again by another.
	s.plant(t, "l", 12)
	before := s.number(t)
	_ = s.erase(t, 0)
	hosttest.Eventually(t, "the erasure is noted", func() bool { return s.number(t) > before })
	s.hosts[0].Kill()
	s.hosts[0].Start()
	s.awaitPhase(t, -1)
	waitReady(t, s.hosts[0])
	s.wantErased(t, 0, 1, 2)
}

// TestSharedEraseBesideMoves: an erasure beside a reload at another host, and while slots move because a host is
// drained, one stops and one comes.
func TestSharedEraseBesideMoves(t *testing.T) {
	t.Parallel()
	s := eraseSiteOf(t, 3)
	before := s.runs(t, 0)
	for round, disturb := range []func(){
		func() {
			s.write(strings.Replace(s.swarm, "[[auth.keys]]", "[agents.calc]\nsource = \"bundled:calculator\"\ncomm_targets = [\"boss\"]\n[[auth.keys]]", 1), 0, 1, 2)
			if err := s.reload(t.Context(), 1); err != nil {
				t.Error(err)
			}
			s.wantAll(t, before)
		},
		func() { s.hosts[2].Signal(syscall.SIGTERM) },
		func() { s.hosts[2].Start() },
		func() {
			if out, err := s.skep(t, 1, "cluster", "drain", "http://"+s.hosts[1].Addr, "--url", "http://"+s.hosts[1].Addr); err != nil {
				t.Error(out, err)
			}
		},
	} {
		if round == 1 || round == 2 {
			s.users = s.users[:2]
		}
		s.plant(t, fmt.Sprint("m", round, "-"), 12)
		end := s.erase(t, 0)
		disturb()
		if err := <-end; err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		s.wantErased(t, 0, 1)
		if round == 1 {
			s.hosts[2].End()
		}
	}
}

// TestSharedRotate: the hosts give a tenant a new key together, beside load, and nothing is sealed with the one before.
func TestSharedRotate(t *testing.T) {
	t.Parallel()
	s := eraseSiteOf(t, 2)
	loaded := startLoad(t, clientsOf(s.hosts), "r", 32, 8)
	for i := range s.hosts {
		if out, err := s.skep(t, i, "tenant", "rotate", "default"); err != nil {
			t.Fatal(out, err)
		}
	}
	loaded()
	if out, err := s.skep(t, 1, "tenant", "rotate", "default"); err != nil {
		t.Fatal(out, err)
	}
	out, err := s.skep(t, 0, "keyring", "list", "-o", "json")
	if err != nil {
		t.Fatal(out, err)
	}
	var ring struct {
		Keys []struct {
			Tenant, State string
			Used          bool
		}
	}
	if err := json.Unmarshal([]byte(out), &ring); err != nil {
		t.Fatal(out, err)
	}
	retired := 0
	for _, k := range ring.Keys {
		if k.Tenant != "default" {
			continue
		}
		if k.State == "retired" {
			retired++
		}
		if k.Used != (k.State == "current") {
			t.Errorf("a key is %s, and something is sealed with it: %v", k.State, k.Used)
		}
	}
	if retired != 3 {
		t.Errorf("%d keys are retired, want 3: %s", retired, out)
	}
	startLoad(t, clientsOf(s.hosts), "s", 12, 0)()
}
