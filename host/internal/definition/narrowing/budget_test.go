package narrowing

import (
	"testing"

	"skep/host/internal/definition/config"
)

// A budget of 0 has no end: nothing is beyond the file's, and what is asked for
// within none is its own.
func TestNarrowBudgets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked, own, want int64
		beyond           bool
	}{
		{0, 0, 0, false}, {100, 0, 100, false}, {0, 100, 100, false}, {50, 100, 50, false}, {200, 100, 100, true},
	} {
		asked := config.AgentLimits{Tokens: c.asked, USD: float64(c.asked) / 100}
		own := config.AgentLimits{Tokens: c.own, USD: float64(c.own) / 100}
		if got := narrowLimits(asked, own); got.Tokens != c.want || got.USD != float64(c.want)/100 {
			t.Errorf("%d within %d: %d, $%v", c.asked, c.own, got.Tokens, got.USD)
		}
		r := File{}.exceeds("agents.a", config.Agent{Limits: asked}, config.Agent{Name: "b", Limits: own})
		if len(r) > 0 != c.beyond || c.beyond && (len(r) != 2 || r[0].Path != "agents.a.limits.tokens" || r[1].Path != "agents.a.limits.usd") {
			t.Errorf("%d beyond %d: %v", c.asked, c.own, r)
		}
	}
}
