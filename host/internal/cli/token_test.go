package cli

import (
	"testing"
	"time"

	"skep/host/client"
)

func TestReadTTL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"": -1, "0": 0, "90s": 90, "12h": 43200, "30d": 2592000, "0d": 0, "1h30m": 5400,
		"soon": -2, "-1h": -2, "1d12h": 129600, "1.5s": -2, "90": -2, "d": -2, "-1d": -2, "99999999d": -2,
	} {
		got := int64(-1)
		switch n, err := readTTL(text); {
		case err != nil:
			got = -2
		case n != nil:
			got = *n
		}
		if got != want {
			t.Errorf("readTTL(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestLifeText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	for want, token := range map[string]client.Token{
		"until it is revoked":      {State: "valid"},
		"until 2026-11-20 12:00":   {State: "valid", Expires: &at},
		"expired 2026-11-20 12:00": {State: "expired", Expires: &at},
		"revoked 2026-11-20 12:00": {State: "revoked", Revoked: &at},
	} {
		if got := lifeText(token); got != want {
			t.Errorf("%+v: %q, want %q", token, got, want)
		}
	}
}
