package cli

import (
	"slices"
	"strings"
	"testing"

	"skep/host/internal/diagnosis"
)

// TestDoctorFindsDeadModel: a model that has not answered a running host is found by what the host
// knows of it.
func TestDoctorFindsDeadModel(t *testing.T) {
	t.Parallel()
	p := healthyPatient(t)
	public, admin, gone := p.freeAddress(), p.freeAddress(), p.freeAddress()
	p.vars["SKEP_TOKEN"] = p.vars["OPERATOR"]
	p.write("swarm.toml", strings.Replace(patientText, "can_complete_tasks", "allow = { llm = [\"m\"] }\ncan_complete_tasks", 1)+
		"[server]\nlisten = \""+public+"\"\nadmin_listen = \""+admin+"\"\n[[auth.keys]]\nid = \"op\"\nrole = \"operator\"\nkey = \"env::OPERATOR\"\n"+
		"[models.m]\nprovider = \"openai\"\nmodel = \"m-9\"\nbase_url = \"http://"+gone+"/v1\"\nallow_private = true\nretries = 0\n")
	stop := p.serve("http://" + admin + "/readyz")
	defer stop()
	const gives = "[[\"llm.chat\",{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a planted text\"}]}],[\"task_complete\",{\"finish_message\":\"ok\"}]]"
	isWarning := func(f diagnosis.Finding) bool { return f.ID == diagnosis.FileWarning } // of the grant
	if found, code := p.diagnose(); !slices.ContainsFunc(found, isWarning) || len(found) != 1 || code != exitOK {
		t.Errorf("before a call: %d %+v", code, found)
	}
	p.run("send", gives)
	found, code := p.diagnose()
	if found = slices.DeleteFunc(found, isWarning); len(found) != 1 || code != exitOK {
		t.Fatalf("after a call: %d %+v", code, found)
	}
	f := found[0]
	if f.ID != diagnosis.ModelSilent || f.Subject != "[models.m]" || !strings.HasPrefix(f.Message, "the model does not answer: connection refused (calls without an answer: 1, since ") || !strings.Contains(f.Fix, "base_url") {
		t.Errorf("after a call: %+v", f)
	}
}
