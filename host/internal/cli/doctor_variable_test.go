package cli

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/diagnosis"
	"skep/host/internal/diskspace"
)

// ids are those of findings, in order.
func ids(found []diagnosis.Finding) (list []string) {
	for _, f := range found {
		list = append(list, f.ID)
	}
	return list
}

// A variable that this shell lacks hides nothing that does not need it, and others are shown nothing in
// its place.
func TestDoctorWithoutVariable(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(provider.Close)
	p := newPatient(t, t.TempDir())
	p.machine.Space = func(string) (diskspace.Free, error) { return diskspace.Free{}, nil }
	p.args = []string{"--online"}
	p.also(`
[models.big]
provider = "openai"
model = "m"
base_url = "` + provider.URL + `"
api_key = "env::THE_KEY"
allow_private = true
[[auth.keys]]
id = "alice"
role = "user"
key = "env::KEY_OF_ALICE"
[[auth.keys]]
id = "op"
role = "operator"
key = "env::OPERATOR"
`)
	found, code := p.diagnose()
	if got := ids(found); code != exitNonconforming || !slices.Equal(got, []string{diagnosis.FileInvalid, diagnosis.FileInvalid, diagnosis.DiskLow, diagnosis.DataMissing}) {
		t.Errorf("%d, %+v", code, found)
	}
	if !strings.Contains(found[0].Fix, "what needs it was not looked at") || calls.Load() != 0 {
		t.Errorf("%s; %d calls with a stand-in", found[0].Fix, calls.Load())
	}
	p.vars["THE_KEY"], p.vars["KEY_OF_ALICE"] = "a-key-of-the-provider", "a-key-of-alice-the-user"
	if found, _ := p.diagnose(); !slices.Contains(ids(found), diagnosis.DiskLow) || slices.Contains(ids(found), diagnosis.FileInvalid) || calls.Load() == 0 {
		t.Errorf("with the variables: %+v, %d calls", found, calls.Load())
	}
	p.also("[store]\ndriver = \"postgres\"\ndsn = \"env::THE_SERVER\"\n")
	if found, _ := p.diagnose(); !slices.ContainsFunc(found, func(f diagnosis.Finding) bool {
		return strings.Contains(f.Message, "THE_SERVER") && strings.Contains(f.Fix, "nothing else of the host was looked at")
	}) || slices.Contains(ids(found), diagnosis.StoreServer) {
		t.Errorf("without the server's: %+v", found)
	}
}
