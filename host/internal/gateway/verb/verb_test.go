package verb_test

import (
	"slices"
	"strings"
	"testing"

	"skep/host/internal/gateway/verb"
	"skep/host/internal/schema"
)

// Every verb has parameters that are checked, and a call names its partner where the
// action has more than one (G-060).
func TestParameters(t *testing.T) {
	t.Parallel()
	for _, v := range slices.Concat(verb.Of("a2a"), verb.Of("acp"), verb.Of("amp"), verb.Of("uamp")) {
		for partners, wants := range map[string]bool{"shop": false, "shop lab": true} {
			raw := v.Parameters(strings.Fields(partners))
			p, err := schema.CompileParams(v.Name, raw)
			if err != nil {
				t.Fatalf("%s: %v", v.Name, err)
			}
			if named := strings.Contains(string(raw), `"partner"`); named != wants || v.Description == "" {
				t.Errorf("%s of %s: %s", v.Name, partners, raw)
			}
			if err := p.Check([]byte(`{"message":"x","task":"t","partner":"other"}`)); err == nil {
				t.Errorf("%s of %s takes another partner", v.Name, partners)
			}
		}
	}
	if _, known := verb.Find("a2a", "sing"); known {
		t.Error("there is a verb sing")
	}
}
