package gateway_test

import (
	"strings"
	"testing"

	"skep/host/internal/gateway"
)

// A star in a pattern is any text, everything else is itself.
func TestMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, id string
		want        bool
	}{
		{"shop", "shop", true},
		{"shop", "Shop", false},
		{"shop", "shop-1", false},
		{"shop-*", "shop-", true},
		{"shop-*", "shop-1", true},
		{"shop-*", "ashop-1", false},
		{"*", "", true},
		{"*", "anything", true},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*c", "abbc", true},
		{"a*bc*c", "abc", false},
		{"did:web:*.example.org", "did:web:lab.example.org", true},
		{"did:web:*.example.org", "did:web:lab.example.org.evil.net", false},
		{"did:web:*.example.org", "did:web:example.org", false},
		{"**", "x", true},
		{strings.Repeat("*a", 200) + "b", strings.Repeat("a", 10_000), false},
	} {
		if got := gateway.Matches([]string{"no", c.pattern}, c.id); got != c.want {
			t.Errorf("%.40q of %.40q: %v", c.pattern, c.id, got)
		}
	}
	if gateway.Matches(nil, "x") || (gateway.Partner{}).Owns("x") || !(gateway.Partner{}).Sees("x") {
		t.Error("no pattern owns nothing, and no list of agents is all of them")
	}
}
