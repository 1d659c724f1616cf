package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/store/sqlite"
)

// tenantLister has a store that names the tenant kept. Its list must come within a minute.
func tenantLister(t *testing.T) (p *patient, list func(args ...string) (stdout, stderr string)) {
	t.Helper()
	p = newPatient(t, t.TempDir())
	s, err := datadir.OpenStore(t.Context(), p.data, config.Store{}, sqlite.Options{})
	p.must(err)
	p.must(s.AddToken(t.Context(), auth.IssuedToken{ID: "1", Principal: auth.Principal{Tenant: "kept", Role: auth.User, ID: "u"}, Created: time.Now()}))
	p.must(s.Close())
	return p, func(args ...string) (string, string) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		sh := newShell(map[string]string{"SKEP_TOKEN": "a-token"}, append([]string{"tenant", "list", "-c", p.file}, args...)...)
		sh.Bundled = inProgram{guests.Bytes(t, "plugins/script")}
		if code := Main(ctx, sh.Env); code != exitOK {
			t.Errorf("%v: exit code %d: %s", args, code, sh.stderr.String())
		}
		return sh.stdout.String(), sh.stderr.String()
	}
}

// TestTenantListWithoutHost: without a host a quota of what runs or waits is shown without its use, and all
// tenants of the file are there. A file that cannot be read is named with its line.
func TestTenantListWithoutHost(t *testing.T) {
	t.Parallel()
	p, list := tenantLister(t)
	p.also("[tenants.acme]\ntasks = 9\n[tenants.light]\nweight = 2\n")
	text, _ := list()
	for _, want := range []string{"acme tasks ? of 9 (the host knows)", "kept none", "light none"} {
		name, quotas, _ := strings.Cut(want, " ")
		if !strings.Contains(strings.Join(strings.Fields(text), " "), name+" 0 0 "+quotas) {
			t.Errorf("the list lacks %q:\n%s", want, text)
		}
	}
	if text, _ := list("-o", "json"); !strings.Contains(strings.Join(strings.Fields(text), ""), `{"name":"tasks","used":null,"limit":9,"left":null,`) {
		t.Errorf("as JSON:\n%s", text)
	}
	p.also("[tenants.acme]\ntaks = 9\n")
	text, note := list()
	if !strings.Contains(note, "quotas are not shown") || !strings.Contains(note, "swarm.toml:13") || !strings.Contains(text, "kept") || strings.Contains(text, "none") {
		t.Errorf("with a file at fault: %q\n%s", note, text)
	}
}

// TestTenantListOfHangingHost: a host that never answers does not hold up what the directory has.
func TestTenantListOfHangingHost(t *testing.T) {
	t.Parallel()
	p, list := tenantLister(t)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"name":"skep","protocol_version":"1","status":"running","swarm":{"name":"hive"}}`))
	}))
	t.Cleanup(host.Close)
	p.write("swarm.toml", patientText+"[server]\nlisten = \""+strings.TrimPrefix(host.URL, "http://")+"\"\nadmin_listen = \"127.0.0.1:0\"\n[tenants.acme]\ntasks = 9\n")
	text, _ := list()
	if !strings.Contains(text, "acme") || !strings.Contains(text, "? of 9") {
		t.Errorf("%s", text)
	}
}
