package cli

import (
	"reflect"
	"strings"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/diagnosis"
)

// TestDoctorFindsFullTasks: a tenant with as many open tasks as it may have at a running host is found,
// until one of them ends.
func TestDoctorFindsFullTasks(t *testing.T) {
	t.Parallel()
	p := healthyPatient(t)
	public, admin := p.freeAddress(), p.freeAddress()
	p.vars["SKEP_TOKEN"] = p.vars["OPERATOR"]
	p.write("swarm.toml", patientText+"[server]\nlisten = \""+public+"\"\nadmin_listen = \""+admin+"\"\n[[auth.keys]]\nid = \"op\"\nrole = \"operator\"\nkey = \"env::OPERATOR\"\n"+
		"[tenants.default]\ntasks = 1\n[tenants.other]\nqueue = 5\n")
	t.Cleanup(p.serve("http://" + admin + "/readyz"))
	id := strings.TrimSpace(p.run("send", "--async", `[["sleep",{"ms":600000}]]`))
	found, code := p.diagnose()
	if len(found) != 1 || code != exitOK || found[0].ID != diagnosis.TenantQuota || found[0].Severity != diagnosis.Warning || found[0].Subject != "[tenants.default] tasks" ||
		!strings.HasPrefix(found[0].Message, "the tenant default has as many tasks as it may have at once, and its posts are refused") || !strings.Contains(found[0].Fix, "raise [tenants.default] tasks") {
		t.Errorf("with as many tasks as it may have: %d %+v", code, found)
	}
	p.run("task", "cancel", id)
	if found, code := p.diagnose(); len(found) > 0 || code != exitOK {
		t.Errorf("with no task: %d %+v", code, found)
	}
}

// TestDoctorNamesFullTenant: metrics name the tenant of a full quota, or it is one that has the quota.
func TestDoctorNamesFullTenant(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Tenants: []config.Tenant{{Name: "blue", Queue: 2}, {Name: "red", Queue: 3, Tasks: 1}}}
	for line, want := range map[string][]string{
		`skep_quota_left_ratio{quota="queue",tenant="red"} 0`:    {"queue", "red"},
		`skep_quota_left_ratio{quota="queue"} 0`:                 {"queue", "blue", "red"},
		`skep_quota_left_ratio{quota="tasks"} 0`:                 {"tasks", "red"},
		`skep_quota_left_ratio{quota="queue",tenant="other"} 0`:  {"queue", "blue", "red"},
		`skep_quota_left_ratio{quota="storage",tenant="red"} 0`:  nil,
		`skep_quota_left_ratio{quota="queue",tenant="red"} 0.25`: nil,
	} {
		var got []string
		if m := fullQuota.FindStringSubmatch(line); m != nil {
			got = append([]string{m[1]}, boundTenants(cfg, m[1], m[2])...)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
