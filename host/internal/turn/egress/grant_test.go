package egress_test

import (
	"strings"
	"testing"

	"skep/host/internal/turn/egress"
)

func TestParseGrant(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://api.test":             "https://api.test",
		"https://api.test/":            "https://api.test",
		"HTTPS://API.Test.:0443":       "https://api.test",
		"http://api.test:8080/v1":      "http://api.test:8080/v1",
		"http://api.test/v1/":          "http://api.test/v1/",
		"GET,POST https://api.test/v1": "GET,POST https://api.test/v1",
		"https://*.api.test":           "https://*.api.test",
		"https://*.api.test:444/x":     "https://*.api.test:444/x",
		"https://*":                    "https://*",
		"GET http://*:8080/x":          "GET http://*:8080/x",
		"http://127.0.0.1:80":          "http://127.0.0.1",
		"http://[::1]:8080":            "http://[::1]:8080",
		"http://[0:0::1]":              "http://[::1]",
		"http://[::ffff:10.0.0.1]":     "http://10.0.0.1",
		"http://localhost:8000":        "http://localhost:8000",
		"https://xn--tst-bma.test":     "https://xn--tst-bma.test",
		"https://api.test/a%2Fb":       "https://api.test/a%2Fb",
	} {
		g, err := egress.ParseGrant(in)
		if err != nil || g.String() != want {
			t.Errorf("ParseGrant(%q) = %q, %v, want %q", in, g, err, want)
			continue
		}
		if again, err := egress.ParseGrant(g.String()); err != nil || again.String() != want {
			t.Errorf("%q is not read back: %q, %v", want, again, err)
		}
	}
	if s := (egress.Grant{}).String(); s != "" {
		t.Errorf("the zero grant is %q", s)
	}
}

func TestParseGrantRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                           `as in "https://api.example.com"`,
		"*":                          `as in "https://api.example.com"`,
		"api.test":                   `as in "https://api.example.com"`,
		"ftp://api.test":             "http or https",
		"*://api.test":               "cannot be read",
		"https://":                   "no host",
		"https:///v1":                "no host",
		"https://u:p@api.test":       "credentials",
		"https://api.test?x":         "query",
		"https://api.test#x":         "fragment",
		"https://api.test/a/../b":    "must be written /b",
		"https://api.test/%41":       "must be written /A",
		"https://api.test/a%2f":      "must be written /a%2F",
		"https://api.test/a%2f..":    "dot segment",
		"https://api.test:99999":     "port",
		"https://a*.test":            "character",
		"https://a.*.test":           "character",
		"https://**.a.test":          "character",
		"https://*.com":              "name with a dot",
		"https://*.127.0.0.1":        "name with a dot",
		"https://*a.test":            "character",
		"https://*.":                 "",
		"https://*.*.a.test":         "character",
		"http://2130706433":          "four decimal",
		"http://[::1%25lo]":          "zone",
		"https://tést.test":          "xn--",
		"get https://api.test":       `"get" is not a method`,
		"GET, POST https://api.test": `"" is not a method`,
		"CONNECT https://api.test":   "not a method",
		" https://api.test":          "not a method",
		"GET https://api.test x":     "character",
		"https://api.test ":          "not a method",
		"GET  https://api.test":      "",
	} {
		if g, err := egress.ParseGrant(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseGrant(%q) = %q, %v, want an error with %q", in, g, err, want)
		}
	}
}

func TestGrantIncludes(t *testing.T) {
	t.Parallel()
	for wide, within := range map[string]map[string]bool{
		"https://api.test": {
			"https://api.test": true, "https://api.test/v1": true, "GET https://api.test": true, "http://api.test": false,
			"https://api.test:444": false, "https://x.api.test": false, "https://*.api.test": false, "https://*": false,
		},
		"GET,POST https://api.test/v1": {
			"GET https://api.test/v1/users": true, "POST,GET https://api.test/v1": true, "https://api.test/v1": false,
			"PUT https://api.test/v1": false, "GET https://api.test": false, "GET https://api.test/v10": false,
		},
		"https://*.api.test": {
			"https://x.api.test": true, "https://*.api.test": true, "https://*.x.api.test": true, "https://api.test": false,
			"https://*.test.test": false, "https://*": false,
		},
		"https://*":            {"https://api.test/v1": true, "https://*.api.test": true, "https://*": true, "https://localhost": false, "https://10.0.0.1": false},
		"http://10.0.0.1:8080": {"http://10.0.0.1:8080": true, "http://10.0.0.1": false},
	} {
		for narrow, want := range within {
			if got := parsed(t, wide).Includes(parsed(t, narrow)); got != want {
				t.Errorf("%s includes %s: %v", wide, narrow, got)
			}
		}
		if (egress.Grant{}).Includes(parsed(t, wide)) || parsed(t, wide).Includes(egress.Grant{}) {
			t.Errorf("the zero grant and %s", wide)
		}
	}
}

func parsed(t *testing.T, text string) egress.Grant {
	t.Helper()
	g, err := egress.ParseGrant(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGrantPrivate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"http://localhost": true, "http://127.0.0.1:1": true, "http://10.0.0.1": true, "http://[::1]": true, "http://[fd00::1]": true,
		"http://169.254.169.254": true, "https://api.test": false, "https://93.184.215.14": false, "https://*": false, "https://*.local.test": false,
	} {
		if got := parsed(t, text).Private(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// Check refuses with the text of Fetch, without network access.
func TestCheck(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	c := w.client()
	p := granted(t, "https://api.test/v1")
	p.Table = "[agents.web]"
	for url, want := range map[string]string{
		"https://api.test/v1/x": "", "https://unknown.test/deep/x?key=1": `is not granted; it takes "GET https://unknown.test/deep/x" added to allow.http in [agents.web]`,
		"https://unknown.test/" + strings.Repeat("a", 999): `it takes "GET https://unknown.test" added to allow.http in [agents.web]`,
		"api.test": "http or https",
	} {
		fault := c.Check(p, get(url))
		if (fault == nil) != (want == "") || fault != nil && !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %v", url, fault)
		}
		if fault == nil {
			continue
		}
		if _, again := c.Fetch(t.Context(), p, "key", get(url)); again == nil || *again != *fault {
			t.Errorf("%s: checked %v, fetched %v", url, fault, again)
		}
	}
	if len(w.lookups) != 0 || len(w.dialled) != 0 {
		t.Error("it asked the network")
	}
}
