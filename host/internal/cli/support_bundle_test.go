package cli

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
)

// unpacked has the files of an archive.
func (p *patient) unpacked(name string) map[string]string {
	p.t.Helper()
	f, err := os.Open(name)
	p.must(err)
	defer f.Close() // it is read only
	plain, err := gzip.NewReader(f)
	p.must(err)
	found, files := map[string]string{}, tar.NewReader(plain)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		p.must(err)
		text, err := io.ReadAll(files)
		p.must(err)
		found[strings.TrimPrefix(h.Name, "skep-support/")] = string(text)
	}
}

// TestSupportBundle: what is written of a host that runs has its parts and nothing of the planted secrets and
// contents, of the file, of a task that runs and of a question.
func TestSupportBundle(t *testing.T) {
	t.Parallel()
	p := newPatient(t, t.TempDir())
	p.cache = guests.CacheDir(t)
	public, admin := p.freeAddress(), p.freeAddress()
	p.vars["OPERATOR"], p.vars["PEER"] = "planted-key-of-the-operator", "planted<token>\"of\"a-peer"
	p.write("swarm.toml", strings.Replace(patientText, `entrypoint = "boss"`, "entrypoint = \"boss\"\ndescription = \"planted prose\"\nbreakpoint_tools = [\"help\"]", 1)+`allow = { http = ["https://a.example/planted"] }
[server]
listen = "`+public+`"
admin_listen = "`+admin+`"
shutdown_grace = "0s"
[[auth.keys]]
id = "op"
role = "operator"
key = "env::OPERATOR"
[peers.depot]
base_url = "https://depot.example/planted/path"
auth_token = "env::PEER"
`)
	stop := p.serve("http://" + admin + "/readyz")
	defer stop()
	p.vars["SKEP_TOKEN"] = p.vars["OPERATOR"]
	c, err := client.New(client.Options{URL: "http://" + public, Token: p.vars["OPERATOR"]})
	p.must(err)
	defer c.Close()
	_, err = c.PostMessage(t.Context(), client.Post{Task: "counts", Subject: "planted subject", Body: `[["metric",{"name":"orders","value":2,"labels":{"item":"planted"}}],["task_complete",{"finish_message":"planted end"}]]`})
	p.must(err)
	for id, body := range map[string]string{"slow": `[["sleep",{"ms":600000}]]`, "asks": `[["help",{"planted argument":1}]]`} {
		_, err := c.PostAsync(t.Context(), client.Post{Task: id, Subject: "planted subject", Body: body + " "})
		p.must(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		list, _, err := c.Questions(t.Context(), "", "")
		p.must(err)
		if len(list) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d questions wait, want one, of the task asks", len(list))
		}
	}
	out := p.run("support-bundle", p.path("bundle.tar.gz"))
	found := p.unpacked(p.path("bundle.tar.gz"))
	if found["contents.txt"] != out {
		t.Errorf("shown is %s, and inside is %s", out, found["contents.txt"])
	}
	for name, text := range found {
		if strings.Contains(text, "planted") || strings.Contains(text, "user:op") || strings.Contains(text, "operator:op") {
			t.Errorf("%s has what it must not have:\n%s", name, text)
		}
	}
	for name, want := range map[string]string{
		"version.json": `"mail": "1.3"`, "config.json": `"auth_token": "[secret]"`, "doctor.json": `"id": "file-warning"`, "plan.json": `"changes": []`,
		"readyz.txt": "ready\n", "metrics.txt": "skep_build_info", "host_version.json": "version", "tasks.json": `"task_id": "slow"`, "questions.json": `"action": "help"`,
		"contents.txt": "cluster.json       -        the hosts that share its tasks; missing: ",
	} {
		if !strings.Contains(found[name], want) {
			t.Errorf("%s has no %q:\n%s", name, want, found[name])
		}
	}
	if info, err := os.Stat(p.path("bundle.tar.gz")); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if code, s := p.call("support-bundle", p.path("bundle.tar.gz")); code != exitFailed || !strings.Contains(s.stderr.String(), "is there already: choose a new name") || s.stdout.Len() > 0 {
		t.Errorf("over another file: %d %s", code, s.stderr.String())
	}
}

// TestSupportBundleOfBrokenHost: of a host that does not run, and whose file is at fault, there is a bundle that
// names what is missing with the reason, without quoting the file.
func TestSupportBundleOfBrokenHost(t *testing.T) {
	t.Parallel()
	p := newPatient(t, t.TempDir())
	p.also("[peers.depot]\nbase_url = \"planted place\"\n[planted.table]\n")
	var shown struct {
		File  string
		Parts []supportPart
	}
	p.must(json.Unmarshal([]byte(p.run("support-bundle", p.path("bundle.tar.gz"), "-o", "json")), &shown))
	found := p.unpacked(p.path("bundle.tar.gz"))
	for name, text := range found {
		if strings.Contains(text, "planted") {
			t.Errorf("%s quotes the file:\n%s", name, text)
		}
	}
	if !strings.Contains(found["doctor.json"], `"file-invalid"`) || shown.File != p.path("bundle.tar.gz") {
		t.Errorf("%s %v", shown.File, found)
	}
	missing := map[string]string{}
	for _, part := range shown.Parts {
		if _, is := found[part.Name]; is != (part.Missing == "") || is && part.Bytes != len(found[part.Name]) {
			t.Errorf("%+v, but inside is %q", part, found[part.Name])
		}
		missing[part.Name] = part.Missing
	}
	for name, want := range map[string]string{
		"config.json": "the file has 2 faults, the first in line ", "metrics.txt": "admin_listen", "tasks.json": "connection refused", "version.json": "",
	} {
		if got := missing[name]; !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s is missing for %q, want %q", name, got, want)
		}
	}
}

// TestSupportPartIsBounded: a part that is too long is left out, with its length, and a secret in a part or in the
// reason of its absence is taken out, in its form as JSON, too, and whole where another begins it. Of URLs the host
// is left.
func TestSupportPartIsBounded(t *testing.T) {
	t.Parallel()
	b := &supportBundle{}
	b.addSecrets("", "seven77", "the<token>", `a"<secret>`)
	b.addSecrets(`the<token>-and-"more"`)
	b.add("long", "", make([]byte, maxSupportPart+1), nil)
	b.add("whole", "", make([]byte, maxSupportPart), nil)
	b.add("refused", "", nil, errors.New(`it is a"<secret>: Get "HTTP://u:pw@h.example:1/path?q=1": refused`))
	if p := b.parts[0]; p.Missing != "it has 4194305 bytes, at most 4194304" || p.content != nil || p.Bytes != 0 {
		t.Errorf("%+v", p)
	}
	if p := b.parts[1]; p.Missing != "" || p.Bytes != maxSupportPart {
		t.Errorf("%s %d", p.Missing, p.Bytes)
	}
	if got := b.parts[2].Missing; got != `it is [secret]: Get "HTTP://h.example:1": refused` {
		t.Errorf("%s", got)
	}
	for text, want := range map[string]string{
		`x a"<secret> seven77`:                  `x [secret] seven77`,
		`the<token> the<token>-and-"more"`:      `[secret] [secret]`,
		`ws://u:p&w@h.example/p&q=<a>\"b and c`: `ws://h.example"b and c`,
		`say "https://h.example?key=k" twice`:   `say "https://h.example" twice`,
		"https://h.example#k\nnext":             "https://h.example\nnext",
	} {
		b.addJSON("quoted", "", []string{text, "after"}, nil)
		var got []string
		if err := json.Unmarshal(b.parts[len(b.parts)-1].content, &got); err != nil || !slices.Equal(got, []string{want, "after"}) {
			t.Errorf("%s is %q, want %q, %v", text, got, want, err)
		}
	}
}

// TestSupportPages: of pages of admin_listen only /readyz may have another status than 200, no redirect leads to
// another place, and metrics that agents report are left out.
func TestSupportPages(t *testing.T) {
	t.Parallel()
	const kept = "# HELP skep_up Up.\n# TYPE skep_up gauge\nskep_up{agent=\"skep_agent_x\"} 1\n"
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			t.Errorf("a redirect was followed")
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "# HELP skep_agent_a A.\n# TYPE skep_agent_a gauge\nskep_agent_a{item=\"planted\"} 1\n"+kept+"skep_agent_a_total{item=\"planted\"} 1")
	}))
	defer s.Close()
	cfg := &config.Config{}
	cfg.Server.AdminListen = strings.TrimPrefix(s.URL, "http://")
	for _, status = range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusFound} {
		b := &supportBundle{app: &app{}}
		b.addPages(t.Context(), cfg)
		for _, p := range b.parts {
			if status == http.StatusOK || p.Name == "readyz.txt" {
				if string(p.content) != kept || p.Missing != "" {
					t.Errorf("%s at %d is %q, missing for %q", p.Name, status, p.content, p.Missing)
				}
			} else if p.content != nil || !strings.Contains(p.Missing, "answers "+strconv.Itoa(status)) {
				t.Errorf("%s at %d is %q, missing for %q", p.Name, status, p.content, p.Missing)
			}
		}
	}
}

// TestSupportPlanOfFault: what the host says of a fault in its file is not quoted.
func TestSupportPlanOfFault(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"status":409,"title":"conflict","detail":"the file is at fault: planted"}`)
	}))
	defer s.Close()
	c, err := client.New(client.Options{URL: s.URL, Token: "k"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := &supportBundle{app: &app{}}
	b.addPlan(t.Context(), c, nil)
	if p := b.parts[0]; p.content != nil || p.Missing != "the host finds a fault in its file, or has none: skep plan shows it" {
		t.Errorf("%+v", p)
	}
}

// TestSupportBundleNowhere: a file that cannot be written is said before anything is looked at.
func TestSupportBundleNowhere(t *testing.T) {
	t.Parallel()
	p := newPatient(t, t.TempDir())
	if code, s := p.call("support-bundle", p.path("away/bundle.tar.gz")); code != exitNotFound || !strings.Contains(s.stderr.String(), "cannot be written") || s.stdout.Len() > 0 {
		t.Errorf("%d %s%s", code, s.stdout.String(), s.stderr.String())
	}
}
