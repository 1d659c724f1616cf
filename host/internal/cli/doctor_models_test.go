package cli

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/diagnosis"
)

// patientWithModel is a patient whose agent calls a model at base, and whose host runs.
func patientWithModel(t *testing.T, base string) *patient {
	t.Helper()
	p := healthyPatient(t)
	public, admin := p.freeAddress(), p.freeAddress()
	p.vars["SKEP_TOKEN"] = p.vars["OPERATOR"]
	p.write("swarm.toml", strings.Replace(patientText, "can_complete_tasks", "allow = { llm = [\"m\"] }\ncan_complete_tasks", 1)+
		"[server]\nlisten = \""+public+"\"\nadmin_listen = \""+admin+"\"\n[[auth.keys]]\nid = \"op\"\nrole = \"operator\"\nkey = \"env::OPERATOR\"\n"+
		"[models.m]\nprovider = \"openai\"\nmodel = \"m-9\"\nbase_url = \""+base+"/v1\"\nallow_private = true\nretries = 0\n")
	t.Cleanup(p.serve("http://" + admin + "/readyz"))
	return p
}

// callModel posts a task that calls the model, and waits for its end.
func (p *patient) callModel() {
	p.t.Helper()
	p.run("send", "[[\"llm.chat\",{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a planted text\"}]}],[\"task_complete\",{\"finish_message\":\"ok\"}]]")
}

// isFileWarning reports whether a finding is about the grant of a model in the file.
func isFileWarning(f diagnosis.Finding) bool { return f.ID == diagnosis.FileWarning }

// TestDoctorFindsDeadModel: a model that has not answered a running host is found by what the host
// knows of it.
func TestDoctorFindsDeadModel(t *testing.T) {
	t.Parallel()
	p := patientWithModel(t, nowhere)
	if found, code := p.diagnose(); !slices.ContainsFunc(found, isFileWarning) || len(found) != 1 || code != exitOK {
		t.Errorf("before a call: %d %+v", code, found)
	}
	p.callModel()
	found, code := p.diagnose()
	if found = slices.DeleteFunc(found, isFileWarning); len(found) != 1 || code != exitOK {
		t.Fatalf("after a call: %d %+v", code, found)
	}
	f := found[0]
	if f.ID != diagnosis.ModelSilent || f.Subject != "[models.m]" || !strings.HasPrefix(f.Message, "the model does not answer: connection refused (calls without an answer: 1, since ") || !strings.Contains(f.Fix, "base_url") {
		t.Errorf("after a call: %+v", f)
	}
}

// TestDoctorOnlineKeepsFindingOfHost: a provider that lists its models and fails the calls of the
// running host is found with --online, too.
func TestDoctorOnlineKeepsFindingOfHost(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	t.Cleanup(provider.Close)
	p := patientWithModel(t, provider.URL)
	p.callModel()
	p.args = []string{"--online"}
	found, code := p.diagnose()
	found = slices.DeleteFunc(found, isFileWarning)
	if len(found) != 1 || code != exitOK || found[0].ID != diagnosis.ModelSilent || !strings.Contains(found[0].Message, "malformed (calls without an answer: 1, since ") || !strings.Contains(found[0].Fix, "does not speak the protocol") {
		t.Errorf("%d %+v", code, found)
	}
}
