package storetest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/quarantine"
)

var quarantineCases = cases{
	"agents come and go":            confineAgents,
	"agents go with their tenant":   eraseConfined,
	"one of an erased tenant comes": confineAfterErase,
}

// testConfined are agents of a tenant in quarantine, oldest first.
func testConfined(tenant string) (list []quarantine.Confined) {
	for i, name := range []string{"text", "", "math\x00\xff"} {
		list = append(list, quarantine.Confined{
			Agent:  quarantine.Agent{Tenant: tenant, Swarm: "hive", Name: name},
			Module: name, Since: time.Unix(1e9+int64(i), 123456789).UTC(), Why: "turn\x00 " + name,
		})
	}
	return list
}

func confine(t *testing.T, s Store, list ...quarantine.Confined) {
	t.Helper()
	for _, c := range list {
		if err := s.ConfineAgent(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

func wantConfined(t *testing.T, s Store, want []quarantine.Confined) {
	t.Helper()
	got, err := s.Confined(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Confined() = %v (-want +got)\n%s", err, diff)
	}
}

func confineAgents(t *testing.T, s Store) {
	wantConfined(t, s, nil)
	want := testConfined("acme")
	confine(t, s, want[2], want[0], want[1])
	again := want[1]
	again.Why, again.Since = "another", again.Since.Add(-time.Hour)
	confine(t, s, again)
	wantConfined(t, s, want)
	for _, there := range []bool{true, false} {
		if ok, err := s.ReleaseAgent(t.Context(), want[1].Agent); ok != there || err != nil {
			t.Errorf("ReleaseAgent() = %v, %v, want %v", ok, err, there)
		}
	}
	wantConfined(t, s, []quarantine.Confined{want[0], want[2]})
}

func eraseConfined(t *testing.T, s Store) {
	acme, globex := testConfined("acme"), testConfined("globex")
	confine(t, s, append(acme, globex...)...)
	text := export(t, s, "acme")
	if lines := bodies(t, text); len(lines) != len(acme) || strings.Contains(text, "globex") {
		t.Errorf("the export has\n%s", text)
	}
	for _, c := range acme {
		why, err := json.Marshal(c.Why)
		if err != nil || !strings.Contains(text, `"why":`+string(why)) {
			t.Errorf("the export lacks %q, %v:\n%s", c.Why, err, text)
		}
	}
	if known, err := s.HasData(t.Context(), "acme"); !known || err != nil {
		t.Errorf("HasData() = %v, %v for a tenant with agents in quarantine alone", known, err)
	}
	if err := s.Erase(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	wantConfined(t, s, globex)
}

func confineAfterErase(t *testing.T, s Store) {
	acme := testConfined("acme")
	confine(t, s, acme[0])
	if err := s.Erase(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	confine(t, s, acme[1])
	wantConfined(t, s, acme[1:2])
}

func reopenQuarantine(t *testing.T, e Engine) {
	at := e.NewPlace(t)
	s := e.Open(t, at)
	want := testConfined("acme")
	confine(t, s, want...)
	closeStore(t, s)
	wantConfined(t, openAt(t, e, at), want)
}
