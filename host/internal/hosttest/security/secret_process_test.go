package security_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/hosttest"
)

// descendants lists this process's children and theirs, to any depth.
func descendants(t *testing.T) (pids []int) {
	t.Helper()
	parents := map[int]int{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])) // the name may have anything in it
		if err == nil && bad == nil && len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	for pid := range parents {
		for up := parents[pid]; up > 1; up = parents[up] {
			if up == os.Getpid() {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// readMemory is what a process has in the memory that it can write to.
func readMemory(pid int) (all []byte, err error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer func() { _ = maps.Close() }()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer func() { _ = mem.Close() }()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var mode string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); err != nil || !strings.HasPrefix(mode, "rw") {
			continue
		}
		_, _ = io.Copy(writer{&all}, io.NewSectionReader(mem, from, to-from)) // some cannot be read
	}
	return all, nil
}

type writer struct{ to *[]byte }

func (w writer) Write(p []byte) (int, error) { *w.to = append(*w.to, p...); return len(p), nil }

// TestPlantedSecretsAndProcesses is the line on planted secrets for agents that run as
// processes: their environment, their parents' environments, and their memory
// while a turn runs in them have no secret of the host's environment or files, and none
// that a server has repeated.
func TestPlantedSecretsAndProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked into through /proc")
	}
	const envKey, fileKey = "planted-in-the-environment-5f3a", "planted-in-a-file-of-the-host-77"
	t.Setenv("SKEP_TEST_PLANTED", envKey)
	var mu sync.Mutex
	var memory, environment []byte
	name := "spied" + strconv.Itoa(os.Getpid())
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hold" {
			_, _ = fmt.Fprintf(w, "the key is %s and %s.", r.Header.Get("X-Key"), r.Header.Get("X-Other"))
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, pid := range descendants(t) {
			env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			environment = append(environment, env...)
		}
		for _, pid := range hosttest.ProcessesNamed(t, "exec:"+name) {
			text, err := readMemory(pid)
			if err != nil {
				t.Log("the memory of the process cannot be read:", err)
			}
			memory = append(memory, text...)
		}
	}))
	defer site.Close()
	file := strings.Replace(hosttest.ProgramSwarm, "exec:worker", "exec:"+name, 1)
	file = strings.Replace(file, `kv = "agent"`, fmt.Sprintf("http = [%q], http_private = true, secrets = [\"one\", \"two\"]", site.URL), 1) + fmt.Sprintf(`
[secrets.one]
value = "env::SKEP_TEST_PLANTED"
hosts = [%[1]q]
header = "X-Key"
[secrets.two]
value = "file::planted"
hosts = [%[1]q]
header = "X-Other"
`, site.URL)
	dir := hosttest.ProgramDir(t, file, nil)
	for name, content := range map[string][]byte{name: hosttest.ConformProgram(t), "planted": []byte(fileKey)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(filepath.Join(dir, "swarm.toml"), config.Options{Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.Run(t, host.Options{
		Config: cfg, DataDir: filepath.Join(dir, ".skep"),
	})
	get := func(path string) string {
		return fmt.Sprintf(`["call",{"op":30,"request":{"method":"GET","url":%q}}]`, site.URL+path)
	}
	a, err := h.Client(t).PostMessage(t.Context(), client.Post{Body: "[" + get("/") + "," + get("/hold") + `,["task_complete",{"finish_message":"done"}]]`})
	if err != nil || a.Body != "done" {
		t.Errorf("answered %+v, %v", a, err)
	}
	if err := h.Stop(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(environment) == 0 {
		t.Error("no process has an environment: none was found")
	}
	if len(memory) > 0 && !bytes.Contains(memory, []byte("the key is [secret one] and [secret two].")) {
		t.Error("the memory of the process lacks what the server said: it is not all there")
	}
	for where, text := range map[string][]byte{"the environment": environment, "the memory": memory} {
		for _, secret := range []string{envKey, fileKey} {
			if i := bytes.Index(text, []byte(secret[:20])); i >= 0 {
				t.Errorf("%s of a process holds a secret: …%q…", where, text[max(0, i-80):min(len(text), i+80)])
			}
		}
	}
}
